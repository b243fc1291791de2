// sums[s, c] = factor * the sum over rows n of u[n, s] v[n, c]: the gradient of a low-rank matrix, in fp32 throughout.
// The rows are summed in their order, bf16 ones in pairs.
#include <memory>

#include "kernel.h"

namespace outers {

// Vectors of columns, and numbers of u, whose sums are in registers together.
constexpr long VECTORS = MOST_SUMS >= 24 ? 4 : 2, MOST = MOST_SUMS / VECTORS;
constexpr long COLUMNS = VECTORS * SIMD_WIDTH;

// Sixteen columns of a row, or of it and the next, as words; there may be no next one.
template <typename Count> Words words(const float *row, const float *, Count count) {
    return as<uint32_t>(load(row, count));
}
template <typename Count> Words words(const bf16 *row, const bf16 *next, Count count) {
    Words first = as<uint32_t>(load(row, count)) >> 16;
    return next ? first | as<uint32_t>(load(next, count)) : first;
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
    template <long S, typename Count> void tile(long s, long column, const Count (&counts)[VECTORS]) const {
        constexpr long step = PER_WORD<T>;
        Floats sum[S][VECTORS] = {};
        const uint32_t *own = u + s;
        for (long n = 0; n < rows; n += step, own += width) {
            const T *row = v + n * v_stride + column, *next = n + 1 < rows ? row + v_stride : nullptr;
            Words x[VECTORS];
#pragma GCC unroll 4
            for (long i = 0; i < VECTORS; i++)
                x[i] = words(row + i * SIMD_WIDTH, next ? next + i * SIMD_WIDTH : nullptr, counts[i]);
#pragma GCC unroll 6
            for (long k = 0; k < S; k++)
#pragma GCC unroll 4
                for (long i = 0; i < VECTORS; i++) add_word<T>(sum[k][i], own + k, x[i]);
        }
        for (long k = 0; k < S; k++)
            for (long i = 0; i < VECTORS; i++)
                store(sums + (s + k) * columns + column + i * SIMD_WIDTH, sum[k][i] * factor, counts[i]);
    }
    template <typename Count> void tiles(long column, const Count (&counts)[VECTORS]) const {
        long s = 0;
        for (; s + MOST <= width; s += MOST) tile<MOST>(s, column, counts);
        for (; s + 2 <= width; s += 2) tile<2>(s, column, counts);
        if (s < width) tile<1>(s, column, counts);
    }
    void run(long column) const {
        long left = columns - column;
        if (left >= COLUMNS) return tiles<Full>(column, {});
        long counts[VECTORS];
        for (long i = 0; i < VECTORS; i++) counts[i] = std::max(0L, std::min(left - i * SIMD_WIDTH, SIMD_WIDTH));
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

template <typename T> void kernels::outer(const outer_arguments<T> &a) {
    outers::outer(a.u, a.u_stride, a.v, a.v_stride, a.sums, a.rows, a.width, a.columns, a.factor);
}
EXPORT(outer)
