// How many outputs of a matrix lie side by side in the memory that products read.
#pragma once

#include "simd.h"

constexpr long PANEL = 2 * SIMD_WIDTH;
