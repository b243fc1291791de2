// y = x / sqrt(mean(x^2) + eps) * w of each head's numbers, and its gradient; tokens lie `stride` apart in x.
#include "kernel.h"

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
    void backward(const T *from, const T *grad, T *x_grad) const {
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
            store(x_grad + i, across * scale, count);
        });
    }
};

template <typename T> void forward(const Norm<T> &norm, T *y, long rows) {
#pragma omp parallel for if (rows * norm.size > WORTH_THREADS)
    for (long row = 0; row < rows; row++) norm.forward(norm.row(row), y + row * norm.size);
}

template <typename T> void backward(const Norm<T> &norm, const T *grad, T *x_grad, long rows) {
#pragma omp parallel for if (rows * norm.size > WORTH_THREADS)
    for (long row = 0; row < rows; row++)
        norm.backward(norm.row(row), grad + row * norm.size, x_grad + row * norm.size);
}

}  // namespace

template <typename T> void kernels::rms_norm(const rms_norm_arguments<T> &a) {
    forward<T>({a.x, a.x_stride, a.weight, a.eps, a.heads, a.size}, a.y, a.length * a.heads);
}
EXPORT(rms_norm)

template <typename T> void kernels::rms_norm_backward(const rms_norm_backward_arguments<T> &a) {
    backward<T>({a.x, a.x_stride, a.weight, a.eps, a.heads, a.size}, a.grad, a.x_grad, a.length * a.heads);
}
EXPORT(rms_norm_backward)
