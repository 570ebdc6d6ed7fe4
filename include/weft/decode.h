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
  std::int64_t max_tokens = 0;    // the most generated tokens of a row, end of sequence counted; 0: up to max_length
  // Sampling, with one beam. Temperature 0 is greedy.
  double temperature = 0;
  std::int64_t top_k = 0;  // draws from the k likeliest tokens only; 0: from all
  double top_p = 1;        // of these, draws from the likeliest that together have this probability
  std::uint64_t seed = 0;  // in addition to the session's seed
  // Beam search, if there is more than one beam.
  std::int64_t beams = 1;
  double alpha = 0.6;       // score = log p / ((5 + tokens) / 6)^alpha; the end of sequence counts as a token
  bool early_stop = true;   // a row is done when it cannot find a better sequence than its worst finished one
  std::int64_t n_best = 1;  // the number of beams that run() returns
  bool never_end = false;   // the end of sequence has probability 0: every row gets all tokens that it has room for
};

struct Hypothesis {
  std::vector<std::int32_t> ids = {};  // the generated tokens, without the prompt and the end of sequence
  double score = 0;                    // log p; a beam that ended: divided by the length penalty
  bool ended = false;                  // true: by the end of sequence; false: by max_length or max_tokens
};

struct Speed {
  std::int64_t rows = 0, tokens = 0;  // tokens: generated, of the best hypothesis of each row, including ends
  std::int64_t steps = 0;             // positions that were computed one by one
  double prefill_seconds = 0, decode_seconds = 0;
  std::int64_t cache_bytes = 0;  // of the decoder's keys and values, on all processors together if they are split
};

// Two executables of a session whose variables are the model's weights. The first reads the prompts (and the inputs of an
// encoder) at once; the second adds one position. The chosen tokens do not depend on the mesh or the layout: the graph
// finds the exact candidates over a split vocabulary, and random numbers depend on the seeds, the row and the step.
class Decoder {
 public:
  // `batch`: the rows of one step. `inputs_length`: the longest input of an encoder, else 0. `prompt_length`: the part of
  // the prompts that is read at once; the rest is read one position per step. UserError for options that contradict each
  // other.
  Decoder(Session& session, const models::TransformerOptions& model, const Layout& layout, std::int64_t batch,
          std::int64_t inputs_length, std::int64_t prompt_length, const Options& options = {},
          Site site = Site::current());

  // Returns up to n_best hypotheses for each row, best first, for any number of rows. A language model continues its
  // prompt. The output of an encoder-decoder begins with the prompt; `prompts` may be empty. Inputs end as in training.
  // A prefix model reads the prompt as its inputs part at once, so the prompt must fit in prompt_length.
  std::vector<std::vector<Hypothesis>> run(const std::vector<std::vector<std::int32_t>>& prompts,
                                           const std::vector<std::vector<std::int32_t>>& inputs = {},
                                           Site site = Site::current());

  // run() calls `listener` with each token of a row as soon as it is chosen, except the end of sequence. Only for one
  // beam: with several the best is known only at the end.
  void on_token(std::function<void(std::size_t row, std::int32_t id)> listener);

  const Speed& speed() const;  // over all runs so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weft::decode
