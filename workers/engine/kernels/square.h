// The transpose of a square of 16 x 16 words.
#pragma once

#include "simd.h"

// Swaps the off-diagonal quarters of every square of 2 DISTANCE words.
template <uint32_t DISTANCE> ALWAYS void exchange_quarters(Words *x) {
    for (uint32_t i = 0; i < SIMD_WIDTH; i++)
        if (!(i & DISTANCE)) exchange<DISTANCE>(x[i], x[i + DISTANCE]);
}
inline void transpose(Words *x) {
    exchange_quarters<8>(x);
    exchange_quarters<4>(x);
    exchange_quarters<2>(x);
    exchange_quarters<1>(x);
}
