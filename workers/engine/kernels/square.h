// Sixteen vectors of sixteen words turned, so that what was the first of each is the first vector.
#pragma once

#include "lanes.h"

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Words{__VA_ARGS__})
#endif

// A square of 16 x 16: its halves' off-diagonal quarters change places, then theirs, and so on.
inline void transpose(Words *x) {
#define SWAP(DISTANCE, FIRST, SECOND)                                                                                  \
    for (long i = 0; i < WIDTH; i++)                                                                                   \
        if (!(i & DISTANCE)) {                                                                                         \
            Words a = x[i], b = x[i + DISTANCE];                                                                       \
            x[i] = SHUFFLE(a, b, FIRST);                                                                               \
            x[i + DISTANCE] = SHUFFLE(a, b, SECOND);                                                                   \
        }
#define LIST(...) __VA_ARGS__
    SWAP(8, LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
         LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    SWAP(4, LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
         LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    SWAP(2, LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
         LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    SWAP(1, LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
         LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#undef SWAP
#undef LIST
}
