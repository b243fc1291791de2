// The panels of W^T from those of W (see product.cpp), for backward passes.
#include "kernel.h"
#include "panel.h"
#include "square.h"

namespace transposes {

// A whole block of 32 outputs of 32 inputs: words of the first 16 outputs, then of the others.
void whole(const float *from, float *to) {
    for (long output = 0; output < PANEL; output += SIMD_WIDTH)
        for (long input = 0; input < PANEL; input += SIMD_WIDTH) {
            Words square[SIMD_WIDTH];
            for (long i = 0; i < SIMD_WIDTH; i++) square[i] = read<Words>(from + (input + i) * PANEL + output);
            transpose(square);
            for (long o = 0; o < SIMD_WIDTH; o++) write(to + (output + o) * PANEL + input, square[o]);
        }
}
// A word is a pair of inputs before, and a pair of outputs after.
void whole(const bf16 *from, bf16 *to) {
    for (long output = 0; output < PANEL; output += SIMD_WIDTH) {
        Words square[SIMD_WIDTH];
        for (long pair = 0; pair < SIMD_WIDTH; pair++) square[pair] = read<Words>(from + (pair * PANEL + output) * 2);
        transpose(square);
        for (long o = 0; o < SIMD_WIDTH; o += 2) {
            Words evens = (square[o] & 0xffffu) | (square[o + 1] << 16);
            Words odds = (square[o] >> 16) | (square[o + 1] & 0xffff0000u);
            bf16 *row = to + (output + o) * PANEL;
            write(row, zipped<false>(evens, odds));
            write(row + PANEL, zipped<true>(evens, odds));
        }
    }
}
// A block that has fewer outputs or inputs, number by number; missing inputs are zeros.
template <typename T> void part(const T *from, T *to, long outputs, long inputs) {
    constexpr long step = 4 / sizeof(T);
    for (long i = 0; i < PANEL; i++)
        for (long o = 0; o < outputs; o++) {
            T value = i < inputs ? from[(i / step * PANEL + o) * step + i % step] : T(0);
            to[(o / step * PANEL + i) * step + o % step] = value;
        }
}

template <typename T> void transpose_all(const T *from, T *to, long outputs, long inputs) {
#pragma omp parallel for schedule(static) if (outputs * inputs > WORTH_THREADS)
    for (long input = 0; input < inputs; input += PANEL)
        for (long output = 0; output < outputs; output += PANEL) {
            const T *source = from + (output * inputs + input * PANEL);
            T *target = to + (input * outputs + output * PANEL);
            long rows = std::min(PANEL, outputs - output), columns = std::min(PANEL, inputs - input);
            rows == PANEL && columns == PANEL ? whole(source, target) : part(source, target, rows, columns);
        }
}

}  // namespace transposes

template <typename T> void kernels::transpose(const transpose_arguments<T> &a) {
    transposes::transpose_all(a.w, a.transposed, a.outputs, a.inputs);
}
EXPORT(transpose)
