// Sixteen vectors of sixteen words turned, so that what was the first of each is the first vector.
#pragma once

#include "simd.h"

// Of a square of 16 x 16 the halves' off-diagonal quarters change places, then theirs, and so on.
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
