// One transformer in one graph: tables of tokens and positions, passes over whole sequences, and what comes out.
#pragma once

#include "models/transformer/stack.h"

namespace weft::models {

// A batch of sequences: i32 [batch, length]. Segments and positions are empty where they are not given.
struct Tokens {
  Tensor ids, segments, positions;
  Dim length;
};

// What an encoder leaves to a decoder. Dims [batch, inputs_length].
struct Encoded {
  Tensor hidden, segments;
  Dim length;
};

class Network {
 public:
  Network(const Graph& graph, const Settings& settings) : g_(graph), s_(settings) {}

  const Settings& settings() const { return s_; }
  Graph& graph() { return g_; }

  // A decoder's variables are in this scope, an encoder's beside it.
  std::string decoder_scope() const { return s_.o.kind == Kind::kEncoderDecoder ? "decoder" : ""; }

  Tensor embedding(const std::string& scope);  // [vocab, d_model], of the encoder or the decoder
  // The rows of the ids and of where they are, by `positions` (empty: 0, 1, … along `length`).
  Tensor embed(const Tensor& ids, const Tensor& positions, const Dim& length, const std::string& scope);

  // Who sees whom in a whole sequence. `bias` is added to the scores; segments may be empty.
  Pass pass_over(const Dim& length, const Tensor& segments, bool causal, const Tensor& bias = {}) const;
  // Lets the pass of a decoder look at what was encoded. Query segments may be a scalar.
  void attach(Pass& pass, const Encoded& encoded, const Tensor& query_segments) const;

  Encoded encode(const Tokens& inputs);
  // The last hidden values of a decoder, of the token that comes at each place.
  Tensor decode(const Tokens& targets, const Encoded* encoded);
  // [… vocab] in f32.
  Tensor logits(const Tensor& hidden);
  // Of targets, -1 where there is none; see nn::ProjectedLossOptions::denominator.
  Tensor loss(const Tensor& hidden, const Tensor& targets, const Dim& batch, const Tensor& denominator);

 private:
  // What the logits are made of: hidden values, and the kernel if it is not a variable of its own.
  Tensor scaled(const Tensor& hidden) const;
  Tensor tied_kernel(const Tensor& hidden);

  Graph g_;
  Settings s_;
  std::map<std::string, Tensor> embeddings_;  // by name
};

// 1 for a token, 0 for padding: segments of sequences that have none.
Tensor token_segments(const Tensor& ids);
// What a decoder reads: the token before each, 0 at the start of a segment. A negative id is a token without a loss.
Tensor shifted(const Tensor& ids, const Tensor& segments, const Dim& length);
// Of a prefix language model: 1 in the inputs part, where the number of ends of sequences before is even.
Tensor inputs_part(const Tensor& ids, const Dim& length);

}  // namespace weft::models
