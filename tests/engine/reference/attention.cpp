// softmax(q k^T * scale) v over the keys that a token sees, and its gradients.
#include "heads.h"
#include "kernels.h"

namespace {

template <typename T> struct Pass {
    Attending shape;
    long tokens;
    Random random{8};
    Heads<T> q{tokens, shape.heads, shape.size, random, 2}, k{tokens, shape.kv_heads, shape.size, random, 2};
    Heads<T> v{tokens, shape.kv_heads, shape.value_size, random}, grad{tokens, shape.heads, shape.value_size, random};
    std::vector<Estimate> out = zeros(shape.heads, shape.value_size), q_grad = zeros(shape.heads, shape.size);
    std::vector<Estimate> k_grad = zeros(shape.kv_heads, shape.size), v_grad = zeros(shape.kv_heads, shape.value_size);

    std::vector<Estimate> zeros(long heads, long size) const { return std::vector<Estimate>(tokens * heads * size); }

    // Where key i of a sequence lies in the pass.
    static long row(const Sequence &s, long i) { return i < s.prefix ? s.before + i : s.start + i - s.prefix; }

    void expect() {
        std::vector<Sum> k_sums(k_grad.size()), v_sums(v_grad.size());
        for (const Sequence &s : shape.sequences)
            for (long i = 0; i < s.length; i++)
                for (long head = 0; head < shape.heads; head++) token(s, i, head, k_sums, v_sums);
        for (size_t i = 0; i < k_sums.size(); i++) k_grad[i] = k_sums[i].total() * Estimate{shape.scale};
        for (size_t i = 0; i < v_sums.size(); i++) v_grad[i] = v_sums[i].total();
    }
    void token(const Sequence &s, long i, long head, std::vector<Sum> &k_sums, std::vector<Sum> &v_sums) {
        long from = shape.first_seen(s.prefix + i), to = s.prefix + i, kv = shape.kv_head(head), own = s.start + i;
        long place = own * shape.heads + head;
        const T *query = q.at(own, head), *upstream = grad.at(own, head);
        auto key = [&](long j) { return k.at(row(s, j), kv); };
        std::vector<Estimate> weights = weights_of(query, key, from, to, shape.size, shape.scale), grads;
        Sum along;
        for (long j = from; j <= to; j++) {
            grads.push_back(dot(upstream, v.at(row(s, j), kv), shape.value_size, 1));
            along.add(weights[j - from] * grads.back());
        }
        for (long j = from; j <= to; j++) grads[j - from] = weights[j - from] * (grads[j - from] - along.total());
        std::vector<Sum> mixed(shape.value_size), turned(shape.size);
        for (long j = from; j <= to; j++) {
            long at = row(s, j) * shape.kv_heads + kv;
            Estimate weight = weights[j - from], score_grad = grads[j - from];
            for (long d = 0; d < shape.value_size; d++) {
                mixed[d].add(weight * Estimate{wide(v.at(row(s, j), kv)[d])});
                v_sums[at * shape.value_size + d].add(weight * Estimate{wide(upstream[d])});
            }
            for (long d = 0; d < shape.size; d++) {
                turned[d].add(score_grad * Estimate{wide(key(j)[d])});
                k_sums[at * shape.size + d].add(score_grad * Estimate{wide(query[d])});
            }
        }
        for (long d = 0; d < shape.value_size; d++) out[place * shape.value_size + d] = mixed[d].total();
        for (long d = 0; d < shape.size; d++) q_grad[place * shape.size + d] = turned[d].total() * Estimate{shape.scale};
    }
    void compare(const Library &library, Check<T> &check) {
        expect();
        Numbers<T> found(out.size()), by_q(q_grad.size()), by_k(k_grad.size()), by_v(v_grad.size());
        Numbers<float> peaks(2 * tokens * shape.heads + 16);
        library.call("attention", kernels::attention_arguments<T>{.q = q.numbers.data(),
                                                                  .q_stride = q.stride,
                                                                  .k = k.numbers.data(),
                                                                  .k_stride = k.stride,
                                                                  .v = v.numbers.data(),
                                                                  .v_stride = v.stride,
                                                                  .out = found.data(),
                                                                  .peaks = peaks.data(),
                                                                  .tokens = tokens,
                                                                  .heads = shape.heads,
                                                                  .kv_heads = shape.kv_heads,
                                                                  .size = shape.size,
                                                                  .value_size = shape.value_size,
                                                                  .scale = shape.scale,
                                                                  .window = shape.window,
                                                                  .sequences = shape.sequences.data(),
                                                                  .sequences_count = long(shape.sequences.size())});
        library.call("attention_backward",
                     kernels::attention_backward_arguments<T>{.q = q.numbers.data(),
                                                              .q_stride = q.stride,
                                                              .k = k.numbers.data(),
                                                              .k_stride = k.stride,
                                                              .v = v.numbers.data(),
                                                              .v_stride = v.stride,
                                                              .grad = grad.numbers.data(),
                                                              .grad_stride = grad.stride,
                                                              .q_grad = by_q.data(),
                                                              .k_grad = by_k.data(),
                                                              .v_grad = by_v.data(),
                                                              .peaks = peaks.data(),
                                                              .tokens = tokens,
                                                              .heads = shape.heads,
                                                              .kv_heads = shape.kv_heads,
                                                              .size = shape.size,
                                                              .value_size = shape.value_size,
                                                              .scale = shape.scale,
                                                              .window = shape.window,
                                                              .sequences = shape.sequences.data(),
                                                              .sequences_count = long(shape.sequences.size())});
        check.near(found, out), check.near(by_q, q_grad), check.near(by_k, k_grad), check.near(by_v, v_grad);
    }
};

}  // namespace

template <typename T> bool check_attention(const Library &library) {
    Check<T> check("attention");
    // A prefix of 35 that two sequences go on from, and sequences alone.
    std::vector<Sequence> shared = {{0, 35, 0, 0, 0, 2}, {35, 20, 0, 35, 0, 0}, {55, 3, 0, 35, 0, 0}, {58, 1, 58, 0, 3, 0}};
    Pass<T>{{4, 2, 32, 48, 0.2f, NO_WINDOW, shared}, 59}.compare(library, check);
    Pass<T>{{3, 1, 16, 16, 0.25f, 9, shared}, 59}.compare(library, check);
    // On all threads.
    Pass<T>{{6, 2, 64, 64, 0.125f, NO_WINDOW, {{0, 90, 0, 0, 0, 0}}}, 90}.compare(library, check);
    return check.finish();
}
INSTANTIATE(check_attention)
