// Decoding: tokens from a trained Transformer, one position after another, by greedy choice, sampling or beam search.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "weft/mesh.h"
#include "weft/session.h"
#include "weft/transformer.h"

namespace weft::decode {

struct Options {
  std::int64_t max_length = 128;  // the most positions, prompt and end of sequence counted
  // Sampling, with one beam. Temperature 0 is greedy.
  double temperature = 0;
  std::int64_t top_k = 0;  // draws from the k likeliest tokens only; 0: from all
  double top_p = 1;        // and from the likeliest that together have this probability
  std::uint64_t seed = 0;  // besides the session's
  // Beam search, with more than one.
  std::int64_t beams = 1;
  double alpha = 0.6;       // score = log p / ((5 + tokens) / 6)^alpha, the end of sequence being a token
  bool early_stop = true;   // as soon as no row of the batch can find a sequence better than its worst
  std::int64_t n_best = 1;  // of the beams
  bool never_end = false;   // the end of sequence gets no probability: every row has max_length positions
};

struct Hypothesis {
  std::vector<std::int32_t> ids = {};  // what was generated: without the prompt and the end of sequence
  double score = 0;                    // log p; of a beam search that ended, over the length penalty
  bool ended = false;                  // by the end of sequence, not by max_length
};

struct Speed {
  std::int64_t rows = 0, tokens = 0;  // tokens: generated, of the best hypothesis of each row, ends counted
  std::int64_t steps = 0;             // positions that were computed one by one
  double prefill_seconds = 0, decode_seconds = 0;
};

// Two executables of a session, whose variables are the model's weights: one reads the prompts (and an encoder's inputs)
// at once, the other adds a position. What is chosen does not depend on the mesh or the layout: candidates come from the
// graph, exact over a split vocabulary, and random numbers from the seeds, the row and the count of steps.
class Decoder {
 public:
  // `batch` rows at a time. `inputs_length`: the most inputs of an encoder, else 0. `prompt_length`: how much of the
  // prompts is read at once, what is longer is read by steps; 0: none. UserError for options that contradict.
  Decoder(Session& session, const models::TransformerOptions& model, const Layout& layout, std::int64_t batch,
          std::int64_t inputs_length, std::int64_t prompt_length, const Options& options = {},
          Site site = Site::current());

  // For each row up to n_best hypotheses, best first. Any number of rows; `prompts` of a language model are what it goes
  // on from, of an encoder-decoder what its output must begin with (none: nothing). Inputs end as in training.
  // A prefix model reads a prompt as its inputs part, and whole: it must fit in prompt_length.
  std::vector<std::vector<Hypothesis>> run(const std::vector<std::vector<std::int32_t>>& prompts,
                                           const std::vector<std::vector<std::int32_t>>& inputs = {},
                                           Site site = Site::current());

  // Has `listener` called from run() with each token that a row gets, as soon as it is chosen; ends are not told. Only of
  // searches with one beam: the best of several is known at the end.
  void on_token(std::function<void(std::size_t row, std::int32_t id)> listener);

  const Speed& speed() const;  // of all runs so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weft::decode
