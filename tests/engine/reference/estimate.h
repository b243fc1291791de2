// What a formula gives in double precision, and how far fp32 arithmetic may be from it, in any order and with products
// and sums rounded together or apart: running error analysis (Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd ed., 3.3; for sums gamma_n of 3.1).
#pragma once

#include <algorithm>

#include "number.h"

struct Estimate {
    double value, error = 0;

    double size() const { return std::fabs(value) + error; }
};

constexpr double UNIT = 0x1p-24;           // The unit roundoff of fp32.
constexpr double SMALLEST = 0x1p-126;      // Below it numbers have fewer digits, or are zeros.
constexpr double FUNCTION = 4 * UNIT;      // Two units in the last place, which `exponential` says it is off by.

inline double gamma_of(double roundings) { return roundings * UNIT / (1 - roundings * UNIT); }
inline Estimate rounded(double value, double error, double unit = UNIT) {
    return {value, error + unit * (std::fabs(value) + error) + SMALLEST};
}

inline Estimate operator-(Estimate a) { return {-a.value, a.error}; }
inline Estimate operator+(Estimate a, Estimate b) { return rounded(a.value + b.value, a.error + b.error); }
inline Estimate operator-(Estimate a, Estimate b) { return a + -b; }
inline Estimate operator*(Estimate a, Estimate b) {
    return rounded(a.value * b.value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
}
inline Estimate operator/(Estimate a, Estimate b) {
    double least = std::fabs(b.value) - b.error, quotient = a.value / b.value;
    return rounded(quotient, (a.error + std::fabs(quotient) * b.error) / least);
}
inline Estimate root(Estimate a) {
    double value = std::sqrt(a.value);
    return rounded(value, value - std::sqrt(std::max(0.0, a.value - a.error)));
}
inline Estimate exponential(Estimate a) {
    double value = std::exp(a.value);
    return rounded(value, value * std::expm1(a.error), FUNCTION);
}
// Computed in double precision.
inline Estimate logarithm(Estimate a) {
    return {std::log(a.value), a.error / (a.value - a.error) + 0x1p-50};
}

// The sum of many, in whatever order.
class Sum {
    double value = 0, error = 0, size = 0;
    long count = 0;

  public:
    void add(Estimate term) { value += term.value, error += term.error, size += term.size(), count++; }
    void add(double a, double b) { value += a * b, size += std::fabs(a * b), count++; }
    Estimate total() const { return {value, error + gamma_of(count) * size + SMALLEST}; }
};

// Stored in memory of a format, of which no more is known afterwards than this.
template <typename T> Estimate stored(Estimate a) {
    return {a.value, a.error + Format<T>::UNIT * a.size() + (Format<T>::UNIT > 0 ? SMALLEST : 0)};
}
