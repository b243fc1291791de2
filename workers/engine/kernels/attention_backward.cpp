// The gradients of attention by its queries, keys and values, in fp32 and rounded once; weights are computed again.
//
// First by queries, row by row as in the forward pass, then by keys: each key's sums go over the sequences that see it,
// the query heads and the tokens, in this order, whichever thread computes them.
#include "key_panels.h"

using namespace attention;

constexpr long CHUNK = 8;  // Blocks of queries whose weights are in memory at once, in the pass by keys.

// Scores from..to - 1 of a row become weights, and the gradients by these weights become those by the scores. Returns
// the sum of weight * gradient.
static float softmax_backward(float *scores, float *grads, long stride, long blocks, float most, float inverse,
                              long from, long to) {
    Ints places = counted();
    Floats total{};
    for (long block = 0; block < blocks; block++) {
        Ints place = places + int32_t(block * SIMD_WIDTH), seen = (place >= int32_t(from)) & (place < int32_t(to));
        Floats weight = exponential(load(scores + block * stride) - most) * inverse;
        weight = select(seen, weight, all(0.0f));
        Floats grad = select(seen, load(grads + block * stride), all(0.0f));
        store(scores + block * stride, weight);
        store(grads + block * stride, grad);
        total += weight * grad;
    }
    float along = folded(total, Plus{});
    for (long block = 0; block < blocks; block++) {
        Floats grad = load(grads + block * stride) - along;
        store(grads + block * stride, load(scores + block * stride) * grad);
    }
    return along;
}

template <typename T> struct Backward {
    Shape shape;
    Heads<const T> q, k, v, grad;
    Heads<T> q_grad, k_grad, v_grad;
    const float *peaks;
    long tokens;
    std::unique_ptr<float[]> along = buffer<float>(shape.heads * tokens + SIMD_WIDTH);
    KeyPanels<T> k_panels{shape, shape.size}, v_panels{shape, shape.value_size};
    Panels q_panels{shape.heads, shape.size * long(sizeof(T))};
    Panels grad_panels{shape.heads, shape.value_size * long(sizeof(T))};

    struct Buffers {
        std::unique_ptr<uint32_t[]> few, few_values;
        std::unique_ptr<float[]> weights, grads, sums, value_sums;
    };
    Buffers make_buffers() const {
        long weights = MOST_ROWS * std::max(shape.most_keys() + SIMD_WIDTH, CHUNK * SIMD_WIDTH);
        return {buffer<uint32_t>(MOST_ROWS * k_panels.words), buffer<uint32_t>(MOST_ROWS * v_panels.words),
                buffer<float>(weights), buffer<float>(weights),
                buffer<float>(MOST_ROWS * shape.size), buffer<float>(MOST_ROWS * shape.value_size)};
    }

    void by_queries(long sequence, long kv_head, long part, const Buffers &buffers) const {
        const Sequence &s = shape.sequences[sequence];
        Tile tile(shape, sequence, kv_head, part);
        long rows = tile.rows, first = tile.first_block(), blocks = tile.last_block() - first;
        float *weights = buffers.weights.get(), *grads = buffers.grads.get();
        gather([&](long r) { return q.own(s, tile.head(r), tile.token(r)); }, rows, k_panels.words, buffers.few.get());
        gather([&](long r) { return grad.own(s, tile.head(r), tile.token(r)); }, rows, v_panels.words,
               buffers.few_values.get());
        k_panels.dots(sequence, kv_head, rows, buffers.few.get(), first, first + blocks, shape.scale, weights);
        v_panels.dots(sequence, kv_head, rows, buffers.few_values.get(), first, first + blocks, 1, grads);
        for (long r = 0; r < rows; r++) {
            long place = tile.head(r) * tokens + s.start + tile.token(r), seen = first * SIMD_WIDTH;
            along[place] = softmax_backward(weights + r * SIMD_WIDTH, grads + r * SIMD_WIDTH, rows * SIMD_WIDTH, blocks,
                                            peaks[place], peaks[shape.heads * tokens + place], tile.from(r) - seen,
                                            tile.to(r) - seen);
        }
        std::fill_n(buffers.sums.get(), rows * shape.size, 0.0f);
        mix_series(rows, grads, k.of(s, kv_head), first * SIMD_WIDTH, tile.from(0), tile.to(rows - 1),
                   buffers.sums.get(), shape.size);
        for (long r = 0; r < rows; r++)
            scaled(buffers.sums.get() + r * shape.size, shape.size, shape.scale,
                   q_grad.own(s, tile.head(r), tile.token(r)));
    }

    // Own keys start..stop - 1 of a sequence, for it and for those that go on from it.
    void by_keys(long sequence, long kv_head, long start, long stop, const Buffers &buffers) const {
        const Sequence &s = shape.sequences[sequence];
        long rows = stop - start, group = shape.group();
        gather([&](long r) { return k.own(s, kv_head, start + r); }, rows, k_panels.words, buffers.few.get());
        gather([&](long r) { return v.own(s, kv_head, start + r); }, rows, v_panels.words, buffers.few_values.get());
        std::fill_n(buffers.sums.get(), rows * shape.size, 0.0f);
        std::fill_n(buffers.value_sums.get(), rows * shape.value_size, 0.0f);
        for (long reader = sequence; reader <= sequence + s.followers; reader++)
            for (long head = kv_head * group; head < (kv_head + 1) * group; head++)
                add_reader(reader, head, s.prefix + start - shape.sequences[reader].prefix, rows, buffers);
        for (long r = 0; r < rows; r++) {
            scaled(buffers.sums.get() + r * shape.size, shape.size, shape.scale, k_grad.own(s, kv_head, start + r));
            scaled(buffers.value_sums.get() + r * shape.value_size, shape.value_size, 1,
                   v_grad.own(s, kv_head, start + r));
        }
    }

    // Adds what one query head of a sequence contributes to the gradients of the keys; its token `offset` + r is at the
    // position of key r.
    void add_reader(long reader, long head, long offset, long rows, const Buffers &buffers) const {
        const Sequence &s = shape.sequences[reader];
        long from = std::max(0L, offset), to = std::min(s.length, offset + rows - 1 + shape.window);
        for (long block = from / SIMD_WIDTH; block * SIMD_WIDTH < to; block += CHUNK) {
            long first = block * SIMD_WIDTH, stop = std::min(to, first + CHUNK * SIMD_WIDTH);
            long begin = std::max(from, first) - first, blocks = (stop - first + SIMD_WIDTH - 1) / SIMD_WIDTH;
            float *weights = buffers.weights.get(), *grads = buffers.grads.get();
            dot<T>(rows, buffers.few.get(), q_panels.of(reader, head) + first * k_panels.words, blocks, k_panels.words,
                   shape.scale, weights);
            dot<T>(rows, buffers.few_values.get(), grad_panels.of(reader, head) + first * v_panels.words, blocks,
                   v_panels.words, 1, grads);
            weigh(s, head, first, blocks, offset, rows, weights, grads);
            mix<T>(rows, weights, grad.own(s, head, first), grad.stride, begin, stop - first, buffers.value_sums.get(),
                   shape.value_size);
            mix<T>(rows, grads, q.own(s, head, first), q.stride, begin, stop - first, buffers.sums.get(), shape.size);
        }
    }
    void weigh(const Sequence &s, long head, long first, long blocks, long offset, long rows, float *weights,
               float *grads) const {
        Ints places = counted();
        for (long block = 0; block < blocks; block++) {
            long token = first + block * SIMD_WIDTH, at = head * tokens + s.start + token;
            Floats most = load(peaks + at), inverse = load(peaks + shape.heads * tokens + at);
            Floats towards = load(&along[at]);
            for (long r = 0; r < rows; r++, weights += SIMD_WIDTH, grads += SIMD_WIDTH) {
                long seen_from = offset + r, seen_to = std::min(s.length, seen_from + shape.window);
                Ints place = places + int32_t(token);
                Ints seen = (place >= int32_t(seen_from)) & (place < int32_t(seen_to));
                Floats weight = exponential(load(weights) - most) * inverse;
                weight = select(seen, weight, all(0.0f));
                store(weights, weight);
                store(grads, select(seen, weight * (load(grads) - towards), all(0.0f)));
            }
        }
    }

    void pack(long sequence, long kv_head) {
        const Sequence &s = shape.sequences[sequence];
        k_panels.fill(sequence, kv_head, k.of(s, kv_head));
        v_panels.fill(sequence, kv_head, v.of(s, kv_head));
        for (long head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); head++) {
            q_panels.fill(sequence, head, s.length, [&](long i) { return q.own(s, head, i); });
            grad_panels.fill(sequence, head, s.length, [&](long i) { return grad.own(s, head, i); });
        }
    }

    void run() {
        Work queries, keys;
        for (long s = 0; s < shape.count; s++) {
            queries.add(shape.cut(s).parts), keys.add(Cut{shape.sequences[s].length}.parts);
            k_panels.add(s), v_panels.add(s);
            q_panels.add(shape.sequences[s].length), grad_panels.add(shape.sequences[s].length);
        }
        for (Panels *panels : std::initializer_list<Panels *>{&k_panels, &v_panels, &q_panels, &grad_panels})
            panels->allocate();
        bool is_parallel = shape.is_large();
#pragma omp parallel if (is_parallel)
        {
            Buffers own = make_buffers();
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

template <typename T> void kernels::attention_backward(const attention_backward_arguments<T> &a) {
    Backward<T>{
        shape_of(a),
        {a.q, a.q_stride, a.size},
        {a.k, a.k_stride, a.size},
        {a.v, a.v_stride, a.value_size},
        {a.grad, a.grad_stride, a.value_size},
        {a.q_grad, a.heads * a.size, a.size},
        {a.k_grad, a.kv_heads * a.size, a.size},
        {a.v_grad, a.kv_heads * a.value_size, a.value_size},
        a.peaks,
        a.tokens,
    }
        .run();
}
EXPORT(attention_backward)
