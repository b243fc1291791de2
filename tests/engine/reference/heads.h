// Attention's inputs, and what is seen by which token.
#pragma once

#include "estimate.h"
#include "interface.h"
#include "random.h"

using kernels::Sequence;

// [tokens, heads, size], with a few numbers between tokens.
template <typename T> struct Heads {
    long tokens, heads, size, stride;
    Numbers<T> numbers;

    Heads(long tokens, long heads, long size, Random &random, float spread = 1, long gap = 8)
        : tokens(tokens), heads(heads), size(size), stride(heads * size + gap),
          numbers(random.numbers<T>(tokens * stride, spread)) {}
    const T *at(long token, long head) const { return numbers.data() + token * stride + head * size; }
};

struct Attending {
    long heads, kv_heads, size, value_size;
    float scale;
    long window;
    std::vector<Sequence> sequences;

    long kv_head(long head) const { return head / (heads / kv_heads); }
    long first_seen(long position) const { return std::max(0L, position + 1 - window); }
};

inline constexpr long NO_WINDOW = 1L << 62;

template <typename T> Estimate dot(const T *a, const T *b, long size, float scale) {
    Sum sum;
    for (long i = 0; i < size; i++) sum.add(wide(a[i]), wide(b[i]));
    return sum.total() * Estimate{scale};
}

// The weights of one token for the keys that key(i) gives, i from `from` to `to`: e^score over their sum. The largest
// score, which is taken from all of them first, cancels.
template <typename T, typename KeyAt>
std::vector<Estimate> weights_of(const T *query, KeyAt key, long from, long to, long size, float scale) {
    std::vector<Estimate> weights;
    double most = -INFINITY;
    for (long i = from; i <= to; i++) {
        weights.push_back(dot(query, key(i), size, scale));
        most = std::max(most, weights.back().value);
    }
    Sum sum;
    for (Estimate &weight : weights) sum.add(weight = exponential(weight - Estimate{most}));
    Estimate inverse = Estimate{1} / sum.total();
    for (Estimate &weight : weights) weight = weight * inverse;
    return weights;
}
