// Errors for requests that cannot be decoded.
#pragma once

#include <vector>

#include "weft/decode.h"

namespace weft::decode {

using Ids = std::vector<std::int32_t>;

struct Sizes {
  std::int64_t batch, inputs, prompt;
};

models::DecodeSizes decode_sizes(const Sizes& sizes, const Options& options, const models::KernelPanels& panels);

void check(const models::TransformerOptions& model, const Sizes& sizes, const Options& options, Site site);
void check_rows(const models::TransformerOptions& model, const Sizes& sizes, const Options& options,
                const std::vector<Ids>& prompts, const std::vector<Ids>& inputs, Site site);

}  // namespace weft::decode
