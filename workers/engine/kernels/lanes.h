// Sixteen fp32 numbers at once, read from and written to fp32 or bf16 memory.
//
// GCC's and Clang's vector types: they become whatever the machine has. Every sum in these kernels has one order, which
// depends on the numbers of one row alone, never on its neighbours, the threads or the alignment of memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

using bf16 = uint16_t;
constexpr long WIDTH = 16;

typedef float Lanes __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef int32_t Integers __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

// Memory of which nothing is known yet.
template <typename T> std::unique_ptr<T[]> room(long count) { return std::unique_ptr<T[]>(new T[count]); }

// Unaligned memory as vectors.
template <typename V, typename T> inline V read(const T *from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
template <typename V, typename T> inline void write(T *to, V v) { std::memcpy(to, &v, sizeof v); }

inline Lanes all(float x) { return Lanes{} + x; }
inline Lanes load(const float *from) { return read<Lanes>(from); }
#ifdef __AVX512F__
// GCC takes five instructions to widen what one does.
inline Lanes load(const bf16 *from) {
    return (Lanes)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16);
}
#else
inline Lanes load(const bf16 *from) { return (Lanes)(__builtin_convertvector(read<Halves>(from), Words) << 16); }
#endif
inline void store(float *to, Lanes x) { write(to, x); }
// To the nearest, ties to even; a NaN stays one.
#ifdef __AVX512BF16__
inline void store(bf16 *to, Lanes x) { write(to, _mm512_cvtneps_pbh((__m512)x)); }
#else
inline void store(bf16 *to, Lanes x) {
    Words bits = (Words)x, rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    Words is_nan = (Words)(x != x);
    write(to, __builtin_convertvector((rounded & ~is_nan) | (0x7fc0 & is_nan), Halves));
}
#endif

template <typename T> inline Lanes load(const T *from, long count) {
    T part[WIDTH] = {};
    std::memcpy(part, from, count * sizeof(T));
    return load(part);
}
template <typename T> inline void store(T *to, Lanes x, long count) {
    T part[WIDTH];
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

// Numbers that one step multiplies at once.
template <typename T> constexpr long PER_WORD = 4 / sizeof(T);

// A pair of bf16 numbers, times sixteen pairs, added. Without the instruction for it this is two steps, each rounded.
inline void add_pairs(Lanes &sum, uint32_t x, Words pairs) {
#ifdef __AVX512BF16__
    sum = (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)(Words{} + x), (__m512bh)pairs);
#else
    sum += one(bf16(x)) * (Lanes)(pairs << 16);
    sum += one(bf16(x >> 16)) * (Lanes)(pairs & 0xffff0000u);
#endif
}

// A word of numbers, times sixteen words, added.
template <typename T> inline void add_word(Lanes &sum, const void *x, Words words);
template <> inline void add_word<float>(Lanes &sum, const void *x, Words words) {
    float number;
    std::memcpy(&number, x, sizeof number);
    sum += number * (Lanes)words;
}
template <> inline void add_word<bf16>(Lanes &sum, const void *x, Words words) {
    uint32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    add_pairs(sum, pair, words);
}

inline float sum(Lanes x) {
    float total = 0;
    for (long i = 0; i < WIDTH; i++) total += x[i];
    return total;
}
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
inline float largest(Lanes x) {
    float most = x[0];
    for (long i = 1; i < WIDTH; i++) most = std::max(most, x[i]);
    return most;
}

// e^x to an ulp or two; 0 below -87.3, and no more than e^88.3. x = n ln 2 + r, and a polynomial of r (Cody and Waite;
// Cephes' expf).
inline Lanes exponential(Lanes x) {
    // Beside this number a sum has no place for fractions: n is its last bits.
    constexpr float WHOLE = 3 << 22;
    Lanes bounded = larger(x, all(-87.3f));
    bounded = bounded < all(88.3f) ? bounded : all(88.3f);
    Lanes shifted = bounded * 1.44269504f + WHOLE;
    Lanes n = shifted - WHOLE;
    Lanes r = bounded - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    Lanes p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    Lanes value = p * (Lanes)(((Integers)shifted + 127) << 23);
    return x < all(-87.3f) ? all(0.0f) : x != x ? x : value;
}

// f(place, count) for each sixteen of n numbers: `count` is Full{}, or a number where fewer are left at the end.
struct Full {};
template <typename T> inline Lanes load(const T *from, Full) { return load(from); }
template <typename T> inline void store(T *to, Lanes x, Full) { store(to, x); }
template <typename F> inline void each(long n, F f) {
    long i = 0;
    for (; i + WIDTH <= n; i += WIDTH) f(i, Full{});
    if (i < n) f(i, n - i);
}

// Numbers in one call from which on it is worth the twenty microseconds that waking a thread takes.
constexpr long WORTH_THREADS = 1 << 17;
