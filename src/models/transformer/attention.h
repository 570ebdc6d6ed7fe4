// Attention over whole sequences or over caches: a Pass says which.
#pragma once

#include <functional>

#include "models/transformer/settings.h"

namespace weft::models {

// How a stack of layers goes over its x: where x is, and what its attention looks at and sees.
struct Pass {
  Dim memory;                // what self-attention looks along
  Tensor places;             // i32: where each x is in its sequence; [length], or [batch] for one position
  AttendOptions seen;        // of self-attention: who sees whom
  bool looks_ahead = false;  // so that distances of relative positions have two signs
  Tensor keep;               // 1 or 0: x that are no padding; empty if there is none
  // The keys and values of x in a layer (called as its variables are) -> those to look at, along `memory`.
  std::function<nn::Projections(const std::string& layer, const nn::Projections& of_x)> remember;

  // Of a decoder's attention to an encoder.
  Dim cross_memory = {};
  AttendOptions cross_seen = {};
  std::function<nn::Projections(const std::string& layer)> recall = {};
};

// The kernels of one attention are those of the open scope.
nn::ProjectionOptions projection_options(const Settings& s);

Tensor self_attention(const Tensor& x, const Settings& s, const Pass& pass, const std::string& layer,
                      const Tensor& shared_bias);
Tensor cross_attention(const Tensor& x, const Settings& s, const Pass& pass, const std::string& layer);

// Added to the scores for the distance of query and memory, from a table in the open scope: [… memory, heads…].
Tensor relative_bias(Graph& g, const Settings& s, const Pass& pass);

}  // namespace weft::models
