// silu(gate) * up of gate and up side by side, and its slope.
#include "simd.h"

namespace {

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

template <typename T> void activate(const T *gate, long size, T *y) {
    const T *up = gate + size;
    each(size, [&](long i, auto count) {
        Floats g = load(gate + i, count);
        store(y + i, g * sigmoid(g) * load(up + i, count), count);
    });
}

template <typename T> void slope(const T *gate, const T *grad, long size, T *gate_slope) {
    const T *up = gate + size;
    T *up_slope = gate_slope + size;
    each(size, [&](long i, auto count) {
        Floats g = load(gate + i, count), s = sigmoid(g), upstream = load(grad + i, count);
        store(up_slope + i, upstream * (g * s), count);
        store(gate_slope + i, upstream * load(up + i, count) * (s * (1.0f + g * (1.0f - s))), count);
    });
}

template <typename T> void forward(const T *gate_up, T *y, long length, long size) {
#pragma omp parallel for if (length * size > WORTH_THREADS / 2)
    for (long t = 0; t < length; t++) activate(gate_up + 2 * t * size, size, y + t * size);
}

template <typename T> void backward(const T *gate_up, const T *grad, T *slopes, long length, long size) {
#pragma omp parallel for if (length * size > WORTH_THREADS / 2)
    for (long t = 0; t < length; t++) slope(gate_up + 2 * t * size, grad + t * size, size, slopes + 2 * t * size);
}

}  // namespace

#define EXPORT(T, DTYPE)                                                                                              \
    extern "C" void swiglu_##DTYPE(const T *gate_up, T *y, long length, long size) {                                  \
        forward(gate_up, y, length, size);                                                                            \
    }                                                                                                                 \
    extern "C" void swiglu_backward_##DTYPE(const T *gate_up, const T *grad, T *slopes, long length, long size) {     \
        backward(gate_up, grad, slopes, length, size);                                                                \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
