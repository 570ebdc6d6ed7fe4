// Philox4x32-10, a counter-based generator (Salmon et al., SC 2011): the same (key, counter) gives the same words
// everywhere, in any order. Element i of a tensor takes word i mod 4 of the counter (i / 4, step, iteration).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

using PhiloxWords = std::array<std::uint32_t, 4>;

inline PhiloxWords philox(PhiloxWords counter, std::uint64_t key) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// The word of one element.
inline std::uint32_t philox_word(std::uint64_t key, std::uint64_t element, std::uint32_t step,
                                 std::uint32_t iteration = 0) {
  const std::uint64_t block = element / 4;
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, iteration},
                key)[element % 4];
}

constexpr std::uint64_t mix64(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// The key of an op: FNV-1a of its full name, mixed with its ordinal among ops of that name.
constexpr std::uint64_t hash_key(std::string_view name, int ordinal) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return mix64(hash ^ mix64(static_cast<std::uint64_t>(ordinal)));
}

// The key under a seed.
constexpr std::uint64_t seeded(std::uint64_t key, std::uint64_t seed) { return mix64(key ^ mix64(seed)); }

// 24 bits of a word: every distribution uses these, so that f32 and f64 see the same draw.
constexpr std::uint32_t draw24(std::uint32_t word) { return word >> 8; }

}  // namespace weft
