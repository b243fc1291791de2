// Vectors wider than a register: a pair of halves, each of which is a register or a pair. Operations act on each half,
// so that the compiler sees only registers: GCC keeps vector types that are wider in memory.
#pragma once

#include <type_traits>
#include <utility>

#include "registers.h"

template <typename V> struct Pair {
    V low, high;
};
template <typename V> ALWAYS Pair<V> pair(V low, V high) { return {low, high}; }

template <typename S> using Scalar = std::enable_if_t<std::is_arithmetic_v<S>, int>;

#define OPERATOR(OP)                                                                                                   \
    template <typename V> ALWAYS auto operator OP(Pair<V> a, Pair<V> b) {                                              \
        return pair(a.low OP b.low, a.high OP b.high);                                                                 \
    }                                                                                                                  \
    template <typename V, typename S, Scalar<S> = 0> ALWAYS auto operator OP(Pair<V> a, S b) {                         \
        return pair(a.low OP b, a.high OP b);                                                                          \
    }                                                                                                                  \
    template <typename V, typename S, Scalar<S> = 0> ALWAYS auto operator OP(S a, Pair<V> b) {                         \
        return pair(a OP b.low, a OP b.high);                                                                          \
    }
OPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(/) OPERATOR(&) OPERATOR(|) OPERATOR(^) OPERATOR(<<) OPERATOR(>>)
OPERATOR(<) OPERATOR(>) OPERATOR(>=) OPERATOR(!=)
#undef OPERATOR
template <typename V> ALWAYS Pair<V> operator-(Pair<V> a) { return {-a.low, -a.high}; }
template <typename V> ALWAYS Pair<V> operator~(Pair<V> a) { return {~a.low, ~a.high}; }
template <typename V, typename X> ALWAYS Pair<V> &operator+=(Pair<V> &a, X b) { return a = a + b; }
template <typename V, typename X> ALWAYS Pair<V> &operator*=(Pair<V> &a, X b) { return a = a * b; }

template <typename V> ALWAYS Pair<V> fused(Pair<V> a, Pair<V> b, Pair<V> c) {
    return {fused(a.low, b.low, c.low), fused(a.high, b.high, c.high)};
}

template <typename T> struct IsPair : std::false_type {};
template <typename V> struct IsPair<Pair<V>> : std::true_type {};

// A vector of BYTES bytes.
template <typename N, long BYTES> struct VectorOf {
    using type = Pair<typename VectorOf<N, BYTES / 2>::type>;
};
template <typename N> struct VectorOf<N, REGISTER_BYTES> {
    using type = Register<N>;
};

// The bits of a vector, each 32 of them as N; and each number converted to N.
template <typename N, typename V> ALWAYS auto as(V x) {
    if constexpr (IsPair<V>::value)
        return pair(as<N>(x.low), as<N>(x.high));
    else
        return (Register<N>)x;
}
template <typename N, typename V> ALWAYS auto converted(V x) {
    if constexpr (IsPair<V>::value)
        return pair(converted<N>(x.low), converted<N>(x.high));
    else
        return __builtin_convertvector(x, Register<N>);
}

// a where the mask is set, b elsewhere.
template <typename M, typename V> ALWAYS V select(M mask, V a, V b) {
    if constexpr (IsPair<V>::value)
        return {select(mask.low, a.low, b.low), select(mask.high, a.high, b.high)};
    else
        return mask ? a : b;
}

// f(register, index of its first number) for each register of a vector; f may change it.
template <typename V, typename F> ALWAYS void each_register(V &x, F f, long place = 0) {
    if constexpr (IsPair<V>::value) {
        each_register(x.low, f, place);
        each_register(x.high, f, place + sizeof(V) / 8);
    } else {
        f(x, place);
    }
}

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Register<uint32_t>{__VA_ARGS__})
#endif
using Places = std::make_integer_sequence<uint32_t, REGISTER_WIDTH>;

namespace registers {
constexpr uint32_t W = REGISTER_WIDTH;
template <uint32_t D, uint32_t... I> ALWAYS void exchange(Register<uint32_t> &a, Register<uint32_t> &b,
                                                          std::integer_sequence<uint32_t, I...>) {
    Register<uint32_t> x = a, y = b;
    a = SHUFFLE(x, y, (I & D ? W + I - D : I)...);
    b = SHUFFLE(x, y, (I & D ? W + I : I + D)...);
}
template <uint32_t FROM, uint32_t... I>
ALWAYS Register<uint32_t> zipped(Register<uint32_t> a, Register<uint32_t> b, std::integer_sequence<uint32_t, I...>) {
    return SHUFFLE(a, b, (I / 2 + I % 2 * W + FROM)...);
}
template <uint32_t D, uint32_t... I>
ALWAYS Register<uint32_t> xor_shuffled(Register<uint32_t> x, std::integer_sequence<uint32_t, I...>) {
    return SHUFFLE(x, x, (I ^ D)...);
}
}  // namespace registers

// Swaps words D..2D - 1 of every 2 D words of a with words 0..D - 1 of those of b.
template <uint32_t D, typename V> ALWAYS void exchange(V &a, V &b) {
    if constexpr (!IsPair<V>::value)
        registers::exchange<D>(a, b, Places{});
    else if constexpr (sizeof(V) == 8 * D)
        std::swap(a.high, b.low);
    else
        exchange<D>(a.low, b.low), exchange<D>(a.high, b.high);
}

// The first or the second half of the words a0 b0 a1 b1 ...
template <bool second, typename V> ALWAYS V zipped(V a, V b) {
    if constexpr (!IsPair<V>::value)
        return registers::zipped<second ? registers::W / 2 : 0>(a, b, Places{});
    else if constexpr (second)
        return {zipped<false>(a.high, b.high), zipped<true>(a.high, b.high)};
    else
        return {zipped<false>(a.low, b.low), zipped<true>(a.low, b.low)};
}

// Reduces a vector to one number: f of its two halves, then of the halves of the result, and so on.
template <uint32_t D = REGISTER_WIDTH / 2, typename V, typename F> ALWAYS float folded(V x, F f) {
    if constexpr (IsPair<V>::value)
        return folded(f(x.low, x.high), f);
    else if constexpr (D == 0)
        return x[0];
    else
        return folded<D / 2>(f(x, as<float>(registers::xor_shuffled<D>(as<uint32_t>(x), Places{}))), f);
}
