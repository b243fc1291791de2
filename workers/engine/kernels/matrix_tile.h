// A tile of bf16 rows in the eight registers of AMX, of 16 rows of 64 bytes each: four for sums, two for rows of x and
// two for the halves of a panel, whose layout in memory is that of the registers.
#pragma once

namespace products {

template <> constexpr long MOST_ROWS<bf16> = 32;
// Rows a power of two apart would evict each other from the L1 cache.
template <> constexpr bool READS_STEPS<bf16> = true;

namespace matrix {

constexpr long ROWS = 16, INPUTS = STEP_INPUTS;  // Of a register; inputs in pairs.
constexpr int LINE = 64;                // Bytes.

// GCC does not know that its tile intrinsics read memory: a barrier for the writes before them.
ALWAYS void written() { __asm__ volatile("" ::: "memory"); }

struct alignas(64) Shapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t line[16] = {};
    uint8_t rows[16] = {};
};

// The rows that the thread's registers are configured for; 0 for none.
inline thread_local long shaped = 0;

// Registers for tiles of `rows` rows: 0 to 3 are sums, 4 and 5 rows of x, 6 and 7 halves of a panel.
inline void shape(long rows) {
    if (shaped == rows) return;
    shaped = rows;
    uint8_t first = std::min(rows, ROWS), second = std::max(rows - ROWS, 1L);
    Shapes shapes;
    std::fill_n(shapes.line, 8, LINE);
    const uint8_t counts[] = {first, first, second, second, first, second, ROWS, ROWS};
    std::copy_n(counts, 8, shapes.rows);
    written();
    _tile_loadconfig(&shapes);
}

}  // namespace matrix

// Releases the registers: other libraries configure them otherwise.
template <> struct TileScope<bf16> {
    ~TileScope() {
        _tile_release();
        matrix::shaped = 0;
    }
};

template <long R, bool both> struct Tile<bf16, R, both> {
    // Whether there are rows for the second registers.
    static constexpr bool tall = R > matrix::ROWS;

    ALWAYS void begin(const float *bias) {
        matrix::shape(R);
        if (bias) return read_sums(bias, 0);  // Without a stride every row is the same.
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    ALWAYS void load_sums(const float *sums, long stride) {
        matrix::shape(R);
        read_sums(sums, stride);
    }
    ALWAYS void store_sums(float *sums, long stride) const {
        _tile_stored(0, sums, 4 * stride);
        _tile_stored(1, sums + SIMD_WIDTH, 4 * stride);
        if constexpr (tall) {
            _tile_stored(2, sums + matrix::ROWS * stride, 4 * stride);
            _tile_stored(3, sums + matrix::ROWS * stride + SIMD_WIDTH, 4 * stride);
        }
    }
    ALWAYS void add(Rows<bf16> x, const bf16 *panel, long inputs) {
        constexpr long width = both ? PANEL : SIMD_WIDTH;
        long i = 0;
        for (; i + matrix::INPUTS <= inputs; i += matrix::INPUTS) add_step(x.at(0, i), x.stride, panel + i * width);
        if (i < inputs) add_rest(x.at(0, i), x.stride, panel + i * width, inputs - i);
    }
    ALWAYS void end(const bf16 *plus, bf16 *y, long stride, long columns) {
        float sums[R * PANEL];
        store_sums(sums, PANEL);
        for (long r = 0; r < R; r++, y += stride, plus += plus ? stride : 0)
            finish_row(load(sums + r * PANEL), load(sums + r * PANEL + SIMD_WIDTH), plus, y, columns);
    }

  private:
    ALWAYS void read_sums(const float *from, long stride) {
        matrix::written();
        _tile_loadd(0, from, 4 * stride);
        _tile_loadd(1, from + SIMD_WIDTH, 4 * stride);
        if constexpr (tall) {
            _tile_loadd(2, from + matrix::ROWS * stride, 4 * stride);
            _tile_loadd(3, from + matrix::ROWS * stride + SIMD_WIDTH, 4 * stride);
        }
    }
    ALWAYS void add_step(const bf16 *x, long x_stride, const bf16 *panel) {
        constexpr long panel_stride = both ? 2 * matrix::LINE : matrix::LINE;
        _tile_loadd(6, panel, panel_stride);
        _tile_loadd(4, x, 2 * x_stride);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (both) {
            _tile_loadd(7, panel + 2 * SIMD_WIDTH, panel_stride);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (tall) {
            _tile_loadd(5, x + matrix::ROWS * x_stride, 2 * x_stride);
            _tile_dpbf16ps(2, 5, 6);
            if constexpr (both) _tile_dpbf16ps(3, 5, 7);
        }
    }
    // Fewer inputs than a register holds: filled up with zeros.
    void add_rest(const bf16 *x, long x_stride, const bf16 *panel, long inputs) {
        constexpr long width = both ? PANEL : SIMD_WIDTH;
        bf16 rows[R * matrix::INPUTS] = {}, weights[matrix::INPUTS * width] = {};
        for (long r = 0; r < R; r++)
            std::memcpy(rows + r * matrix::INPUTS, x + r * x_stride, inputs * sizeof(bf16));
        std::memcpy(weights, panel, inputs * width * sizeof(bf16));
        matrix::written();
        add_step(rows, matrix::INPUTS, weights);
    }
};

}  // namespace products
