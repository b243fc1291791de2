// sums[s, c] = factor * the sum over rows n of u[n, s] v[n, c]: the gradient of a low-rank matrix, in fp32 throughout.
// The rows are summed in their order, bf16 ones in pairs.
#include <memory>

#include "lanes.h"

namespace outers {

constexpr long COLUMNS = 4 * WIDTH, MOST = 6;  // 24 sums in 32 registers, where the machine has those of 512 bits.

// Sixteen columns of a row, or of it and the next, as words; there may be no next one.
template <typename Count> Words words(const float *row, const float *, Count count) { return (Words)load(row, count); }
template <typename Count> Words words(const bf16 *row, const bf16 *next, Count count) {
    Words first = (Words)load(row, count) >> 16;
    return next ? first | (Words)load(next, count) : first;
}

// As many u's of a row, or pairs of u's, as words.
template <typename T> std::unique_ptr<uint32_t[]> packed(const T *u, long stride, long rows, long width) {
    constexpr long step = PER_WORD<T>;
    std::unique_ptr<uint32_t[]> words(new uint32_t[(rows + step - 1) / step * width]());
    for (long n = 0; n < rows; n++)
        for (long s = 0; s < width; s++)
            std::memcpy((T *)&words[n / step * width + s] + n % step, u + n * stride + s, sizeof(T));
    return words;
}

template <typename T> struct Outer {
    const uint32_t *u;
    long width;
    const T *v;
    long v_stride, rows, columns;
    float factor, *sums;

    // S of the u's with the columns that begin at `column`, of which `counts` are there for each sixteen.
    template <long S, typename Count> void tile(long s, long column, const Count (&counts)[4]) const {
        constexpr long step = PER_WORD<T>;
        Lanes sum[S][4] = {};
        const uint32_t *own = u + s;
        for (long n = 0; n < rows; n += step, own += width) {
            const T *row = v + n * v_stride + column, *next = n + 1 < rows ? row + v_stride : nullptr;
            Words x[4];
#pragma GCC unroll 4
            for (long i = 0; i < 4; i++)
                x[i] = words(row + i * WIDTH, next ? next + i * WIDTH : nullptr, counts[i]);
#pragma GCC unroll 6
            for (long k = 0; k < S; k++)
#pragma GCC unroll 4
                for (long i = 0; i < 4; i++) add_word<T>(sum[k][i], own + k, x[i]);
        }
        for (long k = 0; k < S; k++)
            for (long i = 0; i < 4; i++)
                store(sums + (s + k) * columns + column + i * WIDTH, sum[k][i] * factor, counts[i]);
    }
    template <typename Count> void tiles(long column, const Count (&counts)[4]) const {
        long s = 0;
        for (; s + MOST <= width; s += MOST) tile<MOST>(s, column, counts);
        for (; s + 2 <= width; s += 2) tile<2>(s, column, counts);
        if (s < width) tile<1>(s, column, counts);
    }
    void run(long column) const {
        long left = columns - column;
        if (left >= COLUMNS) return tiles<Full>(column, {});
        long counts[4];
        for (long i = 0; i < 4; i++) counts[i] = std::max(0L, std::min(left - i * WIDTH, WIDTH));
        tiles<long>(column, counts);
    }
};

template <typename T>
void outer(const T *u, long u_stride, const T *v, long v_stride, float *sums, long rows, long width, long columns,
           float factor) {
    auto own = packed(u, u_stride, rows, width);
    Outer<T> product{own.get(), width, v, v_stride, rows, columns, factor, sums};
#pragma omp parallel for schedule(static) if (rows * width * columns > WORTH_THREADS)
    for (long column = 0; column < columns; column += COLUMNS) product.run(column);
}

}  // namespace outers

#define EXPORT(T, ENDING)                                                                                             \
    extern "C" void outer_##ENDING(const T *u, long u_stride, const T *v, long v_stride, float *sums, long rows,      \
                                   long width, long columns, float factor) {                                          \
        outers::outer<T>(u, u_stride, v, v_stride, sums, rows, width, columns, factor);                               \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
