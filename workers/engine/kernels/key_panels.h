// The panels of a pass, and the keys of a sequence that begins with another's.
#pragma once

#include "attention.h"

namespace attention {

// Rows of each sequence and head as panels.
struct Panels {
    long heads, words;
    std::vector<long> starts{0};
    std::unique_ptr<uint32_t[]> memory;

    Panels(long heads, long row_bytes) : heads(heads), words(row_bytes / 4) {}
    void add(long rows) { starts.push_back(starts.back() + (rows + SIMD_WIDTH - 1) / SIMD_WIDTH); }
    void allocate() { memory = buffer<uint32_t>(starts.back() * heads * words * SIMD_WIDTH); }
    uint32_t *of(long sequence, long head) const {
        long start = starts[sequence], count = starts[sequence + 1] - start;
        return memory.get() + (start * heads + head * count) * words * SIMD_WIDTH;
    }
    template <typename RowAt> void fill(long sequence, long head, long rows, RowAt row) {
        uint32_t *panel = of(sequence, head);
        for (long i = 0; i < rows; i += SIMD_WIDTH, panel += words * SIMD_WIDTH)
            pack([&](long r) { return row(i + r); }, std::min(SIMD_WIDTH, rows - i), words, panel);
    }
};

// Keys or values; the panels that a prefix fills are its leader's alone.
template <typename T> struct KeyPanels : Panels {
    const Shape &shape;

    KeyPanels(const Shape &shape, long size) : Panels(shape.kv_heads, size * sizeof(T)), shape(shape) {}
    long borrowed(long sequence) const {
        const Sequence &s = shape.sequences[sequence];
        return s.leader == sequence ? 0 : s.prefix / SIMD_WIDTH;
    }
    void add(long sequence) { Panels::add(key_count(shape.sequences[sequence]) - borrowed(sequence) * SIMD_WIDTH); }
    void add_none() { Panels::add(0); }
    void fill(long sequence, long head, Series<const T> rows) {
        long first = borrowed(sequence) * SIMD_WIDTH, count = key_count(shape.sequences[sequence]) - first;
        Panels::fill(sequence, head, count, [&](long i) { return rows.at(first + i); });
    }
    // Dot products of `rows` gathered rows with the sequence's panels first..last - 1.
    void dots(long sequence, long head, long rows, const uint32_t *few, long first, long last, float scale,
              float *to) const {
        long own = borrowed(sequence), border = std::min(std::max(own, first), last), size = words * SIMD_WIDTH;
        if (first < border) {
            const uint32_t *panels = of(shape.sequences[sequence].leader, head) + first * size;
            dot<T>(rows, few, panels, border - first, words, scale, to);
        }
        if (border < last) {
            const uint32_t *panels = of(sequence, head) + (border - own) * size;
            dot<T>(rows, few, panels, last - border, words, scale, to + (border - first) * rows * SIMD_WIDTH);
        }
    }
};

// Adds the weighted rows from..to - 1 of a series to `sums`; the first block of weights begins with row `first`.
template <typename T>
void mix_series(long count, const float *weights, Series<const T> rows, long first, long from, long to, float *sums,
                long size) {
    long border = std::min(std::max(rows.count, from), to);
    const T *before = rows.before + first * rows.stride, *own = rows.own + (first - rows.count) * rows.stride;
    if (from < border) mix<T>(count, weights, before, rows.stride, from - first, border - first, sums, size);
    if (border < to) mix<T>(count, weights, own, rows.stride, border - first, to - first, sums, size);
}

}  // namespace attention
