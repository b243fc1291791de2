// y = x W^T + bias + plus + h B^T, h = x A^T with each row's own A and B: a frozen layer under LoRA, rounded once.
//
// W, A and B lie in panels: 32 outputs side by side, input after input (bf16: pair of inputs after pair), so that a
// product reads memory in one direction. A row's sum goes over the inputs in order, then over h.
#include "route.h"

// Named, since templates of several files share one library.
namespace products {

constexpr long MOST_ROWS = MOST_SUMS / 2;  // Of a panel.
constexpr long BLOCK_ROWS = 120;  // A multiple of MOST_ROWS.
// Inputs at once: what the caches hold of a block of rows. The sums wait in memory, which rounds nothing.
constexpr long PART_INPUTS = 4096;

// The sums of R rows and one panel, or its left half.
template <typename T, long R, bool both = true> struct Tile {
    Floats left[R], right[R];

    ALWAYS void begin(const float *bias) {
        Floats first = bias ? load(bias) : Floats{}, second = bias ? load(bias + SIMD_WIDTH) : Floats{};
#pragma GCC unroll 16
        for (long r = 0; r < R; r++) left[r] = first, right[r] = second;
    }
    ALWAYS void go_on(const float *sums, long stride) {
        for (long r = 0; r < R; r++) left[r] = load(sums + r * stride), right[r] = load(sums + r * stride + SIMD_WIDTH);
    }
    ALWAYS void wait(float *sums, long stride) const {
        for (long r = 0; r < R; r++) store(sums + r * stride, left[r]), store(sums + r * stride + SIMD_WIDTH, right[r]);
    }
    ALWAYS void add(const T *x, long x_stride, const T *panel, long inputs) {
        constexpr long step = PER_WORD<T>, width = both ? PANEL : SIMD_WIDTH;
        for (long i = 0; i < inputs; i += step, panel += step * width) {
            Words first = read<Words>(panel), second = both ? read<Words>(panel + step * SIMD_WIDTH) : Words{};
#pragma GCC unroll 16
            for (long r = 0; r < R; r++) {
                add_word<T>(left[r], x + r * x_stride + i, first);
                if (both) add_word<T>(right[r], x + r * x_stride + i, second);
            }
        }
    }
    ALWAYS void end(const T *plus, T *y, long stride, long columns) {
        for (long r = 0; r < R; r++, y += stride, plus += plus ? stride : 0) {
            if (columns >= PANEL) {
                store(y, plus ? left[r] + load(plus) : left[r]);
                store(y + SIMD_WIDTH, plus ? right[r] + load(plus + SIMD_WIDTH) : right[r]);
                continue;
            }
            long first = std::min(columns, SIMD_WIDTH), second = columns - first;
            store(y, plus ? left[r] + load(plus, first) : left[r], first);
            store(y + SIMD_WIDTH, plus ? right[r] + load(plus + SIMD_WIDTH, second) : right[r], second);
        }
    }
};

template <typename T> struct Layer {
    const T *x, *adapter_x, *w;
    const float *bias;
    const T *plus;
    T *y, *h;
    long inputs, outputs, h_stride;
    float *sums;  // [rows, outputs filled up to PANEL] between the parts, where there are several.
    long from, to;  // The inputs of this part.

    template <long R> void low_rank_tile(const Route<T> &route, long panel, long row) const {
        long columns = route.columns - panel * PANEL;
        if (columns > SIMD_WIDTH)
            low_rank<R, true>(route, panel, row);
        else if (columns > 0)
            low_rank<R, false>(route, panel, row);
    }
    template <long R, bool both> void low_rank(const Route<T> &route, long panel, long row) const {
        Tile<T, R, both> tile;
        tile.begin(nullptr);
        tile.add(adapter_x + row * inputs, inputs, route.a + panel * PANEL * inputs, inputs);
        tile.end(nullptr, h + row * h_stride + panel * PANEL, h_stride, both ? PANEL : SIMD_WIDTH);
    }
    // The part of the frozen weights, begun or gone on with; whether it is the last.
    template <long R> ALWAYS bool frozen(Tile<T, R> &tile, long panel, long row) const {
        long stride = (outputs + PANEL - 1) / PANEL * PANEL;
        float *waiting = sums + row * stride + panel * PANEL;
        if (from)
            tile.go_on(waiting, stride);
        else
            tile.begin(bias ? bias + panel * PANEL : nullptr);
        tile.add(x + row * inputs + from, inputs, w + panel * PANEL * inputs + from * PANEL, to - from);
        if (to < inputs) tile.wait(waiting, stride);
        return to == inputs;
    }
    // Fetches the lines that the end of a tile writes to, for which it would wait.
    template <long R> ALWAYS void expect(long panel, long row) const {
        for (long r = 0; r < R && to == inputs; r++)
            for (long at = 0; at < PANEL; at += 64 / sizeof(T))
                __builtin_prefetch(y + (row + r) * outputs + panel * PANEL + at, 1);
    }
    template <long R> ALWAYS void finish(Tile<T, R> &tile, const Route<T> &route, long panel, long row) const {
        if (route.width) {
            const T *b = route.b + panel * PANEL * route.b_inputs;
            tile.add(h + row * h_stride + route.firsts[panel], h_stride, b, route.b_inputs);
        }
        long place = row * outputs + panel * PANEL;
        tile.end(plus ? plus + place : nullptr, y + place, outputs, outputs - panel * PANEL);
    }
    // Rows of one route.
    template <long R> void tile(const Route<T> &route, long panel, long row) const {
        Tile<T, R> tile;
        expect<R>(panel, row);
        if (frozen(tile, panel, row)) finish(tile, route, panel, row);
    }
    // Rows of several routes: the frozen weights' sums of all of them, and then what each route adds to its own.
    template <long R> void begin_mixed(long panel, long row, float *mixed) const {
        Tile<T, R> tile;
        if (frozen(tile, panel, row)) tile.wait(mixed, PANEL);
    }
    template <long R> void finish_mixed(const Route<T> &route, long panel, long row, float *mixed) const {
        Tile<T, R> tile;
        tile.go_on(mixed, PANEL);
        finish(tile, route, panel, row);
    }
};

// f(from, rows) for tiles of nearly the same height, a constant.
template <typename F> void tiles(long start, long stop, F f) {
    long count = std::max(0L, stop - start + MOST_ROWS - 1) / MOST_ROWS;
    for (long i = 0; i < count; i++) {
        long from = start + (stop - start) * i / count, to = start + (stop - start) * (i + 1) / count;
        with_constant<MOST_ROWS>(to - from, [&](auto rows) { f(from, rows); });
    }
}

template <typename T> struct Product {
    const Route<T> *routes;
    long count;

    // f(route, from, to) for the routes that rows start..stop - 1 are on.
    template <typename F> void on_routes(long start, long stop, F f) const {
        for (long r = 0; r < count; r++) {
            long from = std::max(routes[r].start, start), to = std::min(routes[r].stop, stop);
            if (from < to) f(routes[r], from, to);
        }
    }
    void halfway(const Layer<T> &layer, const Route<T> &route, long panel, long start, long stop) const {
        tiles(std::max(route.start, start), std::min(route.stop, stop), [&](long from, auto rows) {
            layer.template low_rank_tile<rows>(route, panel, from);
        });
    }
    void sums(const Layer<T> &layer, long panel, long start, long stop) const {
        tiles(start, stop, [&](long from, auto rows) {
            const Route<T> *alone = nullptr;
            on_routes(from, from + rows, [&](const Route<T> &route, long first, long last) {
                if (last - first == rows) alone = &route;
            });
            alone ? layer.template tile<rows>(*alone, panel, from) : mixed<rows>(layer, panel, from);
        });
    }
    template <long R> void mixed(const Layer<T> &layer, long panel, long row) const {
        float sums[R * PANEL];
        layer.template begin_mixed<R>(panel, row, sums);
        if (layer.to < layer.inputs) return;
        on_routes(row, row + R, [&](const Route<T> &route, long first, long last) {
            with_constant<R>(last - first, [&](auto rows) {
                layer.template finish_mixed<rows>(route, panel, first, sums + (first - row) * PANEL);
            });
        });
    }
};

// f(panel, index, start, stop) for all panels, indices and blocks of rows, by all threads.
template <typename F> void each(long panels, long indices, long length, F f) {
    long blocks = (length + BLOCK_ROWS - 1) / BLOCK_ROWS;
#pragma omp for collapse(3) schedule(static)
    for (long panel = 0; panel < panels; panel++)
        for (long index = 0; index < indices; index++)
            for (long block = 0; block < blocks; block++)
                f(panel, index, block * BLOCK_ROWS, std::min(length, (block + 1) * BLOCK_ROWS));
}

template <typename T> void run(const Layer<T> &layer, const Product<T> &product, long length) {
    long panels = (layer.outputs + PANEL - 1) / PANEL, weights = layer.inputs * layer.outputs;
    // Of few rows the weights' way from memory counts, of many the multiplications.
    bool wakes = weights > WORTH_THREADS || length * weights > 16 * WORTH_THREADS;
    auto sums = room<float>(layer.inputs > PART_INPUTS ? length * panels * PANEL : 0);
#pragma omp parallel if (wakes)
    {
        Layer<T> part = layer;
        part.sums = sums.get();
        if (layer.h_stride)
            each(layer.h_stride / PANEL, product.count, length, [&](long panel, long route, long start, long stop) {
                product.halfway(part, product.routes[route], panel, start, stop);
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

using namespace products;

#define EXPORT(T, NAME)                                                                                              \
    extern "C" void NAME(const T *x, const T *adapter_x, const T *w, const float *bias, const T *plus, T *y, T *h,    \
                         long length, long inputs, long outputs, long h_stride, const Route<T> *routes, long count) { \
        Layer<T> layer{x, adapter_x, w, bias, plus, y, h, inputs, outputs, h_stride, nullptr, 0, 0};                  \
        run<T>(layer, {routes, count}, length);                                                                       \
    }
EXPORT(float, product_float32)
EXPORT(bf16, product_bfloat16)
