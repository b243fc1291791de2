// Inputs that are the same on every machine: the C++ standard says what this generator gives.
#pragma once

#include <random>

#include "number.h"

class Random {
    std::mt19937 generator;

  public:
    explicit Random(uint32_t seed) : generator(seed) {}

    // In [0, 1), a multiple of 2^-24.
    float fraction() { return float(generator() >> 8) * 0x1p-24f; }
    // In [-spread, spread).
    template <typename T> Numbers<T> numbers(long count, float spread = 1) {
        Numbers<T> drawn(count);
        for (T &number : drawn) number = nearest<T>((2 * fraction() - 1) * spread);
        return drawn;
    }
};
