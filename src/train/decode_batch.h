// The number of rows that are decoded together, from a memory budget.
#pragma once

#include "weft/config.h"
#include "weft/session.h"

namespace weft::train {

struct DecodeBatch {
  std::int64_t rows = 1;
  decode::DecoderMemory memory = {};  // of each processor
  std::int64_t limit = 0;             // decode.memory, or a processor's share of what is free; 0: unknown
};

// decode.batch, or if it is 0 as many rows as pay and fit, for so many prompts of lengths from `shortest` to `longest`. The
// same in all processes; all must call. UserError if decode.batch rows, or the fewest rows, do not fit.
DecodeBatch decode_batch(const Session& session, const Config& config, std::int64_t prompts, std::int64_t shortest,
                         std::int64_t longest);

}  // namespace weft::train
