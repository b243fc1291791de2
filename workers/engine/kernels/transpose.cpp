// The panels of W^T from those of W (see product.cpp): what a backward pass multiplies by.
#include <cstdint>

using bf16 = uint16_t;
namespace transposes {

constexpr long PANEL = 32;

// Block by block of PANEL x PANEL, which the nearest cache holds.
template <typename T, long step> void block(const T *from, T *to, long output, long input, long outputs, long inputs) {
    from += output / PANEL * inputs * PANEL, to += input / PANEL * outputs * PANEL;
    long last = output + PANEL < outputs ? PANEL : outputs - output;
    for (long i = 0; i < PANEL; i++) {
        long column = input + i;
        for (long o = 0; o < last; o++) {
            T value = column < inputs ? from[(column / step * PANEL + o) * step + column % step] : T(0);
            to[((output + o) / step * PANEL + i) * step + o % step] = value;
        }
    }
}

template <typename T, long step> void turn(const T *from, T *to, long outputs, long inputs) {
#pragma omp parallel for schedule(static)
    for (long input = 0; input < inputs; input += PANEL)
        for (long output = 0; output < outputs; output += PANEL)
            block<T, step>(from, to, output, input, outputs, inputs);
}

}  // namespace transposes

using namespace transposes;

extern "C" void transpose_float32(const float *from, float *to, long outputs, long inputs) {
    turn<float, 1>(from, to, outputs, inputs);
}
extern "C" void transpose_bfloat16(const bf16 *from, bf16 *to, long outputs, long inputs) {
    turn<bf16, 2>(from, to, outputs, inputs);
}
