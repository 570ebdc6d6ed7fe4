// Attention as one op: no tensor of scores is ever stored.
#pragma once

#include <optional>
#include <string>

#include "weft/tensor.h"

namespace weft {

struct AttendOptions {
  bool causal = false;      // a query sees the memory up to its own position; both are counted from 0
  std::string length = {};  // the dim of positions in q, which causal asks for; by default the one dim that k lacks
  Tensor bias = {};         // added to the scores; may lack any of their dims
  // Whole numbers: a query sees only the memory of its own segment. Dims: q's but for d_key, and k's but for d_key.
  Tensor query_segments = {}, memory_segments = {};
  std::optional<double> scale = {};  // of q . k; by default 1 / sqrt(d_key)
};

// softmax over `memory` of (scale q . k + bias), times v; 0 where a query sees nothing. q and k have d_key, k and v have
// `memory`, and v one dim of its own in d_key's place, of the same name or another. The other dims of k and v are q's
// too; dims that only q has share k and v (grouped heads). The result has q's dims with v's own in place of d_key.
// Of a layout, `memory`, d_key and v's own dim stay whole: a split is refused.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_key,
              const AttendOptions& options = {}, Site site = Site::current());

}  // namespace weft
