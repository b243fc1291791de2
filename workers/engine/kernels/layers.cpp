// The layers of a Llama over tokens whose sequences a cache holds, in one call: for a few tokens calling each operation
// from Python takes as long as the operations. What they are is said by `Layer` in llama.py.
#include "kernels.h"

namespace layers {

constexpr long GROUPS = 4;

template <typename T> struct Linear {
    const T *panels;
    const float *bias;
};

template <typename T> struct Layer {
    const float *input_norm, *mlp_norm, *q_norm, *k_norm;  // Those of q and k may be missing.
    Linear<T> qkv, out, gate_up, down;
    long window;
    T *keys, *values;
};

struct Sizes {
    long width, heads, kv_heads, size, inner;
    long turned() const { return (heads + kv_heads) * size; }
    long qkv() const { return (heads + 2 * kv_heads) * size; }
};

// What a call is about beside the layers.
template <typename T> struct Pass {
    long length;
    const T *cos, *sin;
    long table_stride;
    const Route<T> *routes;  // Of each group `route_count`.
    long route_count;
    const long *sequences;
    long sequence_count, capacity;
    float eps, scale;
};

template <typename T> struct Decoder {
    using K = Kernels<T>;
    const Sizes s;
    const Pass<T> pass;
    std::unique_ptr<T[]> normed = room<T>(pass.length * s.width), qkv = room<T>(pass.length * s.qkv()),
                         normed_qk = room<T>(pass.length * s.turned()), turned = room<T>(pass.length * s.turned()),
                         seen = room<T>(pass.length * s.heads * s.size), gate_up = room<T>(pass.length * 2 * s.inner),
                         active = room<T>(pass.length * s.inner), h{};
    long h_room = 0;

    void product(long group, const Linear<T> &linear, const T *x, long inputs, const T *plus, T *y, long outputs) {
        const Route<T> *routes = pass.routes + group * pass.route_count;
        long widest = 0;
        for (long r = 0; r < pass.route_count; r++) widest = std::max(widest, routes[r].width);
        if (widest > h_room) h = room<T>(pass.length * (h_room = widest));
        K::product(x, x, linear.panels, linear.bias, plus, y, h.get(), pass.length, inputs, outputs, widest, routes,
                   pass.route_count);
    }
    void norm(const float *weight, const T *x) {
        K::rms_norm(x, s.width, weight, pass.eps, normed.get(), pass.length, 1, s.width);
    }
    void turn(const T *x, long stride, T *y, long heads) {
        K::rotary(x, stride, pass.cos, pass.sin, pass.table_stride, y, s.turned(), pass.length, heads, s.size / 2, 1);
    }
    // One of q and k, `at` numbers into a token's.
    void norm_and_turn(const float *weight, long at, long heads) {
        T *to = normed_qk.get() + pass.length * at;
        K::rms_norm(qkv.get() + at, s.qkv(), weight, pass.eps, to, pass.length, heads, s.size);
        turn(to, heads * s.size, turned.get() + at, heads);
    }
    void attend(const Layer<T> &layer) {
        if (layer.q_norm) {
            norm_and_turn(layer.q_norm, 0, s.heads);
            norm_and_turn(layer.k_norm, s.heads * s.size, s.kv_heads);
        } else {
            turn(qkv.get(), s.qkv(), turned.get(), s.heads + s.kv_heads);
        }
        T *q = turned.get(), *v = qkv.get() + s.turned();
        K::cached_attention(q, s.turned(), q + s.heads * s.size, s.turned(), v, s.qkv(), layer.keys, layer.values,
                            pass.capacity, seen.get(), s.heads, s.kv_heads, s.size, s.size, pass.scale, layer.window,
                            pass.sequences, pass.sequence_count);
    }
    // x [length, width] becomes what the layer makes of it.
    void run(const Layer<T> &layer, long group, T *x) {
        norm(layer.input_norm, x);
        product(group, layer.qkv, normed.get(), s.width, nullptr, qkv.get(), s.qkv());
        attend(layer);
        product(group + 1, layer.out, seen.get(), s.heads * s.size, x, x, s.width);
        norm(layer.mlp_norm, x);
        product(group + 2, layer.gate_up, normed.get(), s.width, nullptr, gate_up.get(), 2 * s.inner);
        K::swiglu(gate_up.get(), active.get(), pass.length, s.inner);
        product(group + 3, layer.down, active.get(), s.inner, x, x, s.width);
    }
};

}  // namespace layers

using namespace layers;

#define EXPORT(T, ENDING)                                                                                              \
    extern "C" void layers_##ENDING(T *x, long length, const Layer<T> *layers, long count, long width, long heads,     \
                                    long kv_heads, long size, long inner, float eps, float scale, const T *cos,        \
                                    const T *sin, long table_stride, const Route<T> *routes, long route_count,         \
                                    const long *sequences, long sequence_count, long capacity) {                       \
        Decoder<T> decoder{{width, heads, kv_heads, size, inner},                                                      \
                           {length, cos, sin, table_stride, routes, route_count, sequences, sequence_count, capacity,  \
                            eps, scale}};                                                                              \
        for (long i = 0; i < count; i++) decoder.run(layers[i], i * GROUPS, x);                                        \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
