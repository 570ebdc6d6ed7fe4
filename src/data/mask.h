// Masking: which tokens of an example an encoder has to predict. It depends only on the seed, the epoch, the example
// and the position, not on rows, batches or processes.
#pragma once

#include <cstdint>

#include "data/examples.h"
#include "data/hash.h"

namespace weft::data {

class Masking {
 public:
  // Random tokens are below `vocab`.
  Masking(double share, std::int32_t mask_id, std::int64_t vocab, std::uint64_t seed)
      : share_(share), mask_id_(mask_id), vocab_(static_cast<std::uint64_t>(vocab)), seed_(seed) {}

  // Moves the tokens of an example without inputs to its inputs and masks some of them. Its targets keep the masked
  // tokens, with padding at all other positions.
  void apply(Example& one, std::int64_t epoch, std::int64_t index) const {
    one.inputs = one.targets;
    const std::uint64_t key =
        mixed(mixed(mixed(seed_ ^ kPurpose) ^ static_cast<std::uint64_t>(epoch)) ^ static_cast<std::uint64_t>(index));
    for (std::size_t place = 0; place < one.targets.size(); ++place) {
      const std::uint64_t draw = mixed(key + place);
      const bool is_token = one.targets[place] > Vocabulary::kEnd;
      if (is_token && fraction(draw) < share_) one.inputs[place] = masked(one.targets[place], mixed(draw));
      else one.targets[place] = Vocabulary::kPadding;
    }
  }

 private:
  static constexpr std::uint64_t kPurpose = 0x6d61736b;    // makes these draws independent of the order of examples
  static constexpr double kHidden = 0.8, kReplaced = 0.1;  // of the masked tokens; the rest stays

  static double fraction(std::uint64_t draw) { return static_cast<double>(draw >> 11) * 0x1p-53; }

  std::int32_t masked(std::int32_t id, std::uint64_t draw) const {
    constexpr std::uint64_t kFirst = Vocabulary::kUnknown + 1;
    const double how = fraction(draw);
    if (how < kHidden) return mask_id_;
    if (how >= kHidden + kReplaced || vocab_ <= kFirst) return id;
    return static_cast<std::int32_t>(kFirst + mixed(draw) % (vocab_ - kFirst));
  }

  double share_;
  std::int32_t mask_id_;
  std::uint64_t vocab_, seed_;
};

}  // namespace weft::data
