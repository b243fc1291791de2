// Each head's vector turned by its token's angles, its halves as the pairs that turn; y may be x.
#include "simd.h"

namespace {

template <typename T> struct Turn {
    const T *cos, *sin;
    long pairs;
    float sign;  // -1 turns back.

    void operator()(const T *x, T *y) const {
        each(pairs, [&](long i, auto count) {
            Floats a = load(x + i, count), b = load(x + pairs + i, count);
            Floats c = load(cos + i, count), s = load(sin + i, count) * sign;
            store(y + i, fused(a, c, -(b * s)), count);
            store(y + pairs + i, fused(b, c, a * s), count);
        });
    }
};

// Tokens lie so many numbers apart: in x, in the tables of cosines and sines, in y.
template <typename T>
void turn(const T *x, long x_stride, const T *cos, const T *sin, long table_stride, T *y, long y_stride, long length,
          long heads, long pairs, float sign) {
#pragma omp parallel for if (length * heads * pairs > WORTH_THREADS)
    for (long t = 0; t < length; t++) {
        Turn<T> turn{cos + t * table_stride, sin + t * table_stride, pairs, sign};
        for (long h = 0; h < heads; h++) turn(x + t * x_stride + h * 2 * pairs, y + t * y_stride + h * 2 * pairs);
    }
}

}  // namespace

#define EXPORT(T, DTYPE)                                                                                              \
    extern "C" void rotary_##DTYPE(const T *x, long x_stride, const T *cos, const T *sin, long table_stride, T *y,    \
                                   long y_stride, long length, long heads, long pairs, float sign) {                  \
        turn<T>(x, x_stride, cos, sin, table_stride, y, y_stride, length, heads, pairs, sign);                        \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
