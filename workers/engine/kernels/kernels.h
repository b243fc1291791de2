// The kernels as other kernels call them: each by the type of its memory.
#pragma once

#include "route.h"

#define KERNELS(T, ENDING)                                                                                            \
    extern "C" void rms_norm_##ENDING(const T *x, long stride, const float *weight, float eps, T *y, long length,     \
                                      long heads, long size);                                                         \
    extern "C" void rotary_##ENDING(const T *x, long x_stride, const T *cos, const T *sin, long table_stride, T *y,   \
                                    long y_stride, long length, long heads, long pairs, float sign);                  \
    extern "C" void swiglu_##ENDING(const T *gate_up, T *y, long length, long size);                                  \
    extern "C" void product_##ENDING(const T *x, const T *adapter_x, const T *w, const float *bias, const T *plus,    \
                                     T *y, T *h, long length, long inputs, long outputs, long h_stride,               \
                                     const Route<T> *routes, long count);                                                 \
    extern "C" void cached_attention_##ENDING(T *q, long q_stride, T *k, long k_stride, T *v, long v_stride, T *keys, \
                                              T *values, long capacity, T *out, long heads, long kv_heads, long size, \
                                              long value_size, float scale, long window, const long *sequences,       \
                                              long count);                                                            \
    template <> struct Kernels<T> {                                                                                   \
        static constexpr auto rms_norm = rms_norm_##ENDING;                                                           \
        static constexpr auto rotary = rotary_##ENDING;                                                               \
        static constexpr auto swiglu = swiglu_##ENDING;                                                               \
        static constexpr auto product = product_##ENDING;                                                             \
        static constexpr auto cached_attention = cached_attention_##ENDING;                                           \
    };

template <typename T> struct Kernels;
KERNELS(float, float32)
KERNELS(bf16, bfloat16)
