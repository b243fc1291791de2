// softmax(q k^T * scale) v for each token of a pass over the keys that it sees, in fp32 and rounded once.
//
// A token's sums go over the keys in the order of their positions, whether it is one of many queries of its sequence or
// the newest of a sequence in a cache.
#include "key_panels.h"

using namespace attention;

struct Peak {
    float most, inverse;  // The largest score, and 1 / the sum of e^(score - most).
};

// Scores from..to - 1 of a row of blocks, `stride` apart, become e^(score - most), the others 0.
static Peak exponentials(float *row, long stride, long blocks, long from, long to) {
    Ints places = counted();
    Floats most = all(-INFINITY), total{};
    for (long block = 0; block < blocks; block++) {
        Ints place = places + int32_t(block * SIMD_WIDTH), seen = (place >= int32_t(from)) & (place < int32_t(to));
        Floats score = select(seen, load(row + block * stride), all(-INFINITY));
        store(row + block * stride, score);
        most = larger(score, most);
    }
    float peak = folded(most, Larger{});
    for (long block = 0; block < blocks; block++) {
        Floats weight = exponential(load(row + block * stride) - peak);
        store(row + block * stride, weight);
        total += weight;
    }
    return {peak, 1 / folded(total, Plus{})};
}

// Of every head and token the largest score, then of every head and token 1 / the sum of weights; or nothing.
struct Peaks {
    float *memory;
    long heads, tokens;

    void keep(long head, long token, Peak peak) const {
        if (!memory) return;
        memory[head * tokens + token] = peak.most;
        memory[(heads + head) * tokens + token] = peak.inverse;
    }
};

// Into the L2 cache: the L1 cache is full of the current item.
template <typename T> void prefetch(const T *from, long count) {
    for (long i = 0; i < count; i += 64 / sizeof(T)) __builtin_prefetch(from + i, 0, 2);
}

template <typename T> struct Forward {
    Shape shape;
    Heads<const T> q, k, v;
    Heads<T> out;
    Peaks peaks;
    KeyPanels<T> panels{shape, shape.size};
    Work work{};

    // Each tile of each head of keys.
    long items() const { return work.items() * shape.kv_heads; }
    long sequence(long item) const { return work.sequence(item / shape.kv_heads); }
    long head(long item) const { return item % shape.kv_heads; }

    struct Buffers {
        std::unique_ptr<uint32_t[]> few, pair;
        std::unique_ptr<float[]> weights, sums;
    };
    Buffers make_buffers() const {
        return {buffer<uint32_t>(MOST_ROWS * panels.words), buffer<uint32_t>(2 * SIMD_WIDTH * panels.words),
                buffer<float>(MOST_ROWS * (shape.most_keys() + SIMD_WIDTH)),
                buffer<float>(MOST_ROWS * shape.value_size)};
    }

    // Keys that are read only once are not kept as panels.
    bool is_packed(long sequence) const {
        const Sequence &s = shape.sequences[sequence];
        return shape.cut(sequence).parts > 1 || s.leader != sequence || s.followers;
    }
    // Dot products with panels first..last - 1 that are made a pair at a time.
    void dots_once(Series<const T> keys, long rows, const Buffers &buffers, long first, long last, long stop) const {
        float *to = buffers.weights.get();
        for (long panel = first; panel < last; panel += 2, to += 2 * rows * SIMD_WIDTH) {
            long count = std::min(2L, last - panel);
            for (long i = 0; i < count; i++) {
                long start = (panel + i) * SIMD_WIDTH;
                pack([&](long r) { return keys.at(start + r); }, std::min(SIMD_WIDTH, stop - start), panels.words,
                     buffers.pair.get() + i * panels.words * SIMD_WIDTH);
            }
            dot<T>(rows, buffers.few.get(), buffers.pair.get(), count, panels.words, shape.scale, to);
        }
    }

    // Prefetches SIMD_WIDTH rows of the cache that an item reads, from its row `start` on.
    void fetch(long item, long start) const {
        if (!k.cache_row || item >= items() || is_packed(sequence(item))) return;
        const Sequence &s = shape.sequences[sequence(item)];
        long keys = key_count(s), from = std::min(shape.first_seen(s.prefix) + start, keys);
        long to = std::min(from + SIMD_WIDTH, keys);
        prefetch(k.of(s, head(item)).before + from * k.stride, (to - from) * k.stride);
        prefetch(v.of(s, head(item)).before + from * v.stride, (to - from) * v.stride);
    }

    void attend(long item, const Buffers &buffers) const {
        long sequence = this->sequence(item), kv_head = head(item);
        const Sequence &s = shape.sequences[sequence];
        Tile tile(shape, sequence, kv_head, work.part(item / shape.kv_heads));
        long rows = tile.rows, first = tile.first_block(), last = tile.last_block(), begin = first * SIMD_WIDTH;
        float *weights = buffers.weights.get(), *sums = buffers.sums.get();
        gather([&](long r) { return q.own(s, tile.head(r), tile.token(r)); }, rows, panels.words, buffers.few.get());
        if (is_packed(sequence))
            panels.dots(sequence, kv_head, rows, buffers.few.get(), first, last, shape.scale, weights);
        else
            dots_once(k.of(s, kv_head), rows, buffers, first, last, tile.to(rows - 1));
        Peak found[MOST_ROWS];
        for (long r = 0; r < rows; r++)
            found[r] = exponentials(weights + r * SIMD_WIDTH, rows * SIMD_WIDTH, last - first, tile.from(r) - begin,
                                    tile.to(r) - begin);
        std::fill_n(sums, rows * shape.value_size, 0.0f);
        long from = tile.from(0), to = tile.to(rows - 1), step = is_packed(sequence) ? to - from : SIMD_WIDTH;
        for (long at = from; at < to; at += step) {
            fetch(item + 1, at - from);
            mix_series(rows, weights, v.of(s, kv_head), begin, at, std::min(at + step, to), sums, shape.value_size);
        }
        for (long r = 0; r < rows; r++, sums += shape.value_size) {
            scaled(sums, shape.value_size, found[r].inverse, out.own(s, tile.head(r), tile.token(r)));
            peaks.keep(tile.head(r), s.start + tile.token(r), found[r]);
        }
    }

    // `prepare` is called with each sequence and head of keys, before anything is read.
    template <typename Prepare> void run(Prepare prepare) {
        for (long s = 0; s < shape.count; s++) {
            work.add(shape.cut(s).parts);
            is_packed(s) ? panels.add(s) : panels.add_none();
        }
        panels.allocate();
        bool is_parallel = shape.is_large();
#pragma omp parallel if (is_parallel)
        {
            Buffers own = make_buffers();
#pragma omp for collapse(2) schedule(dynamic)
            for (long s = 0; s < shape.count; s++)
                for (long head = 0; head < shape.kv_heads; head++) {
                    prepare(shape.sequences[s], head);
                    if (is_packed(s)) panels.fill(s, head, k.of(shape.sequences[s], head));
                }
#pragma omp for schedule(dynamic, 4) nowait
            for (long item = 0; item < items(); item++) attend(item, own);
        }
    }
};

// Copies a sequence's new keys or values to the cache.
template <typename T> void put(const Sequence &s, long head, long size, Heads<const T> from, Heads<T> cache) {
    Series<T> rows = cache.of(s, head);
    for (long i = 0; i < s.length; i++) std::memcpy(rows.at(s.prefix + i), from.own(s, head, i), size * sizeof(T));
}

template <typename T>
void attend_pass(const Shape &shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, T *out, float *peaks,
                 long tokens) {
    Heads<T> seen{out, shape.heads * shape.value_size, shape.value_size};
    Forward<T>{shape, q, k, v, seen, {peaks, shape.heads, tokens}}.run([](const Sequence &, long) {});
}

template <typename T>
void attend_cache(const Shape &shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> keys,
                  Heads<T> values, T *out) {
    Heads<T> seen{out, shape.heads * shape.value_size, shape.value_size};
    Forward<T>{shape, q, read_only(keys), read_only(values), seen, {}}.run([&](const Sequence &s, long head) {
        put(s, head, shape.size, k, keys);
        put(s, head, shape.value_size, v, values);
    });
}

template <typename T> void kernels::attention(const attention_arguments<T> &a) {
    Heads<const T> q{a.q, a.q_stride, a.size}, k{a.k, a.k_stride, a.size}, v{a.v, a.v_stride, a.value_size};
    attend_pass<T>(shape_of(a), q, k, v, a.out, a.peaks, a.tokens);
}
EXPORT(attention)

template <typename T> void kernels::cached_attention(const cached_attention_arguments<T> &a) {
    Heads<const T> q{a.q, a.q_stride, a.size}, k{a.k, a.k_stride, a.size}, v{a.v, a.v_stride, a.value_size};
    Heads<T> keys{a.keys, a.size, a.capacity * a.size, a.kv_heads * a.capacity * a.size};
    Heads<T> values{a.values, a.value_size, a.capacity * a.value_size, a.kv_heads * a.capacity * a.value_size};
    attend_cache<T>(shape_of(a), q, k, v, keys, values, a.out);
}
EXPORT(cached_attention)
