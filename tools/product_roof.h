// The speed of large matrix products on a device: the roof of training steps and of prompts.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/session.h"

namespace weft::tools {

struct ProductRoofOptions {
  DType dtype = DType::kF32;  // of factors and results
  std::int64_t side = 1536;   // of the matrices
  int chain = 1;              // products of a round, each of the result of the one before
  int rounds = 8;
  double load_seconds = 0;  // of products before the rounds: a card under load lowers its clock
};

// Flops per second of each round, ascending. One processor computes, with this many threads.
std::vector<double> product_rates(const device::Choice& device, int workers, const ProductRoofOptions& options = {});

}  // namespace weft::tools
