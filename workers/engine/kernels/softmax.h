// The softmax of a row of logits over the vocabulary: one function for sampling and training, so that both give the
// same bits.
#pragma once

#include "simd.h"

namespace vocabulary {

// Logits whose exponentials are summed in fp32, in the sixteen sums of a vector; the sums of blocks are added in fp64.
constexpr long BLOCK = 256;

// The sum of all numbers in fp64: first those eight apart.
inline double total(Floats x) {
    float parts[SIMD_WIDTH];
    store(parts, x);
    double sums[8];
    for (long i = 0; i < 8; i++) sums[i] = double(parts[i]) + parts[i + 8];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Logits; those after the last of a row are -infinity.
template <typename T> inline Floats logits(const T *from, Full) { return load(from); }
template <typename T> inline Floats logits(const T *from, long count) {
    float numbers[SIMD_WIDTH];
    store(numbers, load(from, count));
    std::fill(numbers + count, numbers + SIMD_WIDTH, -INFINITY);
    return load(numbers);
}

struct Softmax {
    float highest;
    double total, weighted;  // Sums of e^d and of d e^d, where d = logit - highest.

    double log_total() const { return std::log(total); }
    float logprob(float logit) const { return double(logit) - highest - log_total(); }
    float entropy() const { return log_total() - weighted / total; }
};

// `sums`, unless null, receives each block's sum of e^d.
template <typename T> Softmax softmax(const T *row, long size, double *sums);

}  // namespace vocabulary
