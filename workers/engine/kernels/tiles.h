// The two products of attention: dot products of a few rows with many, and weighted sums of many rows for each of a
// few.
//
// The many are read in blocks of 16: in dot products as panels, which have the same 32 bits of all 16 rows side by
// side; weights are [blocks, rows, 16]. A dot product adds the dimensions in order, a weighted sum the rows.
#pragma once

#include "square.h"

namespace attention {

constexpr long MOST_ROWS = MOST_SUMS / 2;  // Of two panels.

// The panel of `count` rows, 16 at most, of `words` words each; missing rows are zeros.
template <typename RowAt> void pack(RowAt row, long count, long words, uint32_t *panel) {
    const char *rows[SIMD_WIDTH];
    for (long i = 0; i < count; i++) rows[i] = (const char *)row(i);
    for (long word = 0; word < words; word += SIMD_WIDTH) {
        long width = std::min(SIMD_WIDTH, words - word);
        Words square[SIMD_WIDTH];
        if (count == SIMD_WIDTH && width == SIMD_WIDTH) {
            for (long i = 0; i < SIMD_WIDTH; i++) square[i] = read<Words>(rows[i] + 4 * word);
        } else {
            std::memset(square, 0, sizeof square);
            for (long i = 0; i < count; i++) std::memcpy(&square[i], rows[i] + 4 * word, 4 * width);
        }
        transpose(square);
        for (long i = 0; i < width; i++) write(panel + (word + i) * SIMD_WIDTH, square[i]);
    }
}

// Rows side by side, word after word: what a tile reads as `few`.
template <typename RowAt> void gather(RowAt row, long count, long words, uint32_t *few) {
    for (long r = 0; r < count; r++) {
        const char *from = (const char *)row(r);
        for (long word = 0; word < words; word++) std::memcpy(few + word * count + r, from + 4 * word, 4);
    }
}

// Dot products of R rows with P panels, times `scale`.
template <typename T, long R, long P>
inline void dots(const uint32_t *few, const uint32_t *panel, long words, float scale, float *to) {
    Floats sums[R][P] = {};
    for (long word = 0; word < words; word++, panel += SIMD_WIDTH, few += R) {
        Words column[P];
#pragma GCC unroll 2
        for (long p = 0; p < P; p++) column[p] = read<Words>(panel + p * words * SIMD_WIDTH);
#pragma GCC unroll 12
        for (long r = 0; r < R; r++)
#pragma GCC unroll 2
            for (long p = 0; p < P; p++) add_word<T>(sums[r][p], few + r, column[p]);
    }
    for (long p = 0; p < P; p++)
        for (long r = 0; r < R; r++) store(to + (p * R + r) * SIMD_WIDTH, sums[r][p] * scale);
}

// Adds rows from..to - 1 to P vectors of each of R sums, which are `size` numbers long.
template <typename T, long R, long P>
inline void mixed(const float *weights, const T *rows, long stride, long from, long to, float *sums, long size) {
    Floats part[R][P];
    for (long r = 0; r < R; r++)
        for (long p = 0; p < P; p++) part[r][p] = load(sums + r * size + p * SIMD_WIDTH);
    for (long i = from; i < to; i++) {
        const float *weight = weights + i / SIMD_WIDTH * R * SIMD_WIDTH + i % SIMD_WIDTH;
        Floats row[P];
#pragma GCC unroll 4
        for (long p = 0; p < P; p++) row[p] = load(rows + i * stride + p * SIMD_WIDTH);
#pragma GCC unroll 12
        for (long r = 0; r < R; r++)
#pragma GCC unroll 4
            for (long p = 0; p < P; p++) part[r][p] += weight[r * SIMD_WIDTH] * row[p];
    }
    for (long r = 0; r < R; r++)
        for (long p = 0; p < P; p++) store(sums + r * size + p * SIMD_WIDTH, part[r][p]);
}

template <typename T, long R> struct Rows {
    static void dot(const uint32_t *few, const uint32_t *panels, long count, long words, float scale, float *to) {
        for (; count >= 2; count -= 2, panels += 2 * words * SIMD_WIDTH, to += 2 * R * SIMD_WIDTH)
            dots<T, R, 2>(few, panels, words, scale, to);
        if (count) dots<T, R, 1>(few, panels, words, scale, to);
    }
    static void mix(const float *weights, const T *rows, long stride, long from, long to, float *sums, long size) {
        long at = 0;
        for (; R <= MOST_ROWS / 2 && at + 4 * SIMD_WIDTH <= size; at += 4 * SIMD_WIDTH)
            mixed<T, R, 4>(weights, rows + at, stride, from, to, sums + at, size);
        for (; at + 2 * SIMD_WIDTH <= size; at += 2 * SIMD_WIDTH)
            mixed<T, R, 2>(weights, rows + at, stride, from, to, sums + at, size);
        if (at < size) mixed<T, R, 1>(weights, rows + at, stride, from, to, sums + at, size);
    }
};

// Dot products of `rows` gathered rows with the rows of `count` panels: [count, rows, 16].
template <typename T>
void dot(long rows, const uint32_t *few, const uint32_t *panels, long count, long words, float scale, float *to) {
    with_constant<MOST_ROWS>(rows, [&](auto r) { Rows<T, r>::dot(few, panels, count, words, scale, to); });
}

// Adds to `sums`, [count, size], the rows from..to - 1 of `rows`, times `weights`, [blocks, count, 16].
template <typename T>
void mix(long count, const float *weights, const T *rows, long stride, long from, long to, float *sums, long size) {
    with_constant<MOST_ROWS>(count, [&](auto r) { Rows<T, r>::mix(weights, rows, stride, from, to, sums, size); });
}

}  // namespace attention
