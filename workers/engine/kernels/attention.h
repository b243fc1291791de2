// Sequences of a pass: where their queries, keys and values lie, which of them see which, and how the work is cut.
#pragma once

#include <memory>
#include <vector>

#include "kernel.h"
#include "tiles.h"

namespace attention {

using kernels::Sequence;

inline long key_count(const Sequence &s) { return s.prefix + s.length; }

// What one head holds for a sequence: `count` rows, then its own.
template <typename T> struct Series {
    T *before, *own;
    long count, stride;

    T *at(long i) const { return i < count ? before + i * stride : own + (i - count) * stride; }
};

// A tensor [rows, heads, head size] of a pass, or a cache's [rows, heads, length, head size].
template <typename T> struct Heads {
    T *first;
    long stride, head_stride, cache_row = 0;

    Series<T> of(const Sequence &s, long head) const {
        T *begin = first + head * head_stride;
        if (!cache_row) return {begin + s.before * stride, begin + s.start * stride, s.prefix, stride};
        T *row = begin + s.before * cache_row;
        return {row, row + s.prefix * stride, s.prefix, stride};
    }
    T *own(const Sequence &s, long head, long i) const { return first + (s.start + i) * stride + head * head_stride; }
};

template <typename T> Heads<const T> read_only(Heads<T> heads) {
    return {heads.first, heads.stride, heads.head_stride, heads.cache_row};
}

// Nearly equal parts of `length` rows, none of more than MOST_ROWS.
struct Cut {
    long length, parts = (length + MOST_ROWS - 1) / MOST_ROWS;

    long at(long part) const { return length * part / parts; }
};

struct Shape {
    long heads, kv_heads, size, value_size;
    float scale;
    long window;
    const Sequence *sequences;
    long count;

    long group() const { return heads / kv_heads; }
    // The first key that a token sees.
    long first_seen(long position) const { return std::max(0L, position + 1 - window); }
    Cut cut(long sequence) const { return {sequences[sequence].length * group()}; }
    long most_keys() const {
        long most = 0;
        for (long s = 0; s < count; s++) most = std::max(most, key_count(sequences[s]));
        return most;
    }
    // Whether it takes longer than to wake threads: by the multiplications, about.
    bool is_large() const {
        double pairs = 0;
        for (long i = 0; i < count; i++)
            pairs += sequences[i].length * (sequences[i].prefix + 0.5 * sequences[i].length);
        return pairs * heads * (size + value_size) > 1 << 20;
    }
};

template <typename Arguments> Shape shape_of(const Arguments &a) {
    return {a.heads, a.kv_heads, a.size, a.value_size, a.scale, a.window, a.sequences, a.sequences_count};
}

// Rows of one head of keys: the query heads that share it, token after token.
struct Tile {
    long group, first_head, prefix, window, start, rows;

    Tile(const Shape &shape, long sequence, long kv_head, long part)
        : group(shape.group()), first_head(kv_head * group), prefix(shape.sequences[sequence].prefix),
          window(shape.window), start(shape.cut(sequence).at(part)), rows(shape.cut(sequence).at(part + 1) - start) {}

    long token(long row) const { return (start + row) / group; }
    long head(long row) const { return first_head + (start + row) % group; }
    // A row sees the keys from..to - 1, and all rows together those of the blocks first..last - 1.
    long to(long row) const { return prefix + token(row) + 1; }
    long from(long row) const { return std::max(0L, to(row) - window); }
    long first_block() const { return from(0) / SIMD_WIDTH; }
    long last_block() const { return (to(rows - 1) + SIMD_WIDTH - 1) / SIMD_WIDTH; }
};

// The parts of all sequences, in one line.
struct Work {
    std::vector<long> starts{0};

    void add(long parts) { starts.push_back(starts.back() + parts); }
    long items() const { return starts.back(); }
    long sequence(long item) const { return std::upper_bound(starts.begin(), starts.end(), item) - starts.begin() - 1; }
    long part(long item) const { return item - starts[sequence(item)]; }
};

inline Ints counted() {
    int32_t places[SIMD_WIDTH];
    for (long i = 0; i < SIMD_WIDTH; i++) places[i] = int32_t(i);
    return read<Ints>(places);
}

template <typename T> void scaled(const float *sums, long size, float scale, T *to) {
    for (long i = 0; i < size; i += SIMD_WIDTH) store(to + i, load(sums + i) * scale);
}

}  // namespace attention
