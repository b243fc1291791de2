// Each head's vector rotated by its token's angles: number i of its first half and number i of its second are a pair.
#include "kernel.h"

namespace {

template <typename T> struct Rotation {
    const T *cos, *sin;
    long pairs;
    float sign;  // -1 rotates back.

    void operator()(const T *x, T *y) const {
        each(pairs, [&](long i, auto count) {
            Floats a = load(x + i, count), b = load(x + pairs + i, count);
            Floats c = load(cos + i, count), s = load(sin + i, count) * sign;
            store(y + i, fused(a, c, -(b * s)), count);
            store(y + pairs + i, fused(b, c, a * s), count);
        });
    }
};

}  // namespace

template <typename T> void kernels::rotary(const rotary_arguments<T> &a) {
#pragma omp parallel for if (a.length * a.heads * a.pairs > WORTH_THREADS)
    for (long t = 0; t < a.length; t++) {
        Rotation<T> rotate{a.cos + t * a.cos_stride, a.sin + t * a.sin_stride, a.pairs, a.sign};
        for (long h = 0; h < a.heads; h++)
            rotate(a.x + t * a.x_stride + h * 2 * a.pairs, a.y + t * a.y_stride + h * 2 * a.pairs);
    }
}
EXPORT(rotary)
