// An adapter's matrices from their fp32 weights into the panels that product.cpp reads, all of them in one call.
#include "route.h"

namespace adapters {

// A matrix [rows, columns] in fp32 memory, and its place in one of `inputs` columns in panels, of which the rows from
// `whole` on lie in a panel of half the width. What no block covers is not touched.
template <typename T> struct Block {
    const float *from;
    long row_stride, column_stride, rows, columns;
    T *to;
    long at_row, at_column, inputs, whole, is_scaled;

    void fill(float scale) const {
        constexpr long step = PER_WORD<T>;
        if (!is_scaled) scale = 1;
        for (long r = 0; r < rows; r++) {
            long row = at_row + r, width = row < whole ? PANEL : SIMD_WIDTH;
            T *line = to + (row < whole ? row / PANEL * PANEL : whole) * inputs + row % width * step;
            for (long c = 0; c < columns; c++) {
                long column = at_column + c;
                put(line + column / step * width * step + column % step, scale * from[r * row_stride + c * column_stride]);
            }
        }
    }
};

template <typename T> void pack(const Block<T> *blocks, long count, float scale) {
    long numbers = 0;
    for (long i = 0; i < count; i++) numbers += blocks[i].rows * blocks[i].columns;
#pragma omp parallel for schedule(dynamic) if (numbers > WORTH_THREADS)
    for (long i = 0; i < count; i++) blocks[i].fill(scale);
}

}  // namespace adapters

#define EXPORT(T, ENDING)                                                                                             \
    extern "C" void pack_adapter_##ENDING(const adapters::Block<T> *blocks, long count, float scale) {                 \
        adapters::pack(blocks, count, scale);                                                                         \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
