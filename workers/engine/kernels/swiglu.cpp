// silu(gate) * up of gate and up side by side, and its gradient.
#include "kernel.h"

namespace {

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exponential(-x)); }

template <typename T> void forward(const T *gate, long size, T *y) {
    const T *up = gate + size;
    each(size, [&](long i, auto count) {
        Floats g = load(gate + i, count);
        store(y + i, g * sigmoid(g) * load(up + i, count), count);
    });
}

template <typename T> void backward(const T *gate, const T *grad, long size, T *gate_grad) {
    const T *up = gate + size;
    T *up_grad = gate_grad + size;
    each(size, [&](long i, auto count) {
        Floats g = load(gate + i, count), s = sigmoid(g), upstream = load(grad + i, count);
        store(up_grad + i, upstream * (g * s), count);
        store(gate_grad + i, upstream * load(up + i, count) * (s * (1.0f + g * (1.0f - s))), count);
    });
}

}  // namespace

template <typename T> void kernels::swiglu(const swiglu_arguments<T> &a) {
#pragma omp parallel for if (a.length * a.size > WORTH_THREADS / 2)
    for (long t = 0; t < a.length; t++) forward(a.gate_up + 2 * t * a.size, a.size, a.y + t * a.size);
}
EXPORT(swiglu)

template <typename T> void kernels::swiglu_backward(const swiglu_backward_arguments<T> &a) {
#pragma omp parallel for if (a.length * a.size > WORTH_THREADS / 2)
    for (long t = 0; t < a.length; t++)
        backward(a.gate_up + 2 * t * a.size, a.grad + t * a.size, a.size, a.gate_up_grad + 2 * t * a.size);
}
EXPORT(swiglu_backward)
