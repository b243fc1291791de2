// Attention of new tokens to a cache's, which then holds theirs as well.
#include "heads.h"
#include "kernels.h"

namespace {

constexpr long ROWS = 3, CAPACITY = 50;

// [rows, heads, capacity, size].
template <typename T> struct Cache {
    long heads, size;
    Numbers<T> numbers;

    Cache(long heads, long size, Random &random, float spread)
        : heads(heads), size(size), numbers(random.numbers<T>(ROWS * heads * CAPACITY * size, spread)) {}
    T *at(long row, long head, long i) { return numbers.data() + ((row * heads + head) * CAPACITY + i) * size; }

    void put(const Sequence &s, const Heads<T> &brought) {
        for (long i = 0; i < s.length; i++)
            for (long head = 0; head < heads; head++)
                std::copy_n(brought.at(s.start + i, head), size, at(s.before, head, s.prefix + i));
    }
};

template <typename T> std::vector<Estimate> attended(const Attending &shape, const Heads<T> &q, Cache<T> &keys, Cache<T> &values) {
    std::vector<Estimate> out;
    for (const Sequence &s : shape.sequences)
        for (long i = 0; i < s.length; i++)
            for (long head = 0; head < shape.heads; head++) {
                long to = s.prefix + i, from = shape.first_seen(to), kv = shape.kv_head(head);
                auto key = [&](long j) { return keys.at(s.before, kv, j); };
                auto weights = weights_of(q.at(s.start + i, head), key, from, to, shape.size, shape.scale);
                for (long d = 0; d < shape.value_size; d++) {
                    Sum mixed;
                    for (long j = from; j <= to; j++)
                        mixed.add(weights[j - from] * Estimate{wide(values.at(s.before, kv, j)[d])});
                    out.push_back(mixed.total());
                }
            }
    return out;
}

template <typename T> void compare(const Attending &shape, long tokens, const Library &library, Check<T> &check) {
    Random random(9);
    Heads<T> q(tokens, shape.heads, shape.size, random, 2), k(tokens, shape.kv_heads, shape.size, random, 2);
    Heads<T> v(tokens, shape.kv_heads, shape.value_size, random);
    Cache<T> keys(shape.kv_heads, shape.size, random, 2), values(shape.kv_heads, shape.value_size, random, 1);
    Cache<T> given_keys = keys, given_values = values;
    for (const Sequence &s : shape.sequences) keys.put(s, k), values.put(s, v);
    Numbers<T> given(tokens * shape.heads * shape.value_size);
    library.call("cached_attention",
                 kernels::cached_attention_arguments<T>{.q = q.numbers.data(),
                                                        .q_stride = q.stride,
                                                        .k = k.numbers.data(),
                                                        .k_stride = k.stride,
                                                        .v = v.numbers.data(),
                                                        .v_stride = v.stride,
                                                        .keys = given_keys.numbers.data(),
                                                        .values = given_values.numbers.data(),
                                                        .capacity = CAPACITY,
                                                        .out = given.data(),
                                                        .heads = shape.heads,
                                                        .kv_heads = shape.kv_heads,
                                                        .size = shape.size,
                                                        .value_size = shape.value_size,
                                                        .scale = shape.scale,
                                                        .window = shape.window,
                                                        .sequences = shape.sequences.data(),
                                                        .sequences_count = long(shape.sequences.size())});
    check.near(given, attended(shape, q, keys, values));
    check.same(given_keys.numbers, keys.numbers), check.same(given_values.numbers, values.numbers);
}

}  // namespace

template <typename T> bool check_cached_attention(const Library &library) {
    Check<T> check("cached_attention");
    // The newest token of one row, several of another, the first of a third.
    std::vector<Sequence> sequences = {{0, 1, 2, 40, 0, 0}, {1, 17, 0, 30, 1, 0}, {18, 5, 1, 0, 2, 0}};
    compare<T>({4, 2, 32, 48, 0.2f, NO_WINDOW, sequences}, 23, library, check);
    compare<T>({3, 1, 16, 16, 0.25f, 9, sequences}, 23, library, check);
    return check.finish();
}
INSTANTIATE(check_cached_attention)
