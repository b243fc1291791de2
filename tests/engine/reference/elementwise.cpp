// Kernels whose numbers each follow from a few others: rotary embedding, SwiGLU and its gradient, dropout.
#include "kernels.h"
#include "philox.h"
#include "random.h"

namespace {

Estimate sigmoid(Estimate x) { return Estimate{1} / (Estimate{1} + exponential(-x)); }

}  // namespace

template <typename T> bool check_rotary(const Library &library) {
    Check<T> check("rotary");
    Random random(4);
    constexpr long length = 4, heads = 3;
    for (long pairs : {16, 32, 20})
        for (float sign : {1.0f, -1.0f}) {
            long size = 2 * pairs, stride = heads * size + 9;
            Numbers<T> x = random.numbers<T>(length * stride);
            Numbers<T> cos = random.numbers<T>(length * pairs), sin = random.numbers<T>(length * pairs);
            std::vector<Estimate> y(length * heads * size);
            for (long row = 0; row < length * heads; row++)
                for (long i = 0; i < pairs; i++) {
                    const T *own = x.data() + row / heads * stride + row % heads * size;
                    Estimate a{wide(own[i])}, b{wide(own[pairs + i])};
                    Estimate c{wide(cos[row / heads * pairs + i])}, s{sign * wide(sin[row / heads * pairs + i])};
                    y[row * size + i] = a * c - b * s, y[row * size + pairs + i] = b * c + a * s;
                }
            Numbers<T> given(y.size());
            library.call("rotary", kernels::rotary_arguments<T>{.x = x.data(),
                                                                .x_stride = stride,
                                                                .cos = cos.data(),
                                                                .cos_stride = pairs,
                                                                .sin = sin.data(),
                                                                .sin_stride = pairs,
                                                                .y = given.data(),
                                                                .y_stride = heads * size,
                                                                .length = length,
                                                                .heads = heads,
                                                                .pairs = pairs,
                                                                .sign = sign});
            check.near(given, y);
        }
    return check.finish();
}

template <typename T> bool check_swiglu(const Library &library) {
    Check<T> check("swiglu");
    Random random(5);
    constexpr long length = 3;
    for (long size : {64, 43}) {
        Numbers<T> gate_up = random.numbers<T>(length * 2 * size, 8), grad = random.numbers<T>(length * size);
        std::vector<Estimate> y(length * size), grads(length * 2 * size);
        for (long t = 0; t < length; t++)
            for (long i = 0; i < size; i++) {
                long gate = t * 2 * size + i, up = gate + size;
                Estimate g{wide(gate_up[gate])}, u{wide(gate_up[up])}, s = sigmoid(g), d{wide(grad[t * size + i])};
                y[t * size + i] = g * s * u;
                grads[gate] = d * u * (s * (Estimate{1} + g * (Estimate{1} - s))), grads[up] = d * (g * s);
            }
        Numbers<T> given(y.size()), given_grads(grads.size());
        library.call("swiglu", kernels::swiglu_arguments<T>{gate_up.data(), given.data(), length, size});
        library.call("swiglu_backward", kernels::swiglu_backward_arguments<T>{gate_up.data(), grad.data(),
                                                                              given_grads.data(), length, size});
        check.near(given, y);
        check.near(given_grads, grads);
    }
    return check.finish();
}

template <typename T> bool check_dropout(const Library &library) {
    Check<T> check("dropout");
    Random random(6);
    constexpr long rows = 7, width = 16;
    constexpr uint32_t group = 11;
    const uint64_t key = 0x0123456789abcdef;
    const uint32_t least = 0x4ccccccd;  // 0.3 of all numbers lie below.
    const float factor = 1 / 0.7f;
    const Integers samples = {0, 0, 0, 1, 1, 5, 5}, positions = {0, 1, 2, 0, 1, 1000, 1001};
    for (long columns : {128, 75}) {
        Numbers<T> x = random.numbers<T>(rows * columns), given(x.size());
        library.call("dropout", kernels::dropout_arguments<T>{.x = x.data(),
                                                              .y = given.data(),
                                                              .samples = samples.data(),
                                                              .positions = positions.data(),
                                                              .rows = rows,
                                                              .columns = columns,
                                                              .key = key,
                                                              .group = group,
                                                              .least = least,
                                                              .factor = factor});
        Numbers<T> expected;
        for (long r = 0; r < rows; r++)
            for (long c = 0; c < columns; c++) {
                uint32_t counter = uint32_t(c / (4 * width) * width + c % width);
                Four drawn = philox({counter, uint32_t(positions[r]), uint32_t(samples[r]), group}, key);
                float kept = drawn[c / width % 4] >= least ? factor : 0;
                expected.push_back(nearest<T>(float(wide(x[r * columns + c])) * kept));
            }
        check.same(given, expected);
    }
    return check.finish();
}
INSTANTIATE(check_rotary)
INSTANTIATE(check_swiglu)
INSTANTIATE(check_dropout)
