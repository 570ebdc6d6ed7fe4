// Tiny transformers, batches for them, and what a few steps of training give.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "weft/optim.h"
#include "weft/session.h"
#include "weft/transformer.h"

namespace weft::test {

struct Where {
  std::string mesh, layout;
};

// A mesh of one, of two and of four.
inline const std::vector<Where>& places() {
  static const std::vector<Where> kPlaces = {
      {"", ""}, {"x:2", "length:x? inputs_length:x?"}, {"x:2 y:2", "batch:x heads,d_ff,vocab:y"}};
  return kPlaces;
}

inline models::TransformerOptions tiny() {
  models::TransformerOptions o;
  o.vocab = 11, o.vocab_divisor = 8;
  o.d_model = 8, o.heads = 4, o.d_kv = 4, o.d_ff = 8, o.layers = 2;
  o.max_length = 10, o.buckets = 8, o.max_distance = 16;
  return o;
}

inline models::BatchSizes batch_for(const models::TransformerOptions& o, bool packed = false, std::int64_t batch = 4) {
  return {
      .batch = batch, .length = 6, .inputs_length = o.kind == models::Kind::kEncoderDecoder ? 4 : 0, .packed = packed};
}

// Tokens from 2 on, some ends, and padding at the end of every second row. Packed rows have two segments.
inline Array feature(const std::string& name, const Shape& shape) {
  Array x(shape, DType::kI32);
  const std::int64_t length = shape[1].size;
  for (std::int64_t b = 0; b < shape[0].size; ++b)
    for (std::int64_t l = 0; l < length; ++l) {
      const bool padding = b % 2 == 1 && l == length - 1, second = 2 * l >= length;
      double value = 2 + static_cast<double>((7 * b + 3 * l + b * l + (name[0] == 'i' ? 5 : 0)) % 9);
      if (l == length / 2 - 1) value = 1;
      if (name.ends_with("_segments")) value = second ? 2 : 1;
      if (name.ends_with("_positions")) value = static_cast<double>(second ? l - (length + 1) / 2 : l);
      x.set(b * length + l, padding ? 0 : value);
    }
  return x;
}

inline Feeds feeds_of(const models::SequenceGraph& made) {
  Feeds feeds;
  for (const auto& [name, input] : made.features) feeds.emplace_back(input, feature(name, input.shape()));
  return feeds;
}

// The loss before each of three steps.
inline std::vector<double> losses(const models::SequenceGraph& made, const Where& where,
                                  const std::optional<DType>& compute_as = DType::kF64,
                                  const device::Choice& device = device::reference()) {
  const Graph graph = made.graph;
  Session session(Mesh::parse(where.mesh), wire::threads(), device, {.seed = 5});
  Executable step = session.compile(
      graph, Layout::parse(where.layout),
      {.fetch = {made.loss}, .update = optim::sgd(made.loss, graph.variables(), 0.5), .compute_as = compute_as});
  std::vector<double> all;
  for (int i = 0; i < 3; ++i) all.push_back(step.run(feeds_of(made)).scalar(made.loss));
  return all;
}

}  // namespace weft::test
