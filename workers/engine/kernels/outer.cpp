// sums[s, c] = factor * the sum over rows n of u[n, s] v[n, c]: the gradient of a low-rank matrix, in fp32 throughout.
// The rows are summed in their order.
#include <memory>

#include "lanes.h"

namespace outers {

constexpr long COLUMNS = 4 * WIDTH, MOST = 6;  // 24 sums in 32 registers, where the machine has those of 512 bits.

template <typename T> struct Outer {
    const float *u;
    long width;
    const T *v;
    long v_stride, rows, columns;
    float factor, *sums;

    // S of the u's with the columns that begin at `column`, of which `count` numbers are there for each of the lanes.
    template <long S, typename Count> void tile(long s, long column, const Count (&counts)[4]) const {
        Lanes sum[S][4] = {};
        const T *from = v + column;
        for (long n = 0; n < rows; n++, from += v_stride) {
            Lanes x[4];
#pragma GCC unroll 4
            for (long i = 0; i < 4; i++) x[i] = load(from + i * WIDTH, counts[i]);
#pragma GCC unroll 6
            for (long k = 0; k < S; k++)
#pragma GCC unroll 4
                for (long i = 0; i < 4; i++) sum[k][i] += u[n * width + s + k] * x[i];
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
    std::unique_ptr<float[]> wide(new float[rows * width]);
    for (long n = 0; n < rows; n++)
        for (long s = 0; s < width; s++) wide[n * width + s] = one(u[n * u_stride + s]);
    Outer<T> product{wide.get(), width, v, v_stride, rows, columns, factor, sums};
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
