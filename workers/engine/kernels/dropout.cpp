// y = x, dropped out: each number is kept with a probability and divided by it, or else 0.
//
// What is kept depends on the key, the sample, the token's position in it, the group of layers and the column, and on
// nothing else: they are the counter of Philox4x32-10 (Salmon et al. 2011, doi:10.1145/2063384.2063405), which gives
// sixteen times four numbers for 64 columns.
#include "lanes.h"

namespace dropouts {

#ifdef __AVX512F__
// 32 x 32 bits: the upper half of each product, and the lower.
inline void multiply(Words a, uint32_t b, Words &high, Words &low) {
    __m512i factor = _mm512_set1_epi32(b), even = _mm512_mul_epu32((__m512i)a, factor);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), factor);
    high = (Words)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    low = (Words)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
#else
inline void multiply(Words a, uint32_t b, Words &high, Words &low) {
    for (long i = 0; i < WIDTH; i++) {
        uint64_t product = uint64_t(a[i]) * b;
        high[i] = product >> 32, low[i] = uint32_t(product);
    }
}
#endif

inline void philox(Words (&x)[4], uint32_t key0, uint32_t key1) {
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++, key0 += 0x9e3779b9, key1 += 0xbb67ae85) {
        Words high0, low0, high1, low1;
        multiply(x[0], 0xd2511f53, high0, low0);
        multiply(x[2], 0xcd9e8d57, high1, low1);
        x[0] = high1 ^ x[1] ^ key0, x[1] = low1, x[2] = high0 ^ x[3] ^ key1, x[3] = low0;
    }
}

struct Mask {
    uint64_t key;
    uint32_t group, least;  // Numbers below `least` drop.
    float factor;

    template <typename T> void row(const T *x, T *y, long columns, uint32_t sample, uint32_t position) const {
        Words lane;
        for (long i = 0; i < WIDTH; i++) lane[i] = i;
        for (long block = 0; block * 4 * WIDTH < columns; block++) {
            Words numbers[4] = {lane + uint32_t(block * WIDTH), Words{} + position, Words{} + sample, Words{} + group};
            philox(numbers, uint32_t(key), uint32_t(key >> 32));
            long at = block * 4 * WIDTH;
            each(std::min(columns - at, 4 * WIDTH), [&](long place, auto count) {
                Lanes kept = numbers[place / WIDTH] >= least ? all(factor) : all(0.0f);
                store(y + at + place, load(x + at + place, count) * kept, count);
            });
        }
    }
};

template <typename T>
void dropout(const T *x, T *y, const int64_t *samples, const int64_t *positions, long rows, long columns, long group,
             long key, long least, float factor) {
    Mask mask{uint64_t(key), uint32_t(group), uint32_t(least), factor};
#pragma omp parallel for schedule(static) if (rows * columns > WORTH_THREADS)
    for (long r = 0; r < rows; r++)
        mask.row(x + r * columns, y + r * columns, columns, uint32_t(samples[r]), uint32_t(positions[r]));
}

}  // namespace dropouts

#define EXPORT(T, ENDING)                                                                                            \
    extern "C" void dropout_##ENDING(const T *x, T *y, const int64_t *samples, const int64_t *positions, long rows,   \
                                     long columns, long group, long key, long least, float factor) {                  \
        dropouts::dropout<T>(x, y, samples, positions, rows, columns, group, key, least, factor);                     \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
