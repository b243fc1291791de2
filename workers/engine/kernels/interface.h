// The arguments of every kernel: the only declaration of the library's interface. The C++ sources are compiled against
// it, and interface.py reads this file to build the same structs in Python, so the two cannot disagree.
//
// The library exports each KERNEL(name) as name_float32 and name_bfloat16, for a T of float and of bf16; both take a
// pointer to the kernel's arguments. A pointer is the memory of a contiguous tensor; or, where a field `name_stride`
// follows, of a tensor whose rows begin that many numbers apart and are each contiguous. `= nullptr` marks memory that
// may be missing. The other structs are elements of arrays, which Python builds as structured numpy arrays.
#pragma once

#include <cstdint>

#define KERNEL(NAME)                                                                                                   \
    template <typename T> struct NAME##_arguments;                                                                     \
    template <typename T> void NAME(const NAME##_arguments<T> &);                                                      \
    template <typename T> struct NAME##_arguments

namespace kernels {

// Rows start..stop - 1 of a product use an adapter: A has `columns` outputs, padded to `width`, a multiple of PANEL, or
// 0 for the base model alone; the last panel of A may be half as wide. Panel p of B multiplies the `b_inputs` columns
// of h from firsts[p] on, since each of several layers in one product has its own.
template <typename T> struct AdapterRows {
    long start, stop, width, columns, b_inputs;
    const T *a, *b;
    const long *firsts;
};

// y = x W^T + bias + plus + h B^T and h = adapter_x A^T, W, A and B in panels (see product.cpp).
KERNEL(product) {
    const T *x, *adapter_x;                       // [length, inputs]
    const T *w;                                   // [outputs / PANEL, inputs / step, PANEL, step]
    const float *bias = nullptr;                  // [outputs], padded to whole panels
    const T *plus = nullptr;                      // [length, outputs]
    T *y;                                         // [length, outputs]
    T *h;                                         // [length, h_width]
    long length, inputs, outputs, h_width;
    const AdapterRows<T> *adapter_rows;
    long adapter_rows_count;
};

// The panels of W^T, from those of W [outputs, inputs].
KERNEL(transpose) {
    const T *w;
    T *transposed;
    long outputs, inputs;
};

// An fp32 matrix [rows, columns] and its place in a larger one of `inputs` columns in panels, whose rows from `whole`
// on lie in a panel of half the width.
template <typename T> struct AdapterBlock {
    const float *from;
    long row_stride, column_stride, rows, columns;
    T *to;
    long at_row, at_column, inputs, whole, is_scaled;
};

// Copies each block to its place, those that `is_scaled` times `scale`; what no block covers is not touched.
KERNEL(pack_adapter) {
    const AdapterBlock<T> *blocks;
    long blocks_count;
    float scale;
};

// sums = factor * u^T v.
KERNEL(outer) {
    const T *u;  // [rows, width]
    long u_stride;
    const T *v;  // [rows, columns]
    long v_stride;
    float *sums;  // [width, columns]
    long rows, width, columns;
    float factor;
};

// Tokens start..start + length - 1 of a pass, which follow `prefix` keys: those of the pass from token `before` on, or
// of row `before` of a cache. Sequence `leader`, which may be the sequence itself, consists of those keys, and the
// `followers` sequences after it share them.
struct Sequence {
    long start, length, before, prefix, leader, followers;
};

// out = softmax(q k^T * scale) v over the tokens of a pass. Each token sees the last `window` tokens of its sequence,
// itself included; `value_size` is the head size of v and out.
KERNEL(attention) {
    const T *q;  // [tokens, heads, size]
    long q_stride;
    const T *k;  // [tokens, kv_heads, size]
    long k_stride;
    const T *v;  // [tokens, kv_heads, value_size]
    long v_stride;
    T *out;                  // [tokens, heads, value_size]
    float *peaks = nullptr;  // [2, heads, tokens] and SIMD_WIDTH more: largest scores, and 1 / the sums of weights
    long tokens, heads, kv_heads, size, value_size;
    float scale;
    long window;
    const Sequence *sequences;
    long sequences_count;
};

KERNEL(attention_backward) {
    const T *q;
    long q_stride;
    const T *k;
    long k_stride;
    const T *v;
    long v_stride;
    const T *grad;  // by out
    long grad_stride;
    T *q_grad, *k_grad, *v_grad;
    const float *peaks;
    long tokens, heads, kv_heads, size, value_size;
    float scale;
    long window;
    const Sequence *sequences;
    long sequences_count;
};

// Attention of new tokens to the keys of a cache, to which their own keys and values are copied first.
KERNEL(cached_attention) {
    const T *q;
    long q_stride;
    const T *k;
    long k_stride;
    const T *v;
    long v_stride;
    T *keys;    // [rows, kv_heads, capacity, size]
    T *values;  // [rows, kv_heads, capacity, value_size]
    long capacity;
    T *out;
    long heads, kv_heads, size, value_size;
    float scale;
    long window;
    const Sequence *sequences;
    long sequences_count;
};

// y = x / sqrt(mean(x^2) + eps) * weight over each head.
KERNEL(rms_norm) {
    const T *x;  // [length, heads, size]
    long x_stride;
    const float *weight;  // [size]
    float eps;
    T *y;
    long length, heads, size;
};

KERNEL(rms_norm_backward) {
    const T *x;
    long x_stride;
    const float *weight;
    float eps;
    const T *grad;
    T *x_grad;
    long length, heads, size;
};

// Rotary position embedding by each token's angles; y may be x, and a `sign` of -1 rotates back.
KERNEL(rotary) {
    const T *x;  // [length, heads, 2 pairs]
    long x_stride;
    const T *cos;  // [length, pairs]
    long cos_stride;
    const T *sin;
    long sin_stride;
    T *y;
    long y_stride;
    long length, heads, pairs;
    float sign;
};

// y = silu(gate) * up.
KERNEL(swiglu) {
    const T *gate_up;  // [length, 2 size]
    T *y;              // [length, size]
    long length, size;
};

KERNEL(swiglu_backward) {
    const T *gate_up;
    const T *grad;
    T *gate_up_grad;
    long length, size;
};

// y = factor * x where the number of the counter (see dropout.cpp) is at least `least`, else 0.
KERNEL(dropout) {
    const T *x;  // [rows, columns]
    T *y;
    const int64_t *samples, *positions;  // [rows]
    long rows, columns;
    uint64_t key;
    uint32_t group, least;
    float factor;
};

// Logprobs of the targets and entropies, in fp32; where `computes_grad`, the logits become the gradient of the
// logprobs.
KERNEL(target_logprobs) {
    T *logits;  // [rows, vocabulary]
    const int64_t *targets;
    float *logprobs, *entropies;  // [rows]
    long rows, vocabulary, computes_grad;
};

// How a token is drawn; `uniform` is in [0, 1).
struct Choice {
    double temperature, top_k, top_p, uniform;
};

// A token of each row and its logprob.
KERNEL(draw) {
    const T *logits;  // [rows, vocabulary]
    const Choice *choices;
    int64_t *tokens;
    float *logprobs;
    long rows, vocabulary;
};

// A layer of a Llama: norms (those of q and k may be 0), products in panels with their biases or 0, and its part of the
// cache, [rows, kv_heads, capacity, size].
template <typename T> struct DecoderLayer {
    const float *input_norm, *mlp_norm, *q_norm, *k_norm;
    const T *qkv;
    const float *qkv_bias;
    const T *out;
    const float *out_bias;
    const T *gate_up;
    const float *gate_up_bias;
    const T *down;
    const float *down_bias;
    long window;
    T *keys, *values;
};

// The layers of a Llama over tokens whose sequences a cache holds; x is overwritten.
KERNEL(decoder_layers) {
    T *x;  // [length, width]
    long length;
    const DecoderLayer<T> *layers;
    long layers_count;
    long width, heads, kv_heads, size, inner;
    float eps, scale;
    const T *cos;  // [length, size / 2]
    long cos_stride;
    const T *sin;
    long sin_stride;
    const AdapterRows<T> *adapter_rows;  // `adapter_rows_count` for each group of each layer
    long adapter_rows_count;
    const Sequence *sequences;
    long sequences_count;
    long capacity;
};

}  // namespace kernels
