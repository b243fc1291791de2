// What a row of logits says: the logprob of a token, the entropy, how both the sampler's and the trainer's softmax
// come about, and which token a uniform draws.
#include "lanes.h"

#include <vector>

namespace {

// Exponentials are summed in fp32 over so many logits, sixteen sums side by side, and in fp64 from there on.
constexpr long BLOCK = 256;
typedef double Doubles __attribute__((vector_size(64)));

double total(Lanes x) {
    typedef float Half __attribute__((vector_size(32)));
    float parts[WIDTH];
    store(parts, x);
    Doubles both = __builtin_convertvector(read<Half>(parts), Doubles) +
                   __builtin_convertvector(read<Half>(parts + WIDTH / 2), Doubles);
    return ((both[0] + both[4]) + (both[1] + both[5])) + ((both[2] + both[6]) + (both[3] + both[7]));
}

// Logits; after the last of a row, tokens that are impossible.
template <typename T> Lanes logits(const T *from, Full) { return load(from); }
template <typename T> Lanes logits(const T *from, long count) {
    Lanes x = load(from, count);
    for (long i = count; i < WIDTH; i++) x[i] = -INFINITY;
    return x;
}

template <typename T> float highest(const T *row, long size) {
    Lanes most = all(-INFINITY);
    each(size, [&](long i, auto count) { most = larger(logits(row + i, count), most); });
    return largest(most);
}

struct Softmax {
    float highest;
    double total, weighted;  // Sums of e^d and of d e^d, where d = logit - highest.

    double log_total() const { return std::log(total); }
    float logprob(float logit) const { return double(logit) - highest - log_total(); }
    float entropy() const { return log_total() - weighted / total; }
};

// One function for all who ask, so that their numbers are the same to the bit. Also each block's sum, where wanted.
template <typename T> __attribute__((noinline)) Softmax softmax(const T *row, long size, double *sums) {
    Softmax result{highest(row, size), 0, 0};
    for (long start = 0; start < size; start += BLOCK) {
        Lanes exponentials{}, weighted{};
        each(std::min(BLOCK, size - start), [&](long i, auto count) {
            // 0 and not NaN, where it is multiplied by a difference of minus infinity.
            Lanes difference = logits(row + start + i, count) - result.highest, e = exponential(difference);
            exponentials += e;
            weighted += e * larger(difference, all(-100.0f));
        });
        double sum = total(exponentials);
        result.total += sum, result.weighted += total(weighted);
        if (sums) sums[start / BLOCK] = sum;
    }
    return result;
}

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

template <typename T> long lowest_best(const T *row, long size, float best) {
    long token = 0;
    while (token < size - 1 && one(row[token]) != best) token++;
    return token;
}

template <typename T>
void draw(const T *row, long size, float temperature, double uniform, int64_t *token, float *logprob) {
    std::vector<double> sums((size + BLOCK - 1) / BLOCK);
    Softmax softmax = ::softmax(row, size, sums.data());
    if (temperature == 0) {
        *token = lowest_best(row, size, softmax.highest);
    } else {
        Mass<T> mass{row, softmax.highest, temperature};
        if (temperature != 1)
            for (long start = 0; start < size; start += BLOCK)
                sums[start / BLOCK] = mass.sum(start, std::min(BLOCK, size - start));
        *token = inverse_cdf(mass, sums, size, uniform);
    }
    *logprob = softmax.logprob(one(row[*token]));
}

// onehot(target) - softmax: the logprob's slope. Small where the target is likely, so rounded after the difference.
template <typename T> void become_slope(T *row, long size, long target, const Softmax &softmax) {
    float at_target = -std::expm1(softmax.logprob(one(row[target]))), scale = -1 / softmax.total;
    each(size, [&](long i, auto count) {
        store(row + i, exponential(load(row + i, count) - softmax.highest) * scale, count);
    });
    store(row + target, all(at_target), 1);
}

template <typename T>
void draw(const T *logits, const float *temperatures, const double *uniforms, int64_t *tokens, float *logprobs,
          long rows, long vocabulary) {
#pragma omp parallel for if (rows > 1 && rows * vocabulary > WORTH_THREADS / 4)
    for (long row = 0; row < rows; row++)
        draw(logits + row * vocabulary, vocabulary, temperatures[row], uniforms[row], tokens + row, logprobs + row);
}

template <typename T>
void target_logprobs(T *logits, const int64_t *targets, float *logprobs, float *entropies, long rows, long vocabulary,
                     bool become_slopes) {
#pragma omp parallel for if (rows > 1 && rows * vocabulary > WORTH_THREADS / 4)
    for (long row = 0; row < rows; row++) {
        T *from = logits + row * vocabulary;
        Softmax softmax = ::softmax(from, vocabulary, nullptr);
        logprobs[row] = softmax.logprob(one(from[targets[row]]));
        entropies[row] = softmax.entropy();
        if (become_slopes) become_slope(from, vocabulary, targets[row], softmax);
    }
}

}  // namespace

#define EXPORT(T, DTYPE)                                                                                              \
    extern "C" void draw_##DTYPE(const T *logits, const float *temperatures, const double *uniforms, int64_t *tokens, \
                                 float *logprobs, long rows, long vocabulary) {                                       \
        draw(logits, temperatures, uniforms, tokens, logprobs, rows, vocabulary);                                     \
    }                                                                                                                 \
    extern "C" void target_logprobs_##DTYPE(T *logits, const int64_t *targets, float *logprobs, float *entropies,     \
                                            long rows, long vocabulary, long become_slopes) {                         \
        target_logprobs(logits, targets, logprobs, entropies, rows, vocabulary, become_slopes);                       \
    }
EXPORT(float, float32)
EXPORT(bf16, bfloat16)
