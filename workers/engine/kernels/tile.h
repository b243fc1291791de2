// The sums of some rows and one panel of a product, in registers.
#pragma once

#include "panel.h"

namespace products {

// y = the sums of a row, plus `plus`, rounded; `columns` numbers.
template <typename T> ALWAYS void finish_row(Floats left, Floats right, const T *plus, T *y, long columns) {
    if (columns >= PANEL) {
        store(y, plus ? left + load(plus) : left);
        store(y + SIMD_WIDTH, plus ? right + load(plus + SIMD_WIDTH) : right);
        return;
    }
    long first = std::min(columns, SIMD_WIDTH), second = columns - first;
    store(y, plus ? left + load(plus, first) : left, first);
    store(y + SIMD_WIDTH, plus ? right + load(plus + SIMD_WIDTH, second) : right, second);
}

// Inputs of a row that are contiguous in the memory that a product reads.
constexpr long STEP_INPUTS = 32;

// Rows of a product: one after the other, or the first STEP_INPUTS inputs of all rows, then the next ones of all rows.
template <typename T> struct Rows {
    const T *first;
    long stride, next = STEP_INPUTS;

    // `input` is a multiple of STEP_INPUTS.
    const T *at(long row, long input) const { return first + row * stride + input / STEP_INPUTS * next; }
    Rows from(long row, long input) const { return {at(row, input), stride, next}; }
};

// The sums of R rows with a panel, or with its left half.
template <typename T, long R, bool both = true> struct Tile {
    Floats left[R], right[R];

    ALWAYS void begin(const float *bias) {
        Floats first = bias ? load(bias) : Floats{}, second = bias ? load(bias + SIMD_WIDTH) : Floats{};
#pragma GCC unroll 16
        for (long r = 0; r < R; r++) left[r] = first, right[r] = second;
    }
    ALWAYS void load_sums(const float *sums, long stride) {
        for (long r = 0; r < R; r++) left[r] = load(sums + r * stride), right[r] = load(sums + r * stride + SIMD_WIDTH);
    }
    ALWAYS void store_sums(float *sums, long stride) const {
        for (long r = 0; r < R; r++) store(sums + r * stride, left[r]), store(sums + r * stride + SIMD_WIDTH, right[r]);
    }
    ALWAYS void add(Rows<T> rows, const T *panel, long inputs) {
        const T *x = rows.first;
        constexpr long step = PER_WORD<T>, width = both ? PANEL : SIMD_WIDTH;
        for (long i = 0; i < inputs; i += step, panel += step * width) {
            Words first = read<Words>(panel), second = both ? read<Words>(panel + step * SIMD_WIDTH) : Words{};
#pragma GCC unroll 16
            for (long r = 0; r < R; r++) {
                add_word<T>(left[r], x + r * rows.stride + i, first);
                if (both) add_word<T>(right[r], x + r * rows.stride + i, second);
            }
        }
    }
    ALWAYS void end(const T *plus, T *y, long stride, long columns) {
        for (long r = 0; r < R; r++, y += stride, plus += plus ? stride : 0)
            finish_row(left[r], right[r], plus, y, columns);
    }
};

// Most rows of a tile.
template <typename T> constexpr long MOST_ROWS = MOST_SUMS / 2;

// What a thread sets up while it works on tiles.
template <typename T> struct TileScope {};

// Whether tiles read rows faster where the same inputs of all rows are contiguous.
template <typename T> constexpr bool READS_STEPS = false;

}  // namespace products

#ifdef __AMX_BF16__
#include "matrix_tile.h"
#endif
