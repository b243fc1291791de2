// y = x, dropped out: each number is kept with a probability and divided by it, or else 0.
//
// What is kept depends on the key, the sample, the token's position in it, the group of layers and the column, and on
// nothing else: they are the counter of Philox4x32-10 (Salmon et al. 2011, doi:10.1145/2063384.2063405), which gives
// sixteen times four numbers for 64 columns.
#include "kernel.h"

namespace dropouts {

template <typename V> ALWAYS void multiply(V a, uint32_t b, V &high, V &low) {
    if constexpr (IsPair<V>::value)
        multiply(a.low, b, high.low, low.low), multiply(a.high, b, high.high, low.high);
    else
        multiplied(a, b, high, low);
}

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
        uint32_t places[SIMD_WIDTH];
        for (long i = 0; i < SIMD_WIDTH; i++) places[i] = i;
        Words column = read<Words>(places);
        for (long block = 0; block * 4 * SIMD_WIDTH < columns; block++) {
            Words numbers[4] = {column + uint32_t(block * SIMD_WIDTH), words(position), words(sample), words(group)};
            philox(numbers, uint32_t(key), uint32_t(key >> 32));
            long at = block * 4 * SIMD_WIDTH;
            each(std::min(columns - at, 4 * SIMD_WIDTH), [&](long place, auto count) {
                Floats kept = select(numbers[place / SIMD_WIDTH] >= least, all(factor), all(0.0f));
                store(y + at + place, load(x + at + place, count) * kept, count);
            });
        }
    }
};

template <typename T>
void dropout(const Mask &mask, const T *x, T *y, const int64_t *samples, const int64_t *positions, long rows,
             long columns) {
#pragma omp parallel for schedule(static) if (rows * columns > WORTH_THREADS)
    for (long r = 0; r < rows; r++)
        mask.row(x + r * columns, y + r * columns, columns, uint32_t(samples[r]), uint32_t(positions[r]));
}

}  // namespace dropouts

template <typename T> void kernels::dropout(const dropout_arguments<T> &a) {
    dropouts::Mask mask{a.key, a.group, a.least, a.factor};
    dropouts::dropout(mask, a.x, a.y, a.samples, a.positions, a.rows, a.columns);
}
EXPORT(dropout)
