// Which token a uniform draws of a row of logits: temperature, then the best k, then the best by share of the mass.
#include "softmax.h"

#include <vector>

namespace vocabulary {

// As the caller's table has it.
struct Choice {
    double temperature, top_k, top_p, uniform;

    bool is_filtered(long size) const { return top_k < size || top_p < 1; }
};

struct Candidate {
    float logit, mass;
    int32_t token;

    bool operator<(const Candidate &other) const {
        return logit > other.logit || (logit == other.logit && token < other.token);
    }
};

// Of a row at a temperature: e^(d / temperature), as `softmax` has it at 1.
template <typename T> struct Mass {
    const T *row;
    float highest, temperature;

    template <typename Count> Lanes operator()(long i, Count count) const {
        return exponential((logits(row + i, count) - highest) / temperature);
    }
    double sum(long start, long size) const {
        Lanes sums{};
        each(size, [&](long i, auto count) { sums += (*this)(start + i, count); });
        return total(sums);
    }
};

// Rounding may carry a mark past either end; it is brought back to where there is mass.
double bounded(double mark, double total) { return std::max(std::min(mark, std::nextafter(total, 0.0)), 0.0); }

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
        Lanes masses = mass(start + i, count);
        for (long lane = 0; lane < std::min(WIDTH, length - i); lane++) cumulated[i + lane] = inside += masses[lane];
    });
    mark = bounded(mark - before, inside);
    return start + std::min(std::upper_bound(cumulated, cumulated + length, mark) - cumulated, length - 1);
}

// Those that may be drawn, in any order, and the mass that top_p is a share of.
struct Candidates {
    std::vector<Candidate> all;
    double total;

    template <typename T> Candidates(const Mass<T> &mass, long size, const Choice &choice) : total(0) {
        std::vector<float> masses(size);
        for (long start = 0; start < size; start += BLOCK) {
            Lanes sums{};
            each(std::min(BLOCK, size - start), [&](long i, auto count) {
                Lanes part = mass(start + i, count);
                sums += part;
                store(masses.data() + start + i, part, count);
            });
            total += vocabulary::total(sums);
        }
        // Not even all together would tokens of this mass be what is missing from top_p to 1; halved, for rounding.
        float least = choice.top_k < size ? 0 : (1 - choice.top_p) * total / size / 2;
        for (long i = 0; i < size; i++)
            if (masses[i] > least) all.push_back({one(mass.row[i]), masses[i], int32_t(i)});
        if (choice.top_k < size) keep(choice.top_k);
    }
    void keep(size_t best) {
        if (best < all.size()) {
            std::nth_element(all.begin(), all.begin() + best, all.end());
            all.resize(best);
        }
        total = 0;
        for (const Candidate &candidate : all) total += candidate.mass;
    }
};

// The inverse CDF over the smallest set, best tokens first, whose share of the candidates' mass reaches top_p; sorted
// only as far as it goes.
inline long filtered(Candidates candidates, double top_p, double uniform) {
    std::vector<Candidate> &best = candidates.all;
    double total = candidates.total, before = 0;
    std::vector<double> cumulated;
    size_t sorted = 0;
    while (cumulated.size() == sorted && sorted < best.size()) {
        auto from = best.begin() + sorted;
        sorted = std::min(best.size(), std::max<size_t>(64, 8 * sorted));
        std::nth_element(from, best.begin() + sorted, best.end());
        std::sort(from, best.begin() + sorted);
        while (cumulated.size() < sorted && (cumulated.empty() || before < top_p * total))
            cumulated.push_back(before += best[cumulated.size()].mass);
    }
    double mark = bounded(uniform * before, before);
    size_t place = std::upper_bound(cumulated.begin(), cumulated.end(), mark) - cumulated.begin();
    return best[std::min(place, cumulated.size() - 1)].token;
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
    if (choice.is_filtered(size)) return filtered({mass, size, choice}, choice.top_p, choice.uniform);
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

#define EXPORT(T, DTYPE)                                                                                              \
    extern "C" void draw_##DTYPE(const T *logits, const vocabulary::Choice *choices, int64_t *tokens, float *logprobs,\
                                 long rows, long size) {                                                              \
        vocabulary::draw(logits, choices, tokens, logprobs, rows, size);                                              \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
