// What decoding could reach on this machine: weights are read at the speed of the memory, prompts at the speed of products.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config.h"
#include "weft/session.h"

namespace weft::tools {

// Of the model of a config. Only weights that a product reads count: an embedding is read only if it gives the logits.
struct DecodeWork {
  std::int64_t step_weights = 0;  // elements of the weights that every step reads
  std::int64_t step_bytes = 0;    // of these weights, as they are stored for decoding
  double prompt_flops = 0;  // of the products for reading rows of these lengths, and of causal attention; 0: not known
};
DecodeWork decode_work(const train::Config& config, const std::vector<std::int64_t>& reads);

struct DecodeRoofs {
  double read_bytes_per_second = 0;  // all threads together, again and again over the same bytes; of a card: of copies
  double product_flops = 0;          // of a large product of f32 matrices, a second
  double peak_flops = 0;             // of multiply-adds in registers, a second
};
// With the threads that the config has for its processors; `bytes` of memory are read. Takes about a second.
DecodeRoofs measure_decode_roofs(const train::Config& config, std::int64_t bytes);

}  // namespace weft::tools
