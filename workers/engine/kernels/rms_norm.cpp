// y = x / sqrt(mean(x^2) + eps) * w of each head's numbers, and its slope; tokens lie `stride` apart in x.
#include "simd.h"

namespace {

template <typename T> struct Norm {
    const T *x;
    long stride;
    const float *weight;
    float eps;
    long heads, size;

    const T *row(long index) const { return x + index / heads * stride + index % heads * size; }
    float inverse(float squares) const { return 1 / std::sqrt(squares / size + eps); }

    void forward(const T *from, T *y) const {
        Floats squares{};
        each(size, [&](long i, auto count) {
            Floats numbers = load(from + i, count);
            squares += numbers * numbers;
        });
        float scale = inverse(sum(squares));
        each(size, [&](long i, auto count) {
            store(y + i, load(from + i, count) * scale * load(weight + i, count), count);
        });
    }
    void backward(const T *from, const T *grad, T *slope) const {
        Floats squares{}, dots{};
        each(size, [&](long i, auto count) {
            Floats numbers = load(from + i, count);
            squares += numbers * numbers;
            dots += numbers * (load(grad + i, count) * load(weight + i, count));
        });
        float scale = inverse(sum(squares)), along = sum(dots) * scale * scale / size;
        each(size, [&](long i, auto count) {
            Floats weighted = load(grad + i, count) * load(weight + i, count);
            Floats across = fused(load(from + i, count), all(-along), weighted);
            store(slope + i, across * scale, count);
        });
    }
};

template <typename T> void forward(const Norm<T> &norm, T *y, long rows) {
#pragma omp parallel for if (rows * norm.size > WORTH_THREADS)
    for (long row = 0; row < rows; row++) norm.forward(norm.row(row), y + row * norm.size);
}

template <typename T> void backward(const Norm<T> &norm, const T *grad, T *slope, long rows) {
#pragma omp parallel for if (rows * norm.size > WORTH_THREADS)
    for (long row = 0; row < rows; row++)
        norm.backward(norm.row(row), grad + row * norm.size, slope + row * norm.size);
}

}  // namespace

#define EXPORT(T, DTYPE)                                                                                              \
    extern "C" void rms_norm_##DTYPE(const T *x, long stride, const float *weight, float eps, T *y, long length,      \
                                     long heads, long size) {                                                         \
        forward<T>({x, stride, weight, eps, heads, size}, y, length * heads);                                         \
    }                                                                                                                 \
    extern "C" void rms_norm_backward_##DTYPE(const T *x, long stride, const float *weight, float eps, const T *grad, \
                                              T *slope, long length, long heads, long size) {                         \
        backward<T>({x, stride, weight, eps, heads, size}, grad, slope, length * heads);                              \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
