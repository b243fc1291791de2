// Numbers as the kernels' memory holds them: fp32, or bf16 as its 16 bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using bf16 = uint16_t;
using Integers = std::vector<int64_t>;
template <typename T> using Numbers = std::vector<T>;

// The end of a kernel's name; how many numbers of inputs lie side by side; the unit roundoff of being stored.
template <typename T> struct Format;
template <> struct Format<float> {
    static constexpr const char *NAME = "float32";
    static constexpr long STEP = 1;
    static constexpr double UNIT = 0;  // What is computed in fp32 is stored as it is.
};
template <> struct Format<bf16> {
    static constexpr const char *NAME = "bfloat16";
    static constexpr long STEP = 2;
    static constexpr double UNIT = 0x1p-8;
};

inline double wide(float x) { return x; }
inline double wide(bf16 x) {
    uint32_t bits = uint32_t(x) << 16;
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

// The nearest number of a format, ties to even.
template <typename T> T nearest(float x);
template <> inline float nearest<float>(float x) { return x; }
template <> inline bf16 nearest<bf16>(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bf16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
