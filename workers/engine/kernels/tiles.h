// What attention is made of: dot products of a few rows with many, and sums of many rows weighted for each of a few.
//
// The many go through in blocks of 16: for dot products as panels, with the same 32 bits of all 16 side by side, and
// weights as [blocks, rows, 16]. A dot product's sum goes over the dimensions in order, a weighted sum over the rows.
#pragma once

#include "square.h"

namespace attention {

#ifdef __AVX512F__
constexpr long MOST_ROWS = 12;  // 24 sums in 32 registers.
#else
constexpr long MOST_ROWS = 3;
#endif

// The panel of `count` rows, 16 at most, of `words` words each; missing rows are zeros.
template <typename RowAt> void pack(RowAt row, long count, long words, uint32_t *panel) {
    const char *rows[WIDTH];
    for (long i = 0; i < count; i++) rows[i] = (const char *)row(i);
    for (long word = 0; word < words; word += WIDTH) {
        long width = std::min(WIDTH, words - word);
        Words square[WIDTH];
        if (count == WIDTH && width == WIDTH) {
            for (long i = 0; i < WIDTH; i++) square[i] = read<Words>(rows[i] + 4 * word);
        } else {
            std::memset(square, 0, sizeof square);
            for (long i = 0; i < count; i++) std::memcpy(&square[i], rows[i] + 4 * word, 4 * width);
        }
        transpose(square);
        for (long i = 0; i < width; i++) write(panel + (word + i) * WIDTH, square[i]);
    }
}

// All numbers of a vector by halves.
template <typename Operation> inline float folded(Lanes x, Operation operation) {
#define TURNED(...) (Lanes) SHUFFLE((Words)x, (Words)x, __VA_ARGS__)
    x = operation(x, TURNED(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    x = operation(x, TURNED(4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    x = operation(x, TURNED(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    x = operation(x, TURNED(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
#undef TURNED
    return x[0];
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
    Lanes sums[R][P] = {};
    for (long word = 0; word < words; word++, panel += WIDTH, few += R) {
        Words column[P];
#pragma GCC unroll 2
        for (long p = 0; p < P; p++) column[p] = read<Words>(panel + p * words * WIDTH);
#pragma GCC unroll 12
        for (long r = 0; r < R; r++)
#pragma GCC unroll 2
            for (long p = 0; p < P; p++) add_word<T>(sums[r][p], few + r, column[p]);
    }
    for (long p = 0; p < P; p++)
        for (long r = 0; r < R; r++) store(to + (p * R + r) * WIDTH, sums[r][p] * scale);
}

// Adds rows from..to - 1 to P vectors of each of R sums, which are `size` numbers long.
template <typename T, long R, long P>
inline void mixed(const float *weights, const T *rows, long stride, long from, long to, float *sums, long size) {
    Lanes part[R][P];
    for (long r = 0; r < R; r++)
        for (long p = 0; p < P; p++) part[r][p] = load(sums + r * size + p * WIDTH);
    for (long i = from; i < to; i++) {
        const float *weight = weights + i / WIDTH * R * WIDTH + i % WIDTH;
        Lanes row[P];
#pragma GCC unroll 4
        for (long p = 0; p < P; p++) row[p] = load(rows + i * stride + p * WIDTH);
#pragma GCC unroll 12
        for (long r = 0; r < R; r++)
#pragma GCC unroll 4
            for (long p = 0; p < P; p++) part[r][p] += weight[r * WIDTH] * row[p];
    }
    for (long r = 0; r < R; r++)
        for (long p = 0; p < P; p++) store(sums + r * size + p * WIDTH, part[r][p]);
}

template <typename T, long R> struct Rows {
    static void dot(const uint32_t *few, const uint32_t *panels, long count, long words, float scale, float *to) {
        for (; count >= 2; count -= 2, panels += 2 * words * WIDTH, to += 2 * R * WIDTH)
            dots<T, R, 2>(few, panels, words, scale, to);
        if (count) dots<T, R, 1>(few, panels, words, scale, to);
    }
    static void mix(const float *weights, const T *rows, long stride, long from, long to, float *sums, long size) {
        long at = 0;
        for (; R <= MOST_ROWS / 2 && at + 4 * WIDTH <= size; at += 4 * WIDTH)
            mixed<T, R, 4>(weights, rows + at, stride, from, to, sums + at, size);
        for (; at + 2 * WIDTH <= size; at += 2 * WIDTH)
            mixed<T, R, 2>(weights, rows + at, stride, from, to, sums + at, size);
        if (at < size) mixed<T, R, 1>(weights, rows + at, stride, from, to, sums + at, size);
    }
};

#define EACH(NAME) {                                                                                                   \
    nullptr, Rows<T, 1>::NAME, Rows<T, 2>::NAME, Rows<T, 3>::NAME, Rows<T, 4>::NAME, Rows<T, 5>::NAME,                 \
    Rows<T, 6>::NAME, Rows<T, 7>::NAME, Rows<T, 8>::NAME, Rows<T, 9>::NAME, Rows<T, 10>::NAME, Rows<T, 11>::NAME,      \
    Rows<T, 12>::NAME}

// Dot products of `rows` gathered rows with the rows of `count` panels: [count, rows, 16].
template <typename T>
void dot(long rows, const uint32_t *few, const uint32_t *panels, long count, long words, float scale, float *to) {
    static constexpr decltype(&Rows<T, 1>::dot) of[] = EACH(dot);
    of[rows](few, panels, count, words, scale, to);
}

// Adds to `sums`, [count, size], the rows from..to - 1 of `rows`, times `weights`, [blocks, count, 16].
template <typename T>
void mix(long count, const float *weights, const T *rows, long stride, long from, long to, float *sums, long size) {
    static constexpr decltype(&Rows<T, 1>::mix) of[] = EACH(mix);
    of[count](weights, rows, stride, from, to, sums, size);
}

}  // namespace attention
