// An adapter's matrices from their fp32 weights into the panels that product.cpp reads, all of them in one call.
#include "kernel.h"
#include "panel.h"

namespace adapters {

using kernels::AdapterBlock;

template <typename T> void fill(const AdapterBlock<T> &block, float scale) {
    constexpr long step = PER_WORD<T>;
    if (!block.is_scaled) scale = 1;
    for (long r = 0; r < block.rows; r++) {
        long row = block.at_row + r, width = row < block.whole ? PANEL : SIMD_WIDTH;
        long panel_row = row < block.whole ? row / PANEL * PANEL : block.whole;
        T *line = block.to + panel_row * block.inputs + row % width * step;
        for (long c = 0; c < block.columns; c++) {
            long column = block.at_column + c;
            float number = block.from[r * block.row_stride + c * block.column_stride];
            put(line + column / step * width * step + column % step, scale * number);
        }
    }
}

template <typename T> void pack(const AdapterBlock<T> *blocks, long count, float scale) {
    long numbers = 0;
    for (long i = 0; i < count; i++) numbers += blocks[i].rows * blocks[i].columns;
#pragma omp parallel for schedule(dynamic) if (numbers > WORTH_THREADS)
    for (long i = 0; i < count; i++) fill(blocks[i], scale);
}

}  // namespace adapters

template <typename T> void kernels::pack_adapter(const pack_adapter_arguments<T> &a) {
    adapters::pack(a.blocks, a.blocks_count, a.scale);
}
EXPORT(pack_adapter)
