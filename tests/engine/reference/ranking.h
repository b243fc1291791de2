// The tokens that may be drawn of a row of logits, and which of them a uniform draws.
#pragma once

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "estimate.h"
#include "interface.h"
#include "random.h"

using kernels::Choice;

// How far fp32 may shift a share of the mass: by the roundings of exponents up to 32 and of sums of sixteen numbers.
constexpr double BLUR = 64 * UNIT;

template <typename T> class Ranking {
    std::vector<long> tokens;
    std::vector<double> masses;  // Of the tokens, in this order.

    // The first of the ranked tokens whose masses, added up, exceed `mark`.
    size_t place_of(double mark) const {
        double before = 0, all = std::accumulate(masses.begin(), masses.end(), 0.0);
        for (size_t i = 0; i < masses.size(); before += masses[i++]) {
            if (mark >= before + masses[i]) continue;
            bool is_border = mark - before < BLUR * all || before + masses[i] - mark < BLUR * all;
            if (is_border && masses.size() > 1) throw std::runtime_error("a draw lies on a border: take another seed");
            return i;
        }
        return masses.size() - 1;
    }
    void keep(size_t count) { tokens.resize(count), masses.resize(count); }

  public:
    // The best k by logit, then by token; of them the fewest whose share reaches top_p. All of them: by token.
    Ranking(const T *row, long size, const Choice &choice) : tokens(size) {
        std::iota(tokens.begin(), tokens.end(), 0);
        auto is_better = [&](long a, long b) { return wide(row[a]) > wide(row[b]); };
        double highest = wide(row[*std::min_element(tokens.begin(), tokens.end(), is_better)]);
        bool is_greedy = choice.temperature == 0, is_filtered = choice.top_k < size || choice.top_p < 1;
        if (is_greedy || is_filtered) std::stable_sort(tokens.begin(), tokens.end(), is_better);
        for (long token : tokens)
            masses.push_back(is_greedy ? 1 : std::exp((wide(row[token]) - highest) / choice.temperature));
        keep(is_greedy ? 1 : size_t(std::min(double(size), choice.top_k)));
        if (choice.top_p < 1) keep(place_of(choice.top_p * std::accumulate(masses.begin(), masses.end(), 0.0)) + 1);
    }
    long drawn(double uniform) const {
        return tokens[place_of(uniform * std::accumulate(masses.begin(), masses.end(), 0.0))];
    }
};
