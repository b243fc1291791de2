// Which rows of a product are an adapter's, and its matrices: a row of the table that packed_routes.py lays out.
#pragma once

#include "simd.h"

constexpr long PANEL = 2 * SIMD_WIDTH;

// Rows start..stop - 1 are an adapter's, whose A has `columns` outputs, filled up to `width`, a multiple of PANEL; or 0
// for the base model alone. The last panel of A may be half as wide. Panel p of B has `b_inputs` inputs: of h those
// from firsts[p] on, since of several layers below each other each reads its own.
template <typename T> struct Route {
    long start, stop, width, columns, b_inputs;
    const T *a, *b;
    const long *firsts;
};
