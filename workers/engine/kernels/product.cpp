// y = x W^T + bias + plus + h B^T, h = x A^T with each row's own A and B: a frozen layer under LoRA, rounded once.
//
// W, A and B lie in panels: 32 outputs side by side, input after input (bf16: pair of inputs after pair), so that a
// product reads memory in one direction. A row's sum goes over the inputs in order, then over h.
#include <memory>

#include "lanes.h"

// Named, since templates of several files share one library.
namespace products {

constexpr long PANEL = 2 * WIDTH;
constexpr long MOST_ROWS = 12;  // 24 sums in 32 registers, where the machine has those of 512 bits.
constexpr long BLOCK_ROWS = 10 * MOST_ROWS;
// Inputs at once: what the caches hold of a block of rows. The sums wait in memory, which rounds nothing.
constexpr long PART_INPUTS = 4096;

// Rows start..stop - 1 are `adapter`'s; its A has `width` outputs, a multiple of PANEL, or 0 for the base model alone.
// Of the h of panel p of B only bounds[2 p]..bounds[2 p + 1] - 1 are not multiplied by zeros.
template <typename T> struct Route {
    long start, stop, width;
    const T *a, *b;
    const long *bounds;
};

template <typename T> struct Step;  // Inputs that one instruction takes.
template <> struct Step<float> {
    static constexpr long inputs = 1;
    static inline void add(Lanes &sum, const float *x, Lanes w) { sum += *x * w; }
    static inline Lanes panel(const float *w) { return read<Lanes>(w); }
};
template <> struct Step<bf16> {
    static constexpr long inputs = 2;
    static inline void add(Lanes &sum, const bf16 *x, Words w) {
        uint32_t pair;
        std::memcpy(&pair, x, sizeof pair);
        add_pairs(sum, pair, w);
    }
    static inline Words panel(const bf16 *w) { return read<Words>(w); }
};

// The sums of R rows and one panel.
template <typename T, long R> struct Tile {
    Lanes left[R], right[R];

    inline void begin(const float *bias) {
        Lanes first = bias ? load(bias) : Lanes{}, second = bias ? load(bias + WIDTH) : Lanes{};
#pragma GCC unroll 16
        for (long r = 0; r < R; r++) left[r] = first, right[r] = second;
    }
    inline void go_on(const float *sums, long stride) {
        for (long r = 0; r < R; r++) left[r] = load(sums + r * stride), right[r] = load(sums + r * stride + WIDTH);
    }
    inline void wait(float *sums, long stride) const {
        for (long r = 0; r < R; r++) store(sums + r * stride, left[r]), store(sums + r * stride + WIDTH, right[r]);
    }
    inline void add(const T *x, long x_stride, const T *panel, long inputs) {
        constexpr long step = Step<T>::inputs;
        for (long i = 0; i < inputs; i += step, panel += step * PANEL) {
            auto first = Step<T>::panel(panel), second = Step<T>::panel(panel + step * WIDTH);
#pragma GCC unroll 16
            for (long r = 0; r < R; r++) {
                Step<T>::add(left[r], x + r * x_stride + i, first);
                Step<T>::add(right[r], x + r * x_stride + i, second);
            }
        }
    }
    inline void end(const T *plus, T *y, long stride, long columns) {
        for (long r = 0; r < R; r++, y += stride, plus += plus ? stride : 0) {
            if (columns >= PANEL) {
                store(y, plus ? left[r] + load(plus) : left[r]);
                store(y + WIDTH, plus ? right[r] + load(plus + WIDTH) : right[r]);
                continue;
            }
            long first = std::min(columns, WIDTH), second = columns - first;
            store(y, plus ? left[r] + load(plus, first) : left[r], first);
            store(y + WIDTH, plus ? right[r] + load(plus + WIDTH, second) : right[r], second);
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
        if (panel * PANEL >= route.width) return;
        Tile<T, R> tile;
        tile.begin(nullptr);
        tile.add(adapter_x + row * inputs, inputs, route.a + panel * PANEL * inputs, inputs);
        tile.end(nullptr, h + row * h_stride + panel * PANEL, h_stride, PANEL);
    }
    template <long R> void tile(const Route<T> &route, long panel, long row) const {
        Tile<T, R> tile;
        long stride = (outputs + PANEL - 1) / PANEL * PANEL;
        float *waiting = sums + row * stride + panel * PANEL;
        if (from)
            tile.go_on(waiting, stride);
        else
            tile.begin(bias ? bias + panel * PANEL : nullptr);
        tile.add(x + row * inputs + from, inputs, w + panel * PANEL * inputs + from * PANEL, to - from);
        if (to < inputs) return tile.wait(waiting, stride);
        if (route.width) {
            long start = route.bounds[2 * panel], end = route.bounds[2 * panel + 1];
            tile.add(h + row * h_stride + start, h_stride, route.b + panel * PANEL * route.width + start * PANEL, end - start);
        }
        long place = row * outputs + panel * PANEL;
        tile.end(plus ? plus + place : nullptr, y + place, outputs, outputs - panel * PANEL);
    }
};

template <typename T> using TileOf = void (Layer<T>::*)(const Route<T> &, long, long) const;
#define EACH(T, NAME) {                                                                                             \
    nullptr, &Layer<T>::template NAME<1>, &Layer<T>::template NAME<2>, &Layer<T>::template NAME<3>,                   \
    &Layer<T>::template NAME<4>, &Layer<T>::template NAME<5>, &Layer<T>::template NAME<6>, &Layer<T>::template NAME<7>, \
    &Layer<T>::template NAME<8>, &Layer<T>::template NAME<9>, &Layer<T>::template NAME<10>,                           \
    &Layer<T>::template NAME<11>, &Layer<T>::template NAME<12>}

// Rows start..stop - 1 by tiles of nearly the same height.
template <typename T>
void rows(const Layer<T> &layer, const TileOf<T> *tiles, const Route<T> &route, long panel, long start, long stop) {
    if (start >= stop) return;
    long count = (stop - start + MOST_ROWS - 1) / MOST_ROWS;
    for (long i = 0; i < count; i++) {
        long from = start + (stop - start) * i / count, to = start + (stop - start) * (i + 1) / count;
        (layer.*tiles[to - from])(route, panel, from);
    }
}

// `tiles` for all routes, panels and rows.
template <typename T>
void each(const Layer<T> &layer, const TileOf<T> *tiles, long panels, const Route<T> *routes, long count, long length) {
    long blocks = (length + BLOCK_ROWS - 1) / BLOCK_ROWS;
#pragma omp for collapse(2) schedule(static)
    for (long panel = 0; panel < panels; panel++)
        for (long block = 0; block < blocks; block++)
            for (long r = 0; r < count; r++) {
                long start = std::max(routes[r].start, block * BLOCK_ROWS);
                rows(layer, tiles, routes[r], panel, start, std::min(routes[r].stop, (block + 1) * BLOCK_ROWS));
            }
}

template <typename T> void run(const Layer<T> &layer, const Route<T> *routes, long count, long length) {
    static constexpr TileOf<T> low_rank[] = EACH(T, low_rank_tile), whole[] = EACH(T, tile);
    long panels = (layer.outputs + PANEL - 1) / PANEL;
    std::unique_ptr<float[]> sums(layer.inputs > PART_INPUTS ? new float[length * panels * PANEL] : nullptr);
#pragma omp parallel
    {
        Layer<T> part = layer;
        part.sums = sums.get();
        if (layer.h_stride) each(part, low_rank, layer.h_stride / PANEL, routes, count, length);
        for (part.from = 0; part.from < layer.inputs; part.from = part.to) {
            part.to = std::min(part.from + PART_INPUTS, layer.inputs);
            each(part, whole, panels, routes, count, length);
        }
    }
}

}  // namespace products

using namespace products;

#define EXPORT(T, NAME)                                                                                              \
    extern "C" void NAME(const T *x, const T *adapter_x, const T *w, const float *bias, const T *plus, T *y, T *h,    \
                         long length, long inputs, long outputs, long h_stride, const Route<T> *routes, long count) { \
        run<T>({x, adapter_x, w, bias, plus, y, h, inputs, outputs, h_stride, nullptr, 0, 0}, routes, count, length);            \
    }
EXPORT(float, product_float32)
EXPORT(bf16, product_bfloat16)
