// Compares what a kernel gave with what it should have, and prints a line: its name, the format, whether it is right,
// the largest error as a share of what is allowed, and a digest of all its bits (FNV-1a).
#pragma once

#include <cstdio>

#include "estimate.h"

template <typename T> class Check {
    const char *name;
    double worst = 0;
    bool is_right = true;
    uint64_t digest = 0xcbf29ce484222325;

    void add_bits(const void *memory, size_t bytes) {
        for (size_t i = 0; i < bytes; i++) digest = (digest ^ ((const uint8_t *)memory)[i]) * 0x100000001b3;
    }
    void compare(double given, Estimate expected) {
        double off = std::fabs(given - expected.value);
        // Not a number is not right either.
        if (!(off <= expected.error)) is_right = false;
        if (expected.error > 0) worst = std::max(worst, off / expected.error);
    }

  public:
    explicit Check(const char *name) : name(name) {}

    // Within the error that fp32 may make, and that of being stored.
    template <typename N> void near(const Numbers<N> &given, const std::vector<Estimate> &expected) {
        add_bits(given.data(), given.size() * sizeof(N));
        if (given.size() != expected.size()) is_right = false;
        for (size_t i = 0; i < std::min(given.size(), expected.size()); i++)
            compare(wide(given[i]), stored<N>(expected[i]));
    }
    // Bit for bit.
    template <typename N> void same(const std::vector<N> &given, const std::vector<N> &expected) {
        add_bits(given.data(), given.size() * sizeof(N));
        if (given != expected) is_right = false;
    }
    bool finish() const {
        const char *verdict = is_right ? "right" : "WRONG";
        std::printf("%s %s %s %.3f %016llx\n", name, Format<T>::NAME, verdict, worst, (unsigned long long)digest);
        return is_right;
    }
};
