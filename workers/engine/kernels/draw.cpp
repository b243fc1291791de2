// Which token a uniform draws of a row of logits: temperature, then the best k, then the best by share of the mass.
#include "bins.h"
#include "kernel.h"

namespace vocabulary {

// The first token whose cumulated mass exceeds uniform * total, found among blocks and then inside one.
template <typename T>
long inverse_cdf(const Mass<T> &mass, const std::vector<double> &sums, long size, double uniform) {
    double total = 0, before = 0;
    for (double sum : sums) total += sum;
    double mark = bounded(uniform * total, total);
    size_t block = 0;
    while (block + 1 < sums.size() && !(before + sums[block] > mark)) before += sums[block++];
    long start = block * BLOCK, length = std::min(BLOCK, size - start);
    double cumulated[BLOCK], inside = 0;
    each(length, [&](long i, auto count) {
        float masses[SIMD_WIDTH];
        store(masses, mass(start + i, count));
        for (long n = 0; n < std::min(SIMD_WIDTH, length - i); n++) cumulated[i + n] = inside += masses[n];
    });
    mark = bounded(mark - before, inside);
    return start + std::min(std::upper_bound(cumulated, cumulated + length, mark) - cumulated, length - 1);
}

template <typename T> long lowest_best(const T *row, long size, float best) {
    long token = 0;
    while (token < size - 1 && one(row[token]) != best) token++;
    return token;
}

template <typename T>
long drawn(const T *row, long size, const Choice &choice, const Softmax &softmax, std::vector<double> &sums) {
    float temperature = choice.temperature;
    if (temperature == 0) return lowest_best(row, size, softmax.highest);
    if (!std::isfinite(softmax.total)) return 0;
    Mass<T> mass{row, softmax.highest, temperature};
    if (is_filtered(choice, size)) return Bins(mass, size).drawn(choice);
    if (temperature != 1)
        for (long start = 0; start < size; start += BLOCK)
            sums[start / BLOCK] = mass.sum(start, std::min(BLOCK, size - start));
    return inverse_cdf(mass, sums, size, choice.uniform);
}

template <typename T>
void draw(const T *logits, const Choice *choices, int64_t *tokens, float *logprobs, long rows, long size) {
#pragma omp parallel for if (rows > 1 && rows * size > WORTH_THREADS / 4)
    for (long r = 0; r < rows; r++) {
        const T *row = logits + r * size;
        std::vector<double> sums((size + BLOCK - 1) / BLOCK);
        Softmax softmax = vocabulary::softmax(row, size, sums.data());
        tokens[r] = drawn(row, size, choices[r], softmax, sums);
        logprobs[r] = softmax.logprob(one(row[tokens[r]]));
    }
}

}  // namespace vocabulary

template <typename T> void kernels::draw(const draw_arguments<T> &a) {
    vocabulary::draw(a.logits, a.choices, a.tokens, a.logprobs, a.rows, a.vocabulary);
}
EXPORT(draw)
