// Philox4x32-10 (Salmon et al. 2011, Parallel Random Numbers: As Easy as 1, 2, 3): four numbers of a counter and a key.
#pragma once

#include <array>
#include <cstdint>

using Four = std::array<uint32_t, 4>;

inline Four philox(Four x, uint64_t key) {
    uint32_t first = uint32_t(key), second = uint32_t(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = uint64_t(0xd2511f53) * x[0], b = uint64_t(0xcd9e8d57) * x[2];
        x = {uint32_t(b >> 32) ^ x[1] ^ first, uint32_t(b), uint32_t(a >> 32) ^ x[3] ^ second, uint32_t(a)};
        first += 0x9e3779b9, second += 0xbb67ae85;
    }
    return x;
}
