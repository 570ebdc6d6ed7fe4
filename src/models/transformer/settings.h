// The common data of all parts of one transformer: its options, their dims, and whether it is being trained.
#pragma once

#include "weft/nn.h"
#include "weft/transformer.h"

namespace weft::models {

struct Settings {
  TransformerOptions o;
  bool training = false;  // with dropout, and each layer computed again if asked for
  nn::Multiply multiply = {};  // of products with kernels

  Dim d_model() const { return {"d_model", o.d_model}; }
  Dim d_ff() const { return {"d_ff", o.d_ff}; }
  Dim vocab() const { return {"vocab", padded_vocab(o)}; }
  Dim buckets() const { return {"buckets", o.buckets}; }
  nn::Heads heads() const;

  std::int64_t decoder_layers() const { return o.decoder_layers > 0 ? o.decoder_layers : o.layers; }
  bool relative() const;

  // How variables are stored; layers see them in their x's dtype.
  VariableOptions variables() const { return {.stored = o.stored, .slice = o.slice}; }
  // A table of rows that are picked: seen as it is updated, so that only what is picked is cast.
  Tensor table(Graph& g, const std::string& name, const Shape& shape) const;
};

// The dim that attention looks along.
inline Dim memory_dim(std::int64_t size) { return {"memory_length", size}; }

}  // namespace weft::models
