// Sixteen fp32 numbers at once, read from and written to fp32 or bf16 memory.
//
// GCC's and Clang's vector types: they become whatever the machine has. Every sum in these kernels has one order, which
// depends on the numbers of one row alone, never on its neighbours, the threads or the alignment of memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

using bf16 = uint16_t;
constexpr long WIDTH = 16;

typedef float Lanes __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef int32_t Integers __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

// Unaligned memory as vectors.
template <typename V, typename T> inline V read(const T *from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
template <typename V, typename T> inline void write(T *to, V v) { std::memcpy(to, &v, sizeof v); }

inline Lanes all(float x) { return Lanes{} + x; }
inline Lanes load(const float *from) { return read<Lanes>(from); }
inline Lanes load(const bf16 *from) { return (Lanes)(__builtin_convertvector(read<Halves>(from), Words) << 16); }
inline void store(float *to, Lanes x) { write(to, x); }
inline void store(bf16 *to, Lanes x) {
    // To the nearest, ties to even; a NaN stays one.
    Words bits = (Words)x, rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    Words is_nan = (Words)(x != x);
    write(to, __builtin_convertvector((rounded & ~is_nan) | (0x7fc0 & is_nan), Halves));
}

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

// e^x to an ulp or two; 0 below -87.3. x = n ln 2 + r, and a polynomial of r (Cody and Waite; Cephes' expf).
inline Lanes exponential(Lanes x) {
    Lanes bounded = larger(x, all(-87.3f));
    bounded = bounded < all(88.7f) ? bounded : all(88.7f);
    Lanes scaled = bounded * 1.44269504f;
    Integers n = __builtin_convertvector(scaled + (scaled < 0 ? all(-0.5f) : all(0.5f)), Integers);
    Lanes whole = __builtin_convertvector(n, Lanes);
    Lanes r = bounded - whole * 0.693359375f;
    r = r - whole * -2.12194440e-4f;
    Lanes p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    Lanes value = p * (Lanes)((n + 127) << 23);
    Lanes kept = x < all(-87.3f) ? all(0.0f) : value;
    return x != x ? x : kept;
}
