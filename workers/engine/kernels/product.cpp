// y = x W^T + bias + plus + h B^T, h = x A^T with each row's own A and B: a frozen layer under LoRA, rounded once.
//
// W, A and B lie in panels: 32 outputs side by side, input after input (bf16: pair of inputs after pair), so that a
// product reads memory in one direction. A row's sum goes over the inputs in order, then over h.
#include <omp.h>

#include "kernel.h"
#include "tile.h"

// Named, since templates of several files share one library.
namespace products {

using kernels::AdapterRows;

// Rows that a thread multiplies with a panel before it goes on to the next: a multiple of every level's MOST_ROWS.
constexpr long BLOCK_ROWS = 96;
// Inputs that are summed at once: a block of rows of so many fits in the caches. Between parts the fp32 sums are in
// memory, which changes no bits.
constexpr long PART_INPUTS = 4096;

template <typename T> struct Layer {
    Rows<T> x, adapter_x;
    const T *w;
    const float *bias;
    const T *plus;
    T *y, *h;
    long inputs, outputs, h_width;
    float *sums;  // [rows, outputs filled up to PANEL] between the parts, where there are several.
    long from, to;  // The inputs of this part.

    template <long R> void low_rank_tile(const AdapterRows<T> &adapter, long panel, long row) const {
        long columns = adapter.columns - panel * PANEL;
        if (columns > SIMD_WIDTH)
            low_rank<R, true>(adapter, panel, row);
        else if (columns > 0)
            low_rank<R, false>(adapter, panel, row);
    }
    template <long R, bool both> void low_rank(const AdapterRows<T> &adapter, long panel, long row) const {
        Tile<T, R, both> tile;
        tile.begin(nullptr);
        tile.add(adapter_x.from(row, 0), adapter.a + panel * PANEL * inputs, inputs);
        tile.end(nullptr, h + row * h_width + panel * PANEL, h_width, both ? PANEL : SIMD_WIDTH);
    }
    // Adds this part of the frozen weights; returns whether it is the last.
    template <long R> ALWAYS bool frozen(Tile<T, R> &tile, long panel, long row) const {
        long stride = (outputs + PANEL - 1) / PANEL * PANEL;
        float *partial = sums + row * stride + panel * PANEL;
        if (from)
            tile.load_sums(partial, stride);
        else
            tile.begin(bias ? bias + panel * PANEL : nullptr);
        tile.add(x.from(row, from), w + panel * PANEL * inputs + from * PANEL, to - from);
        if (to < inputs) tile.store_sums(partial, stride);
        return to == inputs;
    }
    // Prefetches the lines that the end of a tile writes to.
    template <long R> ALWAYS void expect(long panel, long row) const {
        for (long r = 0; r < R && to == inputs; r++)
            for (long at = 0; at < PANEL; at += 64 / sizeof(T))
                __builtin_prefetch(y + (row + r) * outputs + panel * PANEL + at, 1);
    }
    template <long R> ALWAYS void finish(Tile<T, R> &tile, const AdapterRows<T> &adapter, long panel, long row) const {
        if (adapter.width) {
            const T *b = adapter.b + panel * PANEL * adapter.b_inputs;
            tile.add({h + row * h_width + adapter.firsts[panel], h_width}, b, adapter.b_inputs);
        }
        long place = row * outputs + panel * PANEL;
        tile.end(plus ? plus + place : nullptr, y + place, outputs, outputs - panel * PANEL);
    }
    // Rows of one adapter.
    template <long R> void tile(const AdapterRows<T> &adapter, long panel, long row) const {
        Tile<T, R> tile;
        expect<R>(panel, row);
        if (frozen(tile, panel, row)) finish(tile, adapter, panel, row);
    }
    // Rows of several adapters: the sums over the frozen weights of all rows, and then what each adapter adds to its
    // own.
    template <long R> void begin_mixed(long panel, long row, float *mixed) const {
        Tile<T, R> tile;
        if (frozen(tile, panel, row)) tile.store_sums(mixed, PANEL);
    }
    template <long R> void finish_mixed(const AdapterRows<T> &adapter, long panel, long row, float *mixed) const {
        Tile<T, R> tile;
        tile.load_sums(mixed, PANEL);
        finish(tile, adapter, panel, row);
    }
};

// f(from, rows) for tiles of nearly the same height, a constant.
template <long MOST, typename F> void tiles(long start, long stop, F f) {
    long count = std::max(0L, stop - start + MOST - 1) / MOST;
    for (long i = 0; i < count; i++) {
        long from = start + (stop - start) * i / count, to = start + (stop - start) * (i + 1) / count;
        with_constant<MOST>(to - from, [&](auto rows) { f(from, rows); });
    }
}

template <typename T> struct Product {
    const AdapterRows<T> *adapters;
    long count;

    // f(adapter, from, to) for the adapters that rows start..stop - 1 use.
    template <typename F> void on_adapters(long start, long stop, F f) const {
        for (long r = 0; r < count; r++) {
            long from = std::max(adapters[r].start, start), to = std::min(adapters[r].stop, stop);
            if (from < to) f(adapters[r], from, to);
        }
    }
    void low_rank(const Layer<T> &layer, const AdapterRows<T> &adapter, long panel, long start, long stop) const {
        tiles<MOST_ROWS<T>>(std::max(adapter.start, start), std::min(adapter.stop, stop), [&](long from, auto rows) {
            layer.template low_rank_tile<rows>(adapter, panel, from);
        });
    }
    void sums(const Layer<T> &layer, long panel, long start, long stop) const {
        tiles<MOST_ROWS<T>>(start, stop, [&](long from, auto rows) {
            const AdapterRows<T> *alone = nullptr;
            on_adapters(from, from + rows, [&](const AdapterRows<T> &adapter, long first, long last) {
                if (last - first == rows) alone = &adapter;
            });
            alone ? layer.template tile<rows>(*alone, panel, from) : mixed<rows>(layer, panel, from);
        });
    }
    template <long R> void mixed(const Layer<T> &layer, long panel, long row) const {
        float sums[R * PANEL];
        layer.template begin_mixed<R>(panel, row, sums);
        if (layer.to < layer.inputs) return;
        on_adapters(row, row + R, [&](const AdapterRows<T> &adapter, long first, long last) {
            with_constant<R>(last - first, [&](auto rows) {
                layer.template finish_mixed<rows>(adapter, panel, first, sums + (first - row) * PANEL);
            });
        });
    }
};

// f(panel, index, start, stop) for all panels, indices and blocks of rows, by all threads. The schedule is dynamic, so
// that a thread whose core is busy with something else delays only its own chunk; a chunk is of adjacent panels.
template <typename F> void each(long panels, long indices, long length, F f) {
    long blocks = (length + BLOCK_ROWS - 1) / BLOCK_ROWS;
    long chunk = std::max(1L, panels * indices * blocks / (16 * omp_get_num_threads()));
#pragma omp for collapse(3) schedule(dynamic, chunk)
    for (long panel = 0; panel < panels; panel++)
        for (long index = 0; index < indices; index++)
            for (long block = 0; block < blocks; block++)
                f(panel, index, block * BLOCK_ROWS, std::min(length, (block + 1) * BLOCK_ROWS));
}

// Up to so many rows are not copied by `stepped`.
constexpr long FEW_ROWS = 64;

// The rows of x with their steps side by side, copied to `memory` where tiles read them faster so.
template <typename T> Rows<T> stepped(Rows<T> x, long length, long inputs, std::unique_ptr<T[]> &memory) {
    if (!READS_STEPS<T> || length <= FEW_ROWS) return x;
    long steps = (inputs + STEP_INPUTS - 1) / STEP_INPUTS;
    memory = buffer<T>(steps * length * STEP_INPUTS);
    Rows<T> to{memory.get(), STEP_INPUTS, length * STEP_INPUTS};
#pragma omp parallel for schedule(dynamic, 16)
    for (long row = 0; row < length; row++)
        for (long input = 0; input < inputs; input += STEP_INPUTS)
            std::memcpy(memory.get() + (to.at(row, input) - to.first), x.at(row, input),
                        std::min(STEP_INPUTS, inputs - input) * sizeof(T));
    return to;
}

template <typename T> void run(Layer<T> layer, const Product<T> &product, long length) {
    long panels = (layer.outputs + PANEL - 1) / PANEL, weights = layer.inputs * layer.outputs;
    // Few rows are bound by reading the weights, many by multiplying.
    bool is_parallel = weights > WORTH_THREADS || length * weights > 16 * WORTH_THREADS;
    std::unique_ptr<T[]> memory, adapter_memory;
    bool is_same = layer.adapter_x.first == layer.x.first;
    layer.x = stepped(layer.x, length, layer.inputs, memory);
    if (is_same)
        layer.adapter_x = layer.x;
    else if (layer.h_width)
        layer.adapter_x = stepped(layer.adapter_x, length, layer.inputs, adapter_memory);
    auto sums = buffer<float>(layer.inputs > PART_INPUTS ? length * panels * PANEL : 0);
#pragma omp parallel if (is_parallel)
    {
        [[maybe_unused]] TileScope<T> scope;
        Layer<T> part = layer;
        part.sums = sums.get();
        if (layer.h_width)
            each(layer.h_width / PANEL, product.count, length, [&](long panel, long adapter, long start, long stop) {
                product.low_rank(part, product.adapters[adapter], panel, start, stop);
            });
        for (part.from = 0; part.from < layer.inputs; part.from = part.to) {
            part.to = std::min(part.from + PART_INPUTS, layer.inputs);
            each(panels, 1, length, [&](long panel, long, long start, long stop) {
                product.sums(part, panel, start, stop);
            });
        }
    }
}

}  // namespace products

template <typename T> void kernels::product(const product_arguments<T> &a) {
    products::Layer<T> layer{{a.x, a.inputs}, {a.adapter_x, a.inputs}, a.w, a.bias, a.plus, a.y, a.h,
                             a.inputs, a.outputs, a.h_width, nullptr, 0, 0};
    products::run<T>(layer, {a.adapter_rows, a.adapter_rows_count}, a.length);
}
EXPORT(product)
