// y = x / sqrt(mean(x^2) + eps) * w of each head, and its gradient by x.
#include "kernels.h"
#include "random.h"

namespace {

constexpr float EPS = 1e-5f;

// Of the numbers of one head: 1 / sqrt(mean(x^2) + eps).
template <typename T> Estimate inverse(const T *x, long size) {
    Sum squares;
    for (long i = 0; i < size; i++) squares.add(wide(x[i]), wide(x[i]));
    return Estimate{1} / root(squares.total() / Estimate{double(size)} + Estimate{EPS});
}

template <typename T> void forward(const T *x, const float *weight, long size, std::vector<Estimate> &y) {
    Estimate scale = inverse(x, size);
    for (long i = 0; i < size; i++) y.push_back(Estimate{wide(x[i])} * scale * Estimate{weight[i]});
}

template <typename T>
void backward(const T *x, const T *grad, const float *weight, long size, std::vector<Estimate> &y) {
    Estimate scale = inverse(x, size);
    auto weighted = [&](long i) { return Estimate{wide(grad[i])} * Estimate{weight[i]}; };
    Sum dots;
    for (long i = 0; i < size; i++) dots.add(Estimate{wide(x[i])} * weighted(i));
    Estimate along = dots.total() * scale * scale / Estimate{double(size)};
    for (long i = 0; i < size; i++) y.push_back((weighted(i) - Estimate{wide(x[i])} * along) * scale);
}

}  // namespace

template <typename T> bool check_rms_norm(const Library &library) {
    Check<T> check("rms_norm");
    Random random(3);
    constexpr long length = 5, heads = 3;
    for (long size : {16, 64, 43}) {
        long stride = heads * size + 7;
        Numbers<T> x = random.numbers<T>(length * stride), grad = random.numbers<T>(length * heads * size);
        Numbers<float> weight = random.numbers<float>(size);
        std::vector<Estimate> y, x_grad;
        for (long row = 0; row < length * heads; row++) {
            const T *own = x.data() + row / heads * stride + row % heads * size;
            forward(own, weight.data(), size, y);
            backward(own, grad.data() + row * size, weight.data(), size, x_grad);
        }
        Numbers<T> given(y.size()), given_grad(y.size());
        library.call("rms_norm", kernels::rms_norm_arguments<T>{x.data(), stride, weight.data(), EPS, given.data(), length,
                                                                heads, size});
        library.call("rms_norm_backward",
                     kernels::rms_norm_backward_arguments<T>{x.data(), stride, weight.data(), EPS, grad.data(),
                                                             given_grad.data(), length, heads, size});
        check.near(given, y);
        check.near(given_grad, x_grad);
    }
    return check.finish();
}
INSTANTIATE(check_rms_norm)
