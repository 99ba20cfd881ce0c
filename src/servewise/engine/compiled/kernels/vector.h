// Sixteen float32 lanes, bfloat16 beside them, and dot products of bfloat16 pairs.
//
// Written in the compilers' portable vectors: one register on AVX-512, two on AVX2. Where the CPU multiplies bfloat16
// pairs itself (AVX512-BF16), it does; elsewhere they are widened, which is exact, and multiplied in float32.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX512BF16__) || defined(__AMX_BF16__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

constexpr int LANES = 16;
typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));
typedef uint16_t bf16;

template <class V, class T>
INLINE V loaded(const T* from) {
    V value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class V, class T>
INLINE void store(T* to, V value) {
    memcpy(to, &value, sizeof value);
}

INLINE Lanes all(float value) { return Lanes{} + value; }

INLINE Lanes widened(const bf16* from) {
    return (Lanes)(__builtin_convertvector(loaded<Halves>(from), Words) << 16);
}

// Rounded to nearest, ties to even; not-a-number stays one.
INLINE Halves narrowed(Lanes value) {
    const Words bits = (Words)value;
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Words quiet = (bits >> 16) | 0x40;
    return __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded, Halves);
}

INLINE float widened(bf16 value) {
    const uint32_t bits = uint32_t(value) << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

INLINE bf16 narrowed(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return bf16((bits >> 16) | 0x40);
    return bf16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Always in the same order.
INLINE float sum(Lanes value) {
    float lane[LANES];
    store(lane, value);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
}

INLINE float greatest(Lanes value) {
    float lane[LANES];
    store(lane, value);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
    return lane[0];
}

// e^x within 2 units in the last place for -87 < x < 88, the value at the nearer end beyond; not-a-number stays one.
// Cody and Waite's reduction to |r| < ln 2 / 2, then Cephes' polynomial of degree 6 (expf.c).
INLINE Lanes exponential(Lanes x) {
    const Lanes low = all(-87.0f), high = all(88.0f), magic = all(12582912.0f);  // 1.5 * 2^23: adding it rounds
    x = x < low ? low : x;
    x = x > high ? high : x;
    const Lanes shifted = x * 1.44269504088896341f + magic;
    const Lanes whole = shifted - magic;
    const Lanes r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    Lanes value = r * 1.9875691500e-4f + 1.3981999507e-3f;
    value = value * r + 8.3334519073e-3f;
    value = value * r + 4.1665795894e-2f;
    value = value * r + 1.6666665459e-1f;
    value = value * r + 5.0000001201e-1f;
    value = value * r * r + r + 1.0f;
    return value * (Lanes)(((Ints)shifted - (Ints)magic + 127) << 23);
}

// Sixteen pairs of bfloat16, and one pair in all sixteen places.
#ifdef __AVX512BF16__
typedef __m512bh Pairs;
INLINE Pairs pairs(const bf16* from) { return loaded<Pairs>(from); }
INLINE Pairs pair_everywhere(const bf16* from) { return (Pairs)_mm512_set1_epi32(loaded<int32_t>(from)); }
INLINE Lanes dot(Lanes sums, Pairs a, Pairs b) { return (Lanes)_mm512_dpbf16_ps((__m512)sums, a, b); }
#else
struct Pairs {
    Lanes first, second;
};
INLINE Pairs pairs(const bf16* from) {
    const Words both = loaded<Words>(from);
    return {(Lanes)(both << 16), (Lanes)(both & 0xffff0000)};
}
INLINE Pairs pair_everywhere(const bf16* from) { return {all(widened(from[0])), all(widened(from[1]))}; }
INLINE Lanes dot(Lanes sums, Pairs a, Pairs b) {
    sums += a.first * b.first;
    sums += a.second * b.second;
    return sums;
}
#endif

// Rows whose sums stay in registers, two or four sums each.
#if defined(__AVX512BF16__)
constexpr int PRODUCT_ROWS = 12;
constexpr int ATTENTION_ROWS = 6;
#elif defined(__AVX512F__)
constexpr int PRODUCT_ROWS = 8;
constexpr int ATTENTION_ROWS = 4;
#else
constexpr int PRODUCT_ROWS = 2;
constexpr int ATTENTION_ROWS = 2;
#endif
