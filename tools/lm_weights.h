// The weights and the batch of `weft bench lm`, from a counter-based generator: each element is drawn independently, so
// that other systems can draw the same values. docs/bench.md has the formulas.
#pragma once

#include <string>
#include <vector>

#include "weft/detail/models.h"
#include "weft/session.h"

namespace weft::tools {

// A variable of the model and the streams that fill it.
struct LmWeight {
  std::string variable;
  Shape shape;
  double deviation = 0;  // 0: the variable keeps the initial values of the model, ones or zeros
  int stream = 0;        // its first stream
  // The number of streams that fill it: each stream fills one range for every index of the leading dim. One stream
  // fills all of it.
  int streams = 1;
};

// All variables of the language model of these sizes, in the order of the streams.
std::vector<LmWeight> lm_weights(const models::Sizes& sizes, const models::LanguageModelDesign& design);

void set_lm_weights(Session& session, const models::Sizes& sizes, const models::LanguageModelDesign& design);

// Fixed tokens as inputs, and the same tokens shifted by one as targets.
Feeds lm_batch(const models::LanguageModel& lm, const models::Sizes& sizes);

// Of the matrix products of one step, all processors together: attention counts as if unmasked, the embedding does not
// count.
double lm_gflop(const models::Sizes& sizes);
// The part of lm_gflop that is attention's; causal attention needs half of it.
double lm_attention_gflop(const models::Sizes& sizes);

}  // namespace weft::tools
