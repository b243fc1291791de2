// What rows of logits say of tokens: logprobs, entropies, gradients, and which token a uniform draws.
#include "kernels.h"
#include "ranking.h"

namespace {

constexpr long SIZE = 1003, ROWS = 6;

// Of a row, with d = logit - the highest: sums of e^d and of d e^d, both finished in double precision.
template <typename T> struct Softmax {
    const T *row;
    double highest = -INFINITY;
    Estimate total, weighted;

    explicit Softmax(const T *row) : row(row) {
        for (long i = 0; i < SIZE; i++) highest = std::max(highest, wide(row[i]));
        Sum sum, products;
        for (long i = 0; i < SIZE; i++) sum.add(mass(i)), products.add(mass(i) * difference(i));
        total = sum.total(), weighted = products.total();
    }
    Estimate difference(long i) const { return Estimate{wide(row[i])} - Estimate{highest}; }
    Estimate mass(long i) const { return exponential(difference(i)); }
    Estimate logprob(long i) const {
        Estimate log_total = logarithm(total);
        return rounded(wide(row[i]) - highest - log_total.value, log_total.error);
    }
    Estimate entropy() const { return logarithm(total) - weighted / total; }
    // onehot(target) - softmax.
    Estimate grad(long i, long target) const {
        if (i != target) return mass(i) * (Estimate{-1} / total);
        Estimate logprob = this->logprob(i);
        double value = -std::expm1(logprob.value);
        return rounded(value, std::exp(logprob.value) * std::expm1(logprob.error), FUNCTION);
    }
};

}  // namespace

template <typename T> bool check_target_logprobs(const Library &library) {
    Check<T> check("target_logprobs");
    Random random(10);
    Numbers<T> logits = random.numbers<T>(ROWS * SIZE, 8);
    Integers targets = {0, 17, 256, 999, 1002, 5};
    // A target that is all but certain.
    logits[5 * SIZE + 5] = nearest<T>(16);
    Numbers<float> logprobs(ROWS), entropies(ROWS);
    std::vector<Estimate> expected_logprobs, expected_entropies, grads;
    for (long r = 0; r < ROWS; r++) {
        Softmax<T> softmax(logits.data() + r * SIZE);
        expected_logprobs.push_back(softmax.logprob(targets[r]));
        expected_entropies.push_back(softmax.entropy());
        for (long i = 0; i < SIZE; i++) grads.push_back(softmax.grad(i, targets[r]));
    }
    for (bool computes_grad : {false, true}) {
        library.call("target_logprobs", kernels::target_logprobs_arguments<T>{.logits = logits.data(),
                                                                              .targets = targets.data(),
                                                                              .logprobs = logprobs.data(),
                                                                              .entropies = entropies.data(),
                                                                              .rows = ROWS,
                                                                              .vocabulary = SIZE,
                                                                              .computes_grad = computes_grad});
        check.near(logprobs, expected_logprobs), check.near(entropies, expected_entropies);
    }
    check.near(logits, grads);
    return check.finish();
}

template <typename T> bool check_draw(const Library &library) {
    Check<T> check("draw");
    Random random(11);
    const std::vector<Choice> kinds = {{1, SIZE, 1, 0},    {0.7, SIZE, 1, 0},  {1.5, 5, 1, 0},    {1, SIZE, 0.8, 0},
                                       {0.9, 40, 0.6, 0}, {0, SIZE, 1, 0}, {1, 1, 1, 0}};
    std::vector<Choice> choices;
    for (long i = 0; i < 6; i++)
        for (Choice choice : kinds) {
            choice.uniform = random.fraction();
            choices.push_back(choice);
        }
    long rows = long(choices.size());
    Numbers<T> logits = random.numbers<T>(rows * SIZE, 8);
    Integers tokens(rows), expected;
    Numbers<float> logprobs(rows);
    std::vector<Estimate> expected_logprobs;
    for (long r = 0; r < rows; r++) {
        const T *row = logits.data() + r * SIZE;
        expected.push_back(Ranking<T>(row, SIZE, choices[r]).drawn(choices[r].uniform));
        expected_logprobs.push_back(Softmax<T>(row).logprob(expected.back()));
    }
    library.call("draw", kernels::draw_arguments<T>{logits.data(), choices.data(), tokens.data(), logprobs.data(), rows,
                                                    SIZE});
    check.same(tokens, expected), check.near(logprobs, expected_logprobs);
    return check.finish();
}
INSTANTIATE(check_target_logprobs)
INSTANTIATE(check_draw)
