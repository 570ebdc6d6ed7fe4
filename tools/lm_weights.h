// The weights and the batch of `weft bench lm`, from a counter-based generator: any element by itself, so that other
// systems can draw the same ones. docs/bench.md has the formulas.
#pragma once

#include <string>
#include <vector>

#include "weft/models.h"
#include "weft/session.h"

namespace weft::tools {

// A variable of the model and the streams that fill it.
struct LmWeight {
  std::string variable;
  Shape shape;
  double deviation = 0;  // 0: the model's own first values, ones or zeros, stay
  int stream = 0;        // its first stream
  // How many streams it holds: each gives a run of its own for every index of the leading dim. With one it is just whole.
  int streams = 1;
};

// All variables of the language model of these sizes, in the order of the streams.
std::vector<LmWeight> lm_weights(const models::Sizes& sizes);

void set_lm_weights(Session& session, const models::Sizes& sizes);

// Fixed tokens, and the same shifted by one as targets.
Feeds lm_batch(const models::LanguageModel& lm, const models::Sizes& sizes);

// Of the matrix products of one step, all processors together: attention counted whole, the embedding not.
double lm_gflop(const models::Sizes& sizes);

}  // namespace weft::tools
