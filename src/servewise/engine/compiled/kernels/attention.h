// Attention of a sequence's new tokens over its paged keys and values.
//
// A block holds its tokens by sixteens ("groups"). Of a group and a KV head, keys lie value pair by value pair, the
// pair of each of the 16 tokens side by side; values lie token pair by token pair, both tokens' value side by side. So
// a group's scores are 16 lanes, and no lane is ever summed with another. Scores are kept whole, float32, and the
// softmax taken once over them; its weights are rounded to bfloat16, and their sum is of the rounded ones.
#pragma once

#include <algorithm>
#include <limits>

#include "vector.h"

struct Cache {  // of one layer: (blocks, kv_heads, groups, head_dim / 2, 16, 2) and (blocks, kv_heads, groups, 8, head_dim, 2)
    bf16 *keys, *values;
};

struct Places {
    int64_t kv_heads, head_dim, block_tokens;

    int64_t groups() const { return (block_tokens + LANES - 1) / LANES; }
    int64_t group_at(int64_t block, int64_t head, int64_t group) const {
        return ((block * kv_heads + head) * groups() + group) * LANES * head_dim;
    }
};

// One token's key and value of one head, into its slot (block x block_tokens + offset).
INLINE void keep(const Places& places, const Cache& cache, int64_t slot, int64_t head, const bf16* key, const bf16* value) {
    const int64_t block = slot / places.block_tokens, offset = slot % places.block_tokens;
    const int64_t start = places.group_at(block, head, offset / LANES), lane = offset % LANES;
    bf16* keys = cache.keys + start + 2 * lane;
    for (int64_t d = 0; d < places.head_dim; d += 2) memcpy(keys + LANES * d, key + d, 4);
    bf16* values = cache.values + start + lane / 2 * 2 * places.head_dim + lane % 2;
    for (int64_t d = 0; d < places.head_dim; ++d) values[2 * d] = value[d];
}

struct Sight {  // a query sees the tokens from `start` to `stop` - 1
    int64_t start, stop;
};

// Rows of queries that share a KV head: one sequence's new tokens, each with the query heads of the KV head.
struct Lookup {
    const int32_t* table;
    int64_t head;
    float scale;

    int64_t group_at(const Places& places, int64_t group) const {
        return places.group_at(table[group / places.groups()], head, group % places.groups());
    }
};

// `next` is what comes after: blocks lie anywhere, so that the CPU cannot guess it.
template <int ROWS>
static void score_group(
    const bf16* const* queries, const bf16* keys, const bf16* next, int64_t head_dim, Lanes* scores) {
    Lanes sums[ROWS] = {};
    for (int64_t d = 0; d < head_dim; d += 2) {
        __builtin_prefetch(next + LANES * d);
        const Pairs of_tokens = pairs(keys + LANES * d);
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; ++row) sums[row] = dot(sums[row], of_tokens, pair_everywhere(queries[row] + d));
    }
    for (int row = 0; row < ROWS; ++row) scores[row] = sums[row];
}

// What the weights make of `BLOCKS` x 16 values of the head, from the d-th on, over groups `first` to `last` - 1.
template <int ROWS, int BLOCKS>
static void weigh(
    const Places& places, const Cache& cache, const Lookup& lookup, const bf16* weights, int64_t stride, int64_t d,
    int64_t first, int64_t last, float* out) {
    Lanes sums[ROWS][BLOCKS] = {};
    for (int64_t group = first; group < last; ++group) {
        const int64_t at = lookup.group_at(places, group);
        const int64_t ahead = lookup.group_at(places, std::min(group + 1, last - 1)) - at;
        const bf16* values = cache.values + at + 2 * d;
        const bf16* of_group = weights + group * LANES;
        for (int pair = 0; pair < LANES / 2; ++pair, values += 2 * places.head_dim, of_group += 2) {
            Pairs of_tokens[BLOCKS];
#pragma GCC unroll 4
            for (int b = 0; b < BLOCKS; ++b) {
                __builtin_prefetch(values + ahead + 2 * LANES * b);
                of_tokens[b] = pairs(values + 2 * LANES * b);
            }
#pragma GCC unroll 8
            for (int row = 0; row < ROWS; ++row) {
                const Pairs weight = pair_everywhere(of_group + row * stride);
#pragma GCC unroll 4
                for (int b = 0; b < BLOCKS; ++b) sums[row][b] = dot(sums[row][b], of_tokens[b], weight);
            }
        }
    }
    for (int row = 0; row < ROWS; ++row)
        for (int b = 0; b < BLOCKS; ++b) store(out + row * places.head_dim + d + LANES * b, sums[row][b]);
}

// Scores to weights, in place of the row's sight; returns their sum.
INLINE float soften(float* scores, bf16* weights, Sight sight, int64_t first, int64_t last, float scale, const Places& p) {
    const float lowest = -std::numeric_limits<float>::infinity();
    const Ints steps = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int64_t groups = p.groups();
    Lanes most = all(lowest);
    for (int64_t group = first; group < last; ++group) {
        const int64_t offset = group % groups * LANES, token = group / groups * p.block_tokens + offset;
        const int32_t from = int32_t(std::max<int64_t>(sight.start - token, 0));
        const int32_t until = int32_t(std::min(std::min(sight.stop - token, p.block_tokens - offset), int64_t(LANES)));
        Lanes score = loaded<Lanes>(scores + group * LANES) * scale;
        score = ((steps >= from) & (steps < until)) ? score : all(lowest);
        most = score > most ? score : most;
        store(scores + group * LANES, score);
    }
    const Lanes top = all(greatest(most));
    Lanes sums = {};
    for (int64_t group = first; group < last; ++group) {
        const Lanes score = loaded<Lanes>(scores + group * LANES);
        const Halves weight = narrowed(score == lowest ? Lanes{} : exponential(score - top));
        store(weights + group * LANES, weight);
        sums += widened(weights + group * LANES);
    }
    return sum(sums);
}

struct Desk {  // a thread's own room: ATTENTION_ROWS rows each of `slots` scores and weights, and of head_dim sums
    float* scores;
    bf16* weights;
    float* sums;
    int64_t slots;
};

template <int ROWS>
static void attend_rows(
    const Places& places, const Cache& cache, const Lookup& lookup, const bf16* const* queries, const Sight* sights,
    bf16* const* outs, const Desk& desk) {
    int64_t start = sights[0].start, stop = sights[0].stop;
    for (int row = 1; row < ROWS; ++row) {
        start = std::min(start, sights[row].start);
        stop = std::max(stop, sights[row].stop);
    }
    const int64_t groups = places.groups();
    const int64_t first = start / places.block_tokens * groups + start % places.block_tokens / LANES;
    const int64_t end = stop - 1, last = end / places.block_tokens * groups + end % places.block_tokens / LANES + 1;
    for (int64_t group = first; group < last; ++group) {
        const bf16* keys = cache.keys + lookup.group_at(places, group);
        const bf16* next = cache.keys + lookup.group_at(places, std::min(group + 1, last - 1));
        Lanes scores[ROWS];
        score_group<ROWS>(queries, keys, next, places.head_dim, scores);
        for (int row = 0; row < ROWS; ++row) store(desk.scores + row * desk.slots + group * LANES, scores[row]);
    }
    float totals[ROWS];
    for (int row = 0; row < ROWS; ++row)
        totals[row] = soften(
            desk.scores + row * desk.slots, desk.weights + row * desk.slots, sights[row], first, last, lookup.scale, places);
    int64_t d = 0;
    for (; d + 4 * LANES <= places.head_dim; d += 4 * LANES)
        weigh<ROWS, 4>(places, cache, lookup, desk.weights, desk.slots, d, first, last, desk.sums);
    for (; d < places.head_dim; d += LANES)
        weigh<ROWS, 1>(places, cache, lookup, desk.weights, desk.slots, d, first, last, desk.sums);
    for (int row = 0; row < ROWS; ++row)
        for (d = 0; d < places.head_dim; d += LANES)
            store(outs[row] + d, narrowed(loaded<Lanes>(desk.sums + row * places.head_dim + d) / totals[row]));
}

template <int ROWS = ATTENTION_ROWS>
static void attend(
    int rows, const Places& places, const Cache& cache, const Lookup& lookup, const bf16* const* queries,
    const Sight* sights, bf16* const* outs, const Desk& desk) {
    if (rows == ROWS) return attend_rows<ROWS>(places, cache, lookup, queries, sights, outs, desk);
    if constexpr (ROWS > 1) attend<ROWS - 1>(rows, places, cache, lookup, queries, sights, outs, desk);
}
