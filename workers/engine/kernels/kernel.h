// What a source file needs to define a kernel of interface.h.
#pragma once

#include "interface.h"
#include "simd.h"

// Exports `template <typename T> void kernels::NAME(const NAME##_arguments<T> &)`, also to other kernels.
#define EXPORT(NAME)                                                                                                   \
    template void kernels::NAME(const NAME##_arguments<float> &);                                                      \
    template void kernels::NAME(const NAME##_arguments<bf16> &);                                                       \
    extern "C" void NAME##_float32(const kernels::NAME##_arguments<float> *a) { kernels::NAME(*a); }                   \
    extern "C" void NAME##_bfloat16(const kernels::NAME##_arguments<bf16> *a) { kernels::NAME(*a); }
