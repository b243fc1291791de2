// A check for each kernel, in fp32 and in bf16: whether the library computes what the formula says.
#pragma once

#include "check.h"
#include "library.h"

#define INSTANTIATE(CHECK)                                                                                             \
    template bool CHECK<float>(const Library &);                                                                       \
    template bool CHECK<bf16>(const Library &);

template <typename T> bool check_product(const Library &library);
template <typename T> bool check_transpose(const Library &library);
template <typename T> bool check_pack_adapter(const Library &library);
template <typename T> bool check_attention(const Library &library);
template <typename T> bool check_cached_attention(const Library &library);
template <typename T> bool check_rms_norm(const Library &library);
template <typename T> bool check_rotary(const Library &library);
template <typename T> bool check_swiglu(const Library &library);
template <typename T> bool check_target_logprobs(const Library &library);
template <typename T> bool check_draw(const Library &library);
template <typename T> bool check_dropout(const Library &library);
template <typename T> bool check_outer(const Library &library);
