// What a row of logits says of a token: its logprob, the gradient of that, and the entropy.
#include "softmax.h"

#include "kernel.h"

namespace vocabulary {

template <typename T> float highest(const T *row, long size) {
    Floats most = all(-INFINITY);
    each(size, [&](long i, auto count) { most = larger(logits(row + i, count), most); });
    return folded(most, Larger{});
}

template <typename T> Softmax softmax(const T *row, long size, double *sums) {
    Softmax result{highest(row, size), 0, 0};
    for (long start = 0; start < size; start += BLOCK) {
        Floats exponentials{}, weighted{};
        each(std::min(BLOCK, size - start), [&](long i, auto count) {
            // 0 and not NaN, where it is multiplied by a difference of minus infinity.
            Floats difference = logits(row + start + i, count) - result.highest, e = exponential(difference);
            exponentials += e;
            weighted += e * larger(difference, all(-100.0f));
        });
        double sum = total(exponentials);
        result.total += sum, result.weighted += total(weighted);
        if (sums) sums[start / BLOCK] = sum;
    }
    return result;
}

template Softmax softmax(const float *, long, double *);
template Softmax softmax(const bf16 *, long, double *);

// onehot(target) - softmax: the gradient of the logprob. It is small where the target is likely, so rounded after the
// difference.
template <typename T> void become_grad(T *row, long size, long target, const Softmax &softmax) {
    // In fp64, whose expm1 every C library rounds to the same fp32 number, all but surely; expm1f has bits of its own.
    float at_target = -std::expm1(double(softmax.logprob(one(row[target])))), scale = -1 / softmax.total;
    each(size, [&](long i, auto count) {
        store(row + i, exponential(load(row + i, count) - softmax.highest) * scale, count);
    });
    store(row + target, all(at_target), 1);
}

template <typename T>
void target_logprobs(T *logits, const int64_t *targets, float *logprobs, float *entropies, long rows, long vocabulary,
                     bool computes_grad) {
#pragma omp parallel for if (rows > 1 && rows * vocabulary > WORTH_THREADS / 4)
    for (long row = 0; row < rows; row++) {
        T *from = logits + row * vocabulary;
        Softmax softmax = vocabulary::softmax(from, vocabulary, nullptr);
        logprobs[row] = softmax.logprob(one(from[targets[row]]));
        entropies[row] = softmax.entropy();
        if (computes_grad) become_grad(from, vocabulary, targets[row], softmax);
    }
}

}  // namespace vocabulary

template <typename T> void kernels::target_logprobs(const target_logprobs_arguments<T> &a) {
    vocabulary::target_logprobs(a.logits, a.targets, a.logprobs, a.entropies, a.rows, a.vocabulary, a.computes_grad);
}
EXPORT(target_logprobs)
