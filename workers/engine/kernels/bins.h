// The best tokens of a row and a draw among them, without sorting the vocabulary.
#pragma once

#include <numeric>
#include <vector>

#include "interface.h"
#include "softmax.h"

namespace vocabulary {

using kernels::Choice;

inline bool is_filtered(const Choice &choice, long size) { return choice.top_k < size || choice.top_p < 1; }

// Of a row at a temperature: e^(d / temperature), as `softmax` has it at 1.
template <typename T> struct Mass {
    const T *row;
    float highest, temperature;

    template <typename Count> Floats exponent(long i, Count count) const {
        return (logits(row + i, count) - highest) / temperature;
    }
    template <typename Count> Floats operator()(long i, Count count) const { return exponential(exponent(i, count)); }
    double sum(long start, long size) const {
        Floats sums{};
        each(size, [&](long i, auto count) { sums += (*this)(start + i, count); });
        return total(sums);
    }
};

// Clamps a point of the cumulated mass to [0, total), which rounding may have left.
inline double bounded(double mark, double total) { return std::max(std::min(mark, std::nextafter(total, 0.0)), 0.0); }

struct Candidate {
    float logit, mass;
    int32_t token;

    bool operator<(const Candidate &other) const {
        return logit > other.logit || (logit == other.logit && token < other.token);
    }
};

// A histogram of tokens by how far their logits are below the highest. Only the bin in which a set ends and the bin of
// the drawn token are sorted.
template <typename T> class Bins {
    static constexpr long COUNT = 2048, PER_NAT = 64;
    const T *row;
    std::vector<float> masses;
    std::vector<int32_t> places;
    std::vector<double> mass = std::vector<double>(COUNT);
    std::vector<long> count = std::vector<long>(COUNT);  // Of the tokens that may be drawn: a bin's best.

  public:
    Bins(const Mass<T> &of, long size) : row(of.row), masses(size), places(size) {
        each(size, [&](long i, auto left) {
            Floats exponent = of.exponent(i, left), place = exponent * -float(PER_NAT), last = all(COUNT - 1);
            Ints whole = converted<int32_t>(select(place < last, place, last));
            store(masses.data() + i, exponential(exponent), left);
            std::memcpy(&places[i], &whole, std::min(SIMD_WIDTH, size - i) * sizeof(int32_t));
        });
        for (long i = 0; i < size; i++) mass[places[i]] += masses[i], count[places[i]]++;
    }

    // The inverse CDF over the smallest set, best tokens first, whose share of the best k's mass reaches top_p.
    long drawn(const Choice &choice) {
        keep_best(choice.top_k);
        if (choice.top_p < 1) keep_mass(choice.top_p * total());
        double kept = total(), mark = bounded(choice.uniform * kept, kept), before = 0;
        long bin = 0;
        for (; before + mass[bin] <= mark; bin++) before += mass[bin];
        std::vector<Candidate> tokens = best(bin);
        double end = before + tokens[0].mass;
        size_t place = 0;
        while (end <= mark && place + 1 < tokens.size() && tokens[place + 1].mass > 0) end += tokens[++place].mass;
        return tokens[place].token;
    }

  private:
    double total() const { return std::accumulate(mass.begin(), mass.end(), 0.0); }
    std::vector<Candidate> best(long bin) const {
        std::vector<Candidate> tokens;
        for (size_t i = 0; i < places.size(); i++)
            if (places[i] == bin) tokens.push_back({one(row[i]), masses[i], int32_t(i)});
        std::partial_sort(tokens.begin(), tokens.begin() + count[bin], tokens.end());
        tokens.resize(count[bin]);
        return tokens;
    }
    void keep_best(double k) {
        long bin = 0;
        for (; bin < COUNT && count[bin] <= k; bin++) k -= count[bin];
        if (bin < COUNT) end_in(bin, k);
    }
    void keep_mass(double enough) {
        double before = 0;
        long bin = 0;
        while (bin < COUNT && before + mass[bin] < enough) before += mass[bin++];
        if (bin == COUNT) return;
        long kept = 0;
        for (const Candidate &token : best(bin)) {
            if (kept && before >= enough) break;
            before += token.mass, kept++;
        }
        end_in(bin, kept);
    }
    // None after the best `kept` of a bin may be drawn.
    void end_in(long bin, long kept) {
        count[bin] = kept, mass[bin] = 0;
        for (const Candidate &token : best(bin)) mass[bin] += token.mass;
        std::fill(mass.begin() + bin + 1, mass.end(), 0.0);
        std::fill(count.begin() + bin + 1, count.end(), 0);
    }
};

}  // namespace vocabulary
