// The layers of a Llama over tokens whose sequences a cache holds, in one call: for a few tokens calling each kernel
// from Python takes as long as the kernels. The layer is that of llama.py.
#include <memory>

#include "kernel.h"

namespace layers {

using kernels::AdapterRows;
using kernels::DecoderLayer;

// Products of a layer; each is a group of the adapters.
constexpr long GROUPS = 4;

template <typename T> struct Decoder {
    const kernels::decoder_layers_arguments<T> &a;
    long qk_width = (a.heads + a.kv_heads) * a.size, qkv_width = qk_width + a.kv_heads * a.size;
    std::unique_ptr<T[]> normed = buffer<T>(a.length * a.width), qkv = buffer<T>(a.length * qkv_width),
                         normed_qk = buffer<T>(a.length * qk_width), rotated = buffer<T>(a.length * qk_width),
                         seen = buffer<T>(a.length * a.heads * a.size), gate_up = buffer<T>(a.length * 2 * a.inner),
                         active = buffer<T>(a.length * a.inner), h{};
    long h_capacity = 0;

    void product(long group, const T *w, const float *bias, const T *x, long inputs, const T *plus, T *y,
                 long outputs) {
        const AdapterRows<T> *rows = a.adapter_rows + group * a.adapter_rows_count;
        long widest = 0;
        for (long r = 0; r < a.adapter_rows_count; r++) widest = std::max(widest, rows[r].width);
        if (widest > h_capacity) h = buffer<T>(a.length * (h_capacity = widest));
        kernels::product<T>({.x = x,
                             .adapter_x = x,
                             .w = w,
                             .bias = bias,
                             .plus = plus,
                             .y = y,
                             .h = h.get(),
                             .length = a.length,
                             .inputs = inputs,
                             .outputs = outputs,
                             .h_width = widest,
                             .adapter_rows = rows,
                             .adapter_rows_count = a.adapter_rows_count});
    }
    void norm(const T *x, long stride, const float *weight, T *y, long heads, long size) {
        kernels::rms_norm<T>({.x = x,
                              .x_stride = stride,
                              .weight = weight,
                              .eps = a.eps,
                              .y = y,
                              .length = a.length,
                              .heads = heads,
                              .size = size});
    }
    void rotate(const T *x, long stride, T *y, long heads) {
        kernels::rotary<T>({.x = x,
                            .x_stride = stride,
                            .cos = a.cos,
                            .cos_stride = a.cos_stride,
                            .sin = a.sin,
                            .sin_stride = a.sin_stride,
                            .y = y,
                            .y_stride = qk_width,
                            .length = a.length,
                            .heads = heads,
                            .pairs = a.size / 2,
                            .sign = 1});
    }
    // q or k, which begins `at` numbers into a token's.
    void norm_and_rotate(const float *weight, long at, long heads) {
        T *to = normed_qk.get() + a.length * at;
        norm(qkv.get() + at, qkv_width, weight, to, heads, a.size);
        rotate(to, heads * a.size, rotated.get() + at, heads);
    }
    void attend(const DecoderLayer<T> &layer) {
        if (layer.q_norm) {
            norm_and_rotate(layer.q_norm, 0, a.heads);
            norm_and_rotate(layer.k_norm, a.heads * a.size, a.kv_heads);
        } else {
            rotate(qkv.get(), qkv_width, rotated.get(), a.heads + a.kv_heads);
        }
        kernels::cached_attention<T>({.q = rotated.get(),
                                      .q_stride = qk_width,
                                      .k = rotated.get() + a.heads * a.size,
                                      .k_stride = qk_width,
                                      .v = qkv.get() + qk_width,
                                      .v_stride = qkv_width,
                                      .keys = layer.keys,
                                      .values = layer.values,
                                      .capacity = a.capacity,
                                      .out = seen.get(),
                                      .heads = a.heads,
                                      .kv_heads = a.kv_heads,
                                      .size = a.size,
                                      .value_size = a.size,
                                      .scale = a.scale,
                                      .window = layer.window,
                                      .sequences = a.sequences,
                                      .sequences_count = a.sequences_count});
    }
    void run(const DecoderLayer<T> &layer, long group) {
        norm(a.x, a.width, layer.input_norm, normed.get(), 1, a.width);
        product(group, layer.qkv, layer.qkv_bias, normed.get(), a.width, nullptr, qkv.get(), qkv_width);
        attend(layer);
        product(group + 1, layer.out, layer.out_bias, seen.get(), a.heads * a.size, a.x, a.x, a.width);
        norm(a.x, a.width, layer.mlp_norm, normed.get(), 1, a.width);
        product(group + 2, layer.gate_up, layer.gate_up_bias, normed.get(), a.width, nullptr, gate_up.get(),
                2 * a.inner);
        kernels::swiglu<T>({.gate_up = gate_up.get(), .y = active.get(), .length = a.length, .size = a.inner});
        product(group + 3, layer.down, layer.down_bias, active.get(), a.inner, a.x, a.x, a.width);
    }
};

}  // namespace layers

template <typename T> void kernels::decoder_layers(const decoder_layers_arguments<T> &a) {
    layers::Decoder<T> decoder{a};
    for (long i = 0; i < a.layers_count; i++) decoder.run(a.layers[i], i * layers::GROUPS);
}
EXPORT(decoder_layers)
