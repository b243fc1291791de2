// Vectors of SIMD_WIDTH fp32 numbers, read from and written to fp32 or bf16 memory.
//
// A vector takes as many registers as the level needs (pair.h), so panels and sums are the same on every processor.
// Every sum in these kernels has one order, which depends on one row alone: not on the rows beside it, the number of
// threads or the alignment of memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "pair.h"

constexpr long SIMD_WIDTH = 16;
using Floats = VectorOf<float, 4 * SIMD_WIDTH>::type;
using Words = VectorOf<uint32_t, 4 * SIMD_WIDTH>::type;
using Ints = VectorOf<int32_t, 4 * SIMD_WIDTH>::type;

// Vectors of sums that fit in registers, beside the vectors that are added to them.
constexpr long MOST_SUMS = REGISTERS * 3 / 4 * REGISTER_BYTES / (4 * SIMD_WIDTH);

// `count` numbers that are not set.
template <typename T> std::unique_ptr<T[]> buffer(long count) { return std::unique_ptr<T[]>(new T[count]); }

// Unaligned memory as vectors.
template <typename V, typename T> ALWAYS V read(const T *from) {
    V v;
    each_register(v, [&](auto &part, long place) { std::memcpy(&part, (const char *)from + 4 * place, sizeof part); });
    return v;
}
template <typename V, typename T> ALWAYS void write(T *to, V v) {
    each_register(v, [&](auto &part, long place) { std::memcpy((char *)to + 4 * place, &part, sizeof part); });
}

ALWAYS Floats all(float x) { return Floats{} + x; }
ALWAYS Words words(uint32_t x) { return Words{} + x; }
ALWAYS Floats load(const float *from) { return read<Floats>(from); }
ALWAYS Floats load(const bf16 *from) {
    Words x;
    each_register(x, [&](auto &part, long place) { part = widened(from + place); });
    return as<float>(x << 16);
}
ALWAYS void store(float *to, Floats x) { write(to, x); }
// To the nearest, ties to even; a NaN stays one.
#ifdef __AVX512BF16__
ALWAYS void store(bf16 *to, Floats x) {
    __m256bh rounded = _mm512_cvtneps_pbh((__m512)x);
    std::memcpy(to, &rounded, sizeof rounded);
}
#else
ALWAYS void store(bf16 *to, Floats x) {
    Words bits = as<uint32_t>(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    rounded = select(x != x, words(0x7fc0), rounded);
    each_register(rounded, [&](auto &part, long place) { narrowed(to + place, part); });
}
#endif

template <typename T> inline Floats load(const T *from, long count) {
    T part[SIMD_WIDTH] = {};
    std::memcpy(part, from, count * sizeof(T));
    return load(part);
}
template <typename T> inline void store(T *to, Floats x, long count) {
    T part[SIMD_WIDTH];
    store(part, x);
    std::memcpy(to, part, count * sizeof(T));
}

inline float one(float x) { return x; }
inline float one(bf16 x) {
    uint32_t bits = uint32_t(x) << 16;
    float wide;
    std::memcpy(&wide, &bits, 4);
    return wide;
}

inline void put(float *to, float x) { *to = x; }
inline void put(bf16 *to, float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    *to = x != x ? 0x7fc0 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

// Numbers in a 32-bit word, which one step multiplies together.
template <typename T> constexpr long PER_WORD = 4 / sizeof(T);

// sum += x * words: one word of x with each of sixteen words. In bf16 a word is a pair of numbers, and both products
// are added; without the instruction for that in two steps, each rounded.
template <typename T> ALWAYS void add_word(Floats &sum, const void *x, Words words);
template <> ALWAYS void add_word<float>(Floats &sum, const void *x, Words words) {
    float number;
    std::memcpy(&number, x, sizeof number);
    sum += number * as<float>(words);
}
template <> ALWAYS void add_word<bf16>(Floats &sum, const void *x, Words pairs) {
    uint32_t pair;
    std::memcpy(&pair, x, sizeof pair);
#ifdef __AVX512BF16__
    sum = (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)words(pair), (__m512bh)pairs);
#else
    Words both = words(pair);
    sum += as<float>(both << 16) * as<float>(pairs << 16);
    sum += as<float>(both & 0xffff0000u) * as<float>(pairs & 0xffff0000u);
#endif
}

inline float sum(Floats x) {
    float parts[SIMD_WIDTH], total = 0;
    store(parts, x);
    for (float part : parts) total += part;
    return total;
}
struct Larger {
    template <typename V> ALWAYS V operator()(V a, V b) const { return select(a > b, a, b); }
};
struct Plus {
    template <typename V> ALWAYS V operator()(V a, V b) const { return a + b; }
};
ALWAYS Floats larger(Floats a, Floats b) { return Larger{}(a, b); }

// e^x to an ulp or two; 0 below -87.3, and no more than e^88.3. x = n ln 2 + r, and a polynomial of r (Cody and Waite;
// Cephes' expf).
ALWAYS Floats exponential(Floats x) {
    // Added to this number, x rounds to an integer: n is the last bits of the sum.
    constexpr float WHOLE = 3 << 22;
    Floats bounded = larger(x, all(-87.3f));
    bounded = select(bounded < all(88.3f), bounded, all(88.3f));
    Floats shifted = bounded * 1.44269504f + WHOLE;
    Floats n = shifted - WHOLE;
    Floats r = bounded - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    Floats p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    Floats value = p * as<float>((as<int32_t>(shifted) + 127) << 23);
    return select(x < all(-87.3f), all(0.0f), select(x != x, x, value));
}

// f(i, count) for each vector of n numbers, from number i on: `count` is Full{}, or how many are left at the end.
struct Full {};
template <typename T> ALWAYS Floats load(const T *from, Full) { return load(from); }
template <typename T> ALWAYS void store(T *to, Floats x, Full) { store(to, x); }
template <typename F> inline void each(long n, F f) {
    long i = 0;
    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) f(i, Full{});
    if (i < n) f(i, n - i);
}

// Calls on more numbers than this run in parallel: to wake a thread takes twenty microseconds.
constexpr long WORTH_THREADS = 1 << 17;

// f(n) with an n from 1 to MOST as a constant.
template <long MOST, typename F> ALWAYS void with_constant(long n, F f) {
    if constexpr (MOST > 1)
        if (n < MOST) return with_constant<MOST - 1>(n, f);
    f(std::integral_constant<long, MOST>{});
}
