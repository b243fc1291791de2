// The softmax of a row of logits over the vocabulary, by one function for the sampler and the trainer, so that their
// numbers are the same to the bit.
#pragma once

#include "lanes.h"

namespace vocabulary {

// Exponentials are summed in fp32 over so many logits, sixteen sums side by side, and in fp64 from there on.
constexpr long BLOCK = 256;
typedef double Doubles __attribute__((vector_size(64)));

inline double total(Lanes x) {
    typedef float Half __attribute__((vector_size(32)));
    float parts[WIDTH];
    store(parts, x);
    Doubles both = __builtin_convertvector(read<Half>(parts), Doubles) +
                   __builtin_convertvector(read<Half>(parts + WIDTH / 2), Doubles);
    return ((both[0] + both[4]) + (both[1] + both[5])) + ((both[2] + both[6]) + (both[3] + both[7]));
}

// Logits; after the last of a row, tokens that are impossible.
template <typename T> inline Lanes logits(const T *from, Full) { return load(from); }
template <typename T> inline Lanes logits(const T *from, long count) {
    Lanes x = load(from, count);
    for (long i = count; i < WIDTH; i++) x[i] = -INFINITY;
    return x;
}

struct Softmax {
    float highest;
    double total, weighted;  // Sums of e^d and of d e^d, where d = logit - highest.

    double log_total() const { return std::log(total); }
    float logprob(float logit) const { return double(logit) - highest - log_total(); }
    float entropy() const { return log_total() - weighted / total; }
};

// Also each block's sum of e^d, where wanted.
template <typename T> Softmax softmax(const T *row, long size, double *sums);

}  // namespace vocabulary
