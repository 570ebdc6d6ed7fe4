// Attention: softmax of scores, times values, as one function. nn::self_attention is the layer with its projections.
#pragma once

#include <optional>

#include "weft/tensor.h"

namespace weft {

struct AttendOptions {
  bool causal = false;  // a query sees the memory up to its position; both positions are counted from 0
  DimRef length = {};   // the dim of positions in q, for causal; default: the only dim that k lacks
  Tensor bias = {};     // added to the scores; may lack any of their dims
  // Integers: a query sees only the memory of its segment. They have the dims of q and of k, without d_key.
  Tensor query_segments = {}, memory_segments = {};
  std::optional<double> scale = {};  // of q . k; by default 1 / sqrt(d_key)

  // Memory that is written position by position. Integers, with dims that q and k share: a query sees the memory before
  // memory_end. Memory behind it is not read, so the time depends on memory_end and not on the size of `memory`.
  Tensor memory_end = {};
  // Integers, with `memory`, `source_dim` and other dims that q and k share. Queries at index i of source_dim see, at each
  // position of `memory`, the key and value at index sources[i] of source_dim, clamped to fit. So the beams of a search
  // share keys and values without copies.
  Tensor sources = {};
  DimRef source_dim = {};

  // These options need the weights one by one, so the scores are stored and kept for the backward pass.
  std::optional<double> extra_logit = {};  // an additional class of the softmax, dropped afterwards
  double keep = 1;                         // dropout of the weights: the probability that a weight is kept
  DimRefs same_draw = {};                  // dims of q and `memory` along which all weights share a draw of the dropout
};

// Computes softmax over `memory` of (scale q . k + bias), times v. No tensor of scores is stored, unless extra_logit or
// keep is set. The result is 0 for a query that sees nothing. q and k have d_key, k and v have `memory`, and v has one
// value dim in place of d_key, of the same name or another. All remaining dims of k and v are also dims of q; dims that
// only q has share k and v (grouped heads). The result has q's dims with the value dim in place of d_key. A layout must
// not split `memory`, d_key, the value dim or source_dim: UserError at compile. UserError for a `keep` outside (0, 1].
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const DimRef& memory, const DimRef& d_key,
              const AttendOptions& options = {}, Site site = Site::current());

}  // namespace weft
