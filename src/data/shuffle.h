// Permutation: a shuffled order of 0 … count-1 that needs no memory. The same on every machine.
#pragma once

#include <bit>
#include <cstdint>

#include "data/hash.h"

namespace weft::data {

// A Feistel network on the least even number of bits that holds `count`. A result of `count` or more is permuted again
// until it is below.
class Permutation {
 public:
  Permutation(std::int64_t count, std::uint64_t seed, std::uint64_t epoch)
      : count_(static_cast<std::uint64_t>(count)),
        half_((std::bit_width(count_ > 1 ? count_ - 1 : 1) + 1) / 2),
        key_(mixed(mixed(seed) ^ epoch)) {}

  std::int64_t operator()(std::int64_t index) const {
    std::uint64_t x = static_cast<std::uint64_t>(index);
    do x = turned(x);
    while (x >= count_);
    return static_cast<std::int64_t>(x);
  }

 private:
  static constexpr std::uint64_t kRounds = 6;

  std::uint64_t turned(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = x >> half_, right = x & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mixed(key_ + round * 0x632be59bd9b4e019 + right) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  std::uint64_t count_;
  int half_;
  std::uint64_t key_;
};

}  // namespace weft::data
