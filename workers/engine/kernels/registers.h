// The vector registers of the instruction level that this file is compiled for: how wide, how many, and what the
// compiler's vector types do not reach. Nothing outside this file asks which processor it is.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

using bf16 = uint16_t;

#if defined(__AVX512F__)
constexpr long REGISTER_BYTES = 64, REGISTERS = 32;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr long REGISTER_BYTES = 32, REGISTERS = 16;
#elif defined(__ARM_NEON)
constexpr long REGISTER_BYTES = 16, REGISTERS = 32;
#else
#error "The kernels need AVX2 with FMA, AVX-512 or NEON."
#endif

// Inlined: a sum stays in registers only within one function.
#define ALWAYS __attribute__((always_inline)) inline

// One register of numbers.
template <typename N> struct RegisterOf {
    typedef N type __attribute__((vector_size(REGISTER_BYTES)));
};
template <typename N> using Register = typename RegisterOf<N>::type;
constexpr long REGISTER_WIDTH = REGISTER_BYTES / 4;

// a * b + c, rounded once. In a * b + c * d it says which of the products is not rounded, which compilers choose
// differently.
#if defined(__AVX512F__)
ALWAYS Register<float> fused(Register<float> a, Register<float> b, Register<float> c) {
    return (Register<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif defined(__AVX2__)
ALWAYS Register<float> fused(Register<float> a, Register<float> b, Register<float> c) {
    return (Register<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#else
ALWAYS Register<float> fused(Register<float> a, Register<float> b, Register<float> c) {
    return (Register<float>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#endif

// bf16 numbers to 32-bit words, and the lower halves of words to bf16 numbers. From vector types GCC makes five
// instructions of either.
#if defined(__AVX512F__)
ALWAYS Register<uint32_t> widened(const bf16 *from) {
    return (Register<uint32_t>)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
}
ALWAYS void narrowed(bf16 *to, Register<uint32_t> x) {
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16((__m512i)x));
}
#elif defined(__AVX2__)
ALWAYS Register<uint32_t> widened(const bf16 *from) {
    return (Register<uint32_t>)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
}
ALWAYS void narrowed(bf16 *to, Register<uint32_t> x) {
    __m128i low = _mm256_castsi256_si128((__m256i)x), high = _mm256_extracti128_si256((__m256i)x, 1);
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi32(low, high));
}
#else
ALWAYS Register<uint32_t> widened(const bf16 *from) { return (Register<uint32_t>)vmovl_u16(vld1_u16(from)); }
ALWAYS void narrowed(bf16 *to, Register<uint32_t> x) { vst1_u16(to, vmovn_u32((uint32x4_t)x)); }
#endif

// The upper and the lower halves of the 64-bit products a * b.
#if defined(__AVX512F__)
ALWAYS void multiplied(Register<uint32_t> a, uint32_t b, Register<uint32_t> &high, Register<uint32_t> &low) {
    __m512i factor = _mm512_set1_epi32(b), even = _mm512_mul_epu32((__m512i)a, factor);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), factor);
    high = (Register<uint32_t>)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    low = (Register<uint32_t>)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
#elif defined(__AVX2__)
ALWAYS void multiplied(Register<uint32_t> a, uint32_t b, Register<uint32_t> &high, Register<uint32_t> &low) {
    __m256i factor = _mm256_set1_epi32(b), even = _mm256_mul_epu32((__m256i)a, factor);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
    high = (Register<uint32_t>)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    low = (Register<uint32_t>)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
#else
ALWAYS void multiplied(Register<uint32_t> a, uint32_t b, Register<uint32_t> &high, Register<uint32_t> &low) {
    uint32x4_t x = (uint32x4_t)a;
    uint32x4_t first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(x), b));
    uint32x4_t second = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(x), b));
    high = (Register<uint32_t>)vuzp2q_u32(first, second), low = (Register<uint32_t>)vuzp1q_u32(first, second);
}
#endif
