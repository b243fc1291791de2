// The slopes of attention by its queries, keys and values, in fp32 and rounded once; weights are computed again.
//
// First by queries, row by row as in the forward pass, then by keys: each key's sums go over the sequences that see it,
// the query heads and the tokens, in this order, whichever thread computes them.
#include "key_panels.h"

using namespace attention;

constexpr long CHUNK = 8;  // Blocks of queries whose weights are held at once, in the pass by keys.

// Scores from..to - 1 of a row become weights, and what meets them their slopes; the sum of both's products.
static float score_slopes(float *scores, float *slopes, long stride, long blocks, float most, float inverse, long from,
                          long to) {
    Ints places = counted();
    Floats total{};
    for (long block = 0; block < blocks; block++) {
        Ints place = places + int32_t(block * SIMD_WIDTH), seen = (place >= int32_t(from)) & (place < int32_t(to));
        Floats weight = exponential(load(scores + block * stride) - most) * inverse;
        weight = select(seen, weight, all(0.0f));
        Floats slope = select(seen, load(slopes + block * stride), all(0.0f));
        store(scores + block * stride, weight);
        store(slopes + block * stride, slope);
        total += weight * slope;
    }
    float along = folded(total, Plus{});
    for (long block = 0; block < blocks; block++) {
        Floats slope = load(slopes + block * stride) - along;
        store(slopes + block * stride, load(scores + block * stride) * slope);
    }
    return along;
}

template <typename T> struct Backward {
    Shape shape;
    Heads<T> q, k, v, slope, q_slope, k_slope, v_slope;
    const float *peaks;
    long tokens;
    std::unique_ptr<float[]> along = room<float>(shape.heads * tokens + SIMD_WIDTH);
    KeyPanels<T> k_panels{shape, shape.size}, v_panels{shape, shape.value_size};
    Panels q_panels{shape.heads, shape.size * long(sizeof(T))};
    Panels slope_panels{shape.heads, shape.value_size * long(sizeof(T))};

    struct Room {
        std::unique_ptr<uint32_t[]> few, few_values;
        std::unique_ptr<float[]> weights, slopes, sums, value_sums;
    };
    Room make_room() const {
        long weights = MOST_ROWS * std::max(shape.most_keys() + SIMD_WIDTH, CHUNK * SIMD_WIDTH);
        return {room<uint32_t>(MOST_ROWS * k_panels.words), room<uint32_t>(MOST_ROWS * v_panels.words),
                room<float>(weights), room<float>(weights),
                room<float>(MOST_ROWS * shape.size), room<float>(MOST_ROWS * shape.value_size)};
    }

    void by_queries(long sequence, long kv_head, long part, const Room &room) const {
        const Sequence &s = shape.sequences[sequence];
        Tile tile(shape, sequence, kv_head, part);
        long rows = tile.rows, first = tile.first_block(), blocks = tile.last_block() - first;
        float *weights = room.weights.get(), *slopes = room.slopes.get();
        gather([&](long r) { return q.own(s, tile.head(r), tile.token(r)); }, rows, k_panels.words, room.few.get());
        gather([&](long r) { return slope.own(s, tile.head(r), tile.token(r)); }, rows, v_panels.words,
               room.few_values.get());
        k_panels.dots(sequence, kv_head, rows, room.few.get(), first, first + blocks, shape.scale, weights);
        v_panels.dots(sequence, kv_head, rows, room.few_values.get(), first, first + blocks, 1, slopes);
        for (long r = 0; r < rows; r++) {
            long place = tile.head(r) * tokens + s.start + tile.token(r), seen = first * SIMD_WIDTH;
            along[place] = score_slopes(weights + r * SIMD_WIDTH, slopes + r * SIMD_WIDTH, rows * SIMD_WIDTH, blocks, peaks[place],
                                        peaks[shape.heads * tokens + place], tile.from(r) - seen, tile.to(r) - seen);
        }
        std::fill_n(room.sums.get(), rows * shape.size, 0.0f);
        mix_series(rows, slopes, k.of(s, kv_head), first * SIMD_WIDTH, tile.from(0), tile.to(rows - 1), room.sums.get(),
                   shape.size);
        for (long r = 0; r < rows; r++)
            scaled(room.sums.get() + r * shape.size, shape.size, shape.scale,
                   q_slope.own(s, tile.head(r), tile.token(r)));
    }

    // Own keys start..stop - 1 of a sequence, for it and for those that go on from it.
    void by_keys(long sequence, long kv_head, long start, long stop, const Room &room) const {
        const Sequence &s = shape.sequences[sequence];
        long rows = stop - start, group = shape.group();
        gather([&](long r) { return k.own(s, kv_head, start + r); }, rows, k_panels.words, room.few.get());
        gather([&](long r) { return v.own(s, kv_head, start + r); }, rows, v_panels.words, room.few_values.get());
        std::fill_n(room.sums.get(), rows * shape.size, 0.0f);
        std::fill_n(room.value_sums.get(), rows * shape.value_size, 0.0f);
        for (long reader = sequence; reader <= sequence + s.followers; reader++)
            for (long head = kv_head * group; head < (kv_head + 1) * group; head++)
                add_reader(reader, head, s.prefix + start - shape.sequences[reader].prefix, rows, room);
        for (long r = 0; r < rows; r++) {
            scaled(room.sums.get() + r * shape.size, shape.size, shape.scale, k_slope.own(s, kv_head, start + r));
            scaled(room.value_sums.get() + r * shape.value_size, shape.value_size, 1,
                   v_slope.own(s, kv_head, start + r));
        }
    }

    // Adds what one query head of a sequence says of the keys; its token `offset` + r is the one at key r's position.
    void add_reader(long reader, long head, long offset, long rows, const Room &room) const {
        const Sequence &s = shape.sequences[reader];
        long from = std::max(0L, offset), to = std::min(s.length, offset + rows - 1 + shape.window);
        for (long block = from / SIMD_WIDTH; block * SIMD_WIDTH < to; block += CHUNK) {
            long first = block * SIMD_WIDTH, stop = std::min(to, first + CHUNK * SIMD_WIDTH);
            long begin = std::max(from, first) - first, blocks = (stop - first + SIMD_WIDTH - 1) / SIMD_WIDTH;
            float *weights = room.weights.get(), *slopes = room.slopes.get();
            dot<T>(rows, room.few.get(), q_panels.of(reader, head) + first * k_panels.words, blocks, k_panels.words,
                   shape.scale, weights);
            dot<T>(rows, room.few_values.get(), slope_panels.of(reader, head) + first * v_panels.words, blocks,
                   v_panels.words, 1, slopes);
            weigh(s, head, first, blocks, offset, rows, weights, slopes);
            mix<T>(rows, weights, slope.own(s, head, first), slope.stride, begin, stop - first, room.value_sums.get(),
                   shape.value_size);
            mix<T>(rows, slopes, q.own(s, head, first), q.stride, begin, stop - first, room.sums.get(), shape.size);
        }
    }
    void weigh(const Sequence &s, long head, long first, long blocks, long offset, long rows, float *weights,
               float *slopes) const {
        Ints places = counted();
        for (long block = 0; block < blocks; block++) {
            long token = first + block * SIMD_WIDTH, at = head * tokens + s.start + token;
            Floats most = load(peaks + at), inverse = load(peaks + shape.heads * tokens + at);
            Floats towards = load(&along[at]);
            for (long r = 0; r < rows; r++, weights += SIMD_WIDTH, slopes += SIMD_WIDTH) {
                long seen_from = offset + r, seen_to = std::min(s.length, seen_from + shape.window);
                Ints place = places + int32_t(token);
                Ints seen = (place >= int32_t(seen_from)) & (place < int32_t(seen_to));
                Floats weight = exponential(load(weights) - most) * inverse;
                weight = select(seen, weight, all(0.0f));
                store(weights, weight);
                store(slopes, select(seen, weight * (load(slopes) - towards), all(0.0f)));
            }
        }
    }

    void pack(long sequence, long kv_head) {
        const Sequence &s = shape.sequences[sequence];
        k_panels.fill(sequence, kv_head, k.of(s, kv_head));
        v_panels.fill(sequence, kv_head, v.of(s, kv_head));
        for (long head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); head++) {
            q_panels.fill(sequence, head, s.length, [&](long i) { return q.own(s, head, i); });
            slope_panels.fill(sequence, head, s.length, [&](long i) { return slope.own(s, head, i); });
        }
    }

    void run() {
        Work queries, keys;
        for (long s = 0; s < shape.count; s++) {
            queries.add(shape.cut(s).parts), keys.add(Cut{shape.sequences[s].length}.parts);
            k_panels.add(s), v_panels.add(s);
            q_panels.add(shape.sequences[s].length), slope_panels.add(shape.sequences[s].length);
        }
        for (Panels *panels : std::initializer_list<Panels *>{&k_panels, &v_panels, &q_panels, &slope_panels})
            panels->allocate();
        bool wakes = shape.is_large();
#pragma omp parallel if (wakes)
        {
            Room own = make_room();
#pragma omp for collapse(2) schedule(dynamic)
            for (long s = 0; s < shape.count; s++)
                for (long head = 0; head < shape.kv_heads; head++) pack(s, head);
#pragma omp for collapse(2) schedule(dynamic)
            for (long item = 0; item < queries.items(); item++)
                for (long head = 0; head < shape.kv_heads; head++)
                    by_queries(queries.sequence(item), head, queries.part(item), own);
#pragma omp for collapse(2) schedule(dynamic) nowait
            for (long item = 0; item < keys.items(); item++)
                for (long head = 0; head < shape.kv_heads; head++) {
                    Cut cut{shape.sequences[keys.sequence(item)].length};
                    by_keys(keys.sequence(item), head, cut.at(keys.part(item)), cut.at(keys.part(item) + 1), own);
                }
        }
    }
};

#define EXPORT(T, NAME)                                                                                                \
    extern "C" void NAME(T *q, long q_stride, T *k, long k_stride, T *v, long v_stride, T *slope, long slope_stride,   \
                         T *q_slope, T *k_slope, T *v_slope, const float *peaks, long tokens, SHAPE_ARGUMENTS) {       \
        Backward<T>{SHAPE,                                                                                             \
                    {q, q_stride, size},                                                                               \
                    {k, k_stride, size},                                                                               \
                    {v, v_stride, value_size},                                                                         \
                    {slope, slope_stride, value_size},                                                                 \
                    {q_slope, heads * size, size},                                                                     \
                    {k_slope, kv_heads * size, size},                                                                  \
                    {v_slope, kv_heads * value_size, value_size},                                                      \
                    peaks,                                                                                             \
                    tokens}                                                                                            \
            .run();                                                                                                    \
    }
EXPORT(float, attention_backward_float32)
EXPORT(bf16, attention_backward_bfloat16)
