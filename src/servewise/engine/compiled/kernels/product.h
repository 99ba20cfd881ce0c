// Products of bfloat16 rows with packed weights, summed in float32.
//
// Weights lie in blocks of 16 outputs: input pair after input pair, the pair of each of the 16 outputs side by side,
// which is what both AVX512-BF16 and AMX want. A block is read once for up to 32 rows, from its first byte to its last.
// A row's sums run over the inputs in one order, whatever rows are computed with it: no row depends on its neighbours.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "vector.h"

struct Product {  // outputs a multiple of 32, inputs too; bias of `outputs` or null
    const bf16* weights;
    const float* bias;
    int64_t outputs, inputs;
};

struct Part {
    int64_t start, stop;
};

INLINE Part part(int64_t count, int which, int parts) { return {count * which / parts, count * (which + 1) / parts}; }

template <int ROWS>
static void multiply_rows(
    const bf16* x, int64_t stride, const bf16* first, const bf16* second, int64_t inputs, float* sums) {
    Lanes left[ROWS] = {}, right[ROWS] = {};
    for (int64_t i = 0; i < inputs; i += 2) {
        const Pairs a = pairs(first + LANES * i), b = pairs(second + LANES * i);
#pragma GCC unroll 16
        for (int row = 0; row < ROWS; ++row) {
            const Pairs inputs_of_row = pair_everywhere(x + row * stride + i);
            left[row] = dot(left[row], a, inputs_of_row);
            right[row] = dot(right[row], b, inputs_of_row);
        }
    }
    for (int row = 0; row < ROWS; ++row) {
        store(sums + 2 * LANES * row, left[row]);
        store(sums + 2 * LANES * row + LANES, right[row]);
    }
}

template <int ROWS = PRODUCT_ROWS>
static void multiply_some(
    int rows, const bf16* x, int64_t stride, const bf16* first, const bf16* second, int64_t inputs, float* sums) {
    if (rows == ROWS) return multiply_rows<ROWS>(x, stride, first, second, inputs, sums);
    if constexpr (ROWS > 1) multiply_some<ROWS - 1>(rows, x, stride, first, second, inputs, sums);
}

#ifdef __AMX_BF16__
constexpr int TILE_ROWS = 16;
constexpr int MOST_ROWS = 2 * TILE_ROWS;

// Linux gives a process AMX's registers on request (Documentation/arch/x86/xstate.rst).
static bool tiles_granted() {
    constexpr long ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;
    static const bool granted = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    return granted;
}

// Tiles 0-3 sum, 4 and 5 hold rows, 6 and 7 weights; a product takes time by the rows that are shaped.
static void shape_tiles(int rows) {
    struct alignas(64) {
        uint8_t palette = 1, start_row = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {};
        uint8_t rows[16] = {};
    } shapes;
    const int upper = std::min(rows, TILE_ROWS), lower = std::max(rows - TILE_ROWS, 1);
    const int tile_rows[8] = {upper, upper, lower, lower, upper, lower, TILE_ROWS, TILE_ROWS};
    for (int tile = 0; tile < 8; ++tile) {
        shapes.row_bytes[tile] = 64;
        shapes.rows[tile] = uint8_t(tile_rows[tile]);
    }
    asm volatile("" ::"r"(&shapes) : "memory");  // the intrinsic of GCC says that it reads 8 bytes of the 64
    _tile_loadconfig(&shapes);
}

// AHEAD > 0: the weights come from memory, and so much is computed between two loads that the CPU does not look far
// enough ahead itself; it is told to fetch so many values before they are needed.
template <bool TALL, int AHEAD>
static void multiply_tiles(
    const bf16* x, int64_t stride, const bf16* first, const bf16* second, int64_t inputs, float* sums) {
    asm volatile("" ::: "memory");  // tile loads do not say what they read
    _tile_zero(0);
    _tile_zero(1);
    if (TALL) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < inputs; i += 32) {
        if (AHEAD)
            for (int64_t line = 0; line < LANES * 32; line += 32) {
                __builtin_prefetch(first + LANES * i + AHEAD + line);
                __builtin_prefetch(second + LANES * i + AHEAD + line);
            }
        _tile_loadd(4, x + i, 2 * stride);
        _tile_loadd(6, first + LANES * i, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, second + LANES * i, 64);
        _tile_dpbf16ps(1, 4, 7);
        if (TALL) {
            _tile_loadd(5, x + TILE_ROWS * stride + i, 2 * stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    constexpr int SUM_BYTES = 2 * LANES * sizeof(float);
    _tile_stored(0, sums, SUM_BYTES);
    _tile_stored(1, sums + LANES, SUM_BYTES);
    if (TALL) {
        _tile_stored(2, sums + 2 * LANES * TILE_ROWS, SUM_BYTES);
        _tile_stored(3, sums + 2 * LANES * TILE_ROWS + LANES, SUM_BYTES);
    }
}

struct Multiplier {
    const bool tiles = tiles_granted();
    const int most = tiles ? MOST_ROWS : PRODUCT_ROWS;

    // Before products of `rows` rows, in each thread.
    void prepare(int64_t rows) const {
        if (tiles && rows) shape_tiles(int(std::min<int64_t>(rows, MOST_ROWS)));
    }
    void release() const {
        if (tiles) _tile_release();
    }
    // `all_rows` as prepared; where they are more than `most`, full tiles are computed: rows beyond are read, not kept.
    INLINE void operator()(
        int64_t all_rows, int rows, const bf16* x, int64_t stride, const bf16* first, const bf16* second, int64_t inputs,
        float* sums) const {
        if (!tiles) return multiply_some(rows, x, stride, first, second, inputs, sums);
        if (all_rows <= TILE_ROWS) return multiply_tiles<false, 0>(x, stride, first, second, inputs, sums);
        if (all_rows <= MOST_ROWS) return multiply_tiles<true, 4096>(x, stride, first, second, inputs, sums);
        multiply_tiles<true, 0>(x, stride, first, second, inputs, sums);
    }
};
#else
constexpr int MOST_ROWS = 32;

struct Multiplier {
    const int most = PRODUCT_ROWS;

    void prepare(int64_t) const {}
    void release() const {}
    INLINE void operator()(
        int64_t, int rows, const bf16* x, int64_t stride, const bf16* first, const bf16* second, int64_t inputs,
        float* sums) const {
        multiply_some(rows, x, stride, first, second, inputs, sums);
    }
};
#endif

// Blocks `block` and `block + apart` of 16 outputs each, for `pairs_of_blocks` blocks from the first; `kept` gets each
// row's sums: kept(row, block, lanes of the block, lanes of the other). x has room for rows up to a multiple of 32.
template <class Kept>
static void multiply(
    const Multiplier& multiplier, const Product& product, const bf16* x, int64_t rows, int64_t first_block, int64_t step,
    int64_t apart, int64_t count, Kept kept) {
    alignas(64) float sums[2 * LANES * MOST_ROWS];
    const int64_t inputs = product.inputs;
    for (int64_t each = 0; each < count; ++each) {
        const int64_t block = first_block + each * step;
        const bf16 *first = product.weights + block * LANES * inputs, *second = first + apart * LANES * inputs;
        for (int64_t row = 0; row < rows; row += multiplier.most) {
            const int some = int(std::min<int64_t>(multiplier.most, rows - row));
            multiplier(rows, some, x + row * inputs, inputs, first, second, inputs, sums);
            for (int r = 0; r < some; ++r) {
                const float* found = sums + 2 * LANES * r;
                kept(row + r, block, loaded<Lanes>(found), loaded<Lanes>(found + LANES));
            }
        }
    }
}
