// Decoding: tokens from a trained Transformer, one position after another, by greedy choice, sampling or beam search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/mesh.h"
#include "weft/session.h"
#include "weft/transformer.h"

namespace weft::decode {

// What products multiply with: the weights as they are, or rounded to bf16 or i8 (docs/decoding.md states the loss).
enum class Weights { kF32, kBF16, kI8 };

struct Options {
  std::int64_t max_length = 128;  // the most positions, prompt and end of sequence counted
  std::int64_t max_tokens = 0;    // the most generated tokens of a row, end of sequence counted; 0: up to max_length
  std::vector<std::int64_t> row_tokens = {};  // max_tokens of each row of a run; empty: the same for all rows
  // Sampling, with one beam. Temperature 0 is greedy.
  double temperature = 0;
  std::int64_t top_k = 0;  // draws from the k likeliest tokens only; 0: from all
  double top_p = 1;        // of these, draws from the likeliest that together have this probability
  std::uint64_t seed = 0;  // in addition to the session's seed
  // Beam search, if there is more than one beam.
  std::int64_t beams = 1;
  double alpha = 0.6;       // score = log p / ((5 + tokens) / 6)^alpha; the end of sequence counts as a token
  bool early_stop = true;   // a row is done when no sequence that goes on can enter the list of its n_best
  std::int64_t n_best = 1;  // the number of beams that run() returns
  Weights weights = Weights::kF32;
  bool never_end = false;  // the end of sequence has probability 0: every row gets all tokens that it has room for
  // Rules that change the probabilities. They hold for greedy choice, sampling and beams alike.
  std::vector<std::int32_t> stop_tokens = {};  // end a sequence, like the end of sequence
  std::int64_t min_tokens = 0;                 // no sequence ends before it has this many tokens, the end not counted
  // Logits above 0 of tokens that the row has, prompt counted, are divided by this number, others multiplied. 1: no change.
  double repetition_penalty = 1;
  std::int64_t no_repeat_ngram = 0;  // no sequence of so many tokens occurs twice in a row, prompt counted; 0: any may
  std::int64_t ahead = 0;  // greedy steps in a row without the host; 0: 16 on devices with a queue of work (cuda), else 1
};

struct Hypothesis {
  std::vector<std::int32_t> ids = {};  // the generated tokens, without the prompt and the token that ended them
  double score = 0;                    // log p; a beam that ended: divided by the length penalty
  bool ended = false;                  // by a token or by stop_when(); false: by max_length or max_tokens
  // Of each of the ids and of the token that ended them, after the rules of Options, at temperature 1. Their sum is log p.
  std::vector<double> log_probabilities = {};
  std::int32_t end_token = -1;  // the end of sequence or the stop token that ended it; -1: none
};

struct Speed {
  std::int64_t rows = 0, tokens = 0;  // tokens: generated, of the best hypothesis of each row, including ends
  std::int64_t steps = 0;             // positions that were computed one by one
  double prefill_seconds = 0, decode_seconds = 0;
  std::int64_t cache_bytes = 0;  // of the decoder's keys and values, on all processors together if they are split
};

// A row that is done.
struct Finished {
  std::size_t row = 0;                      // its number
  std::vector<Hypothesis> hypotheses = {};  // up to n_best, best first
};

// The bytes of one processor for a decoder, as planned: what it allocates.
struct DecoderMemory {
  std::int64_t weights = 0;
  std::int64_t caches = 0;                        // keys and values, and what steps know of them
  std::int64_t step_arena = 0, prompt_arena = 0;  // of a step and of reading prompts, which share one arena
  std::int64_t scratch = 0;                       // of its threads

  std::int64_t sum() const { return weights + caches + std::max(step_arena, prompt_arena) + scratch; }
};

class FinishedRows;

// Executables of a session whose variables are the model's weights. Some read prompts (and the inputs of an encoder) at
// once, for different numbers of rows and lengths; one adds a position. The chosen tokens do not depend on the mesh or the
// layout: the graph finds the exact candidates over a split vocabulary, and random numbers depend on the seeds, the slot of
// the row and the step. Without sampling they do not depend on other rows either. Copies of a decoder share its rows.
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

  // The same rows, each as soon as it is done: for (const Finished& row : decoder.rows(prompts)). A row's number is its
  // index in `prompts` or `inputs`. run(), rows() and clear() drop rows that have not been returned.
  FinishedRows rows(const std::vector<std::vector<std::int32_t>>& prompts,
                    const std::vector<std::vector<std::int32_t>>& inputs = {}, Site site = Site::current());

  // Rows one by one. add() puts a row at the end of the queue and returns its number: 0, 1, … since the decoder last had
  // no rows. next() decodes until a row is done and returns it; it returns nothing if the decoder has no rows. Rows may be
  // added between two calls of next().
  std::size_t add(std::vector<std::int32_t> prompt, std::vector<std::int32_t> inputs = {}, Site site = Site::current());
  std::optional<Finished> next();
  void clear();

  // All rows that are added from now on begin with these tokens, before their prompts. They are read once, at once, and
  // their keys and values are copied to the rows. Set the model's weights before. Drops all rows. Empty: no prefix.
  // UserError if the model is no language model without inputs, or if the prefix leaves no room.
  void set_prefix(const std::vector<std::int32_t>& ids, Site site = Site::current());

  // Calls `listener` with each token of a row as soon as it is chosen, except the end of sequence. Only for one beam: with
  // several the best is known only at the end.
  void on_token(std::function<void(std::size_t row, std::int32_t id)> listener);

  // A sequence ends after its last token if `rule` is true for its generated tokens. run() asks after each token, with
  // several beams for each candidate.
  void stop_when(std::function<bool(std::size_t row, std::span<const std::int32_t> ids)> rule);

  const Speed& speed() const;  // over all runs so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The memory of Decoder(session, model, layout, …) in a session of such a mesh, storage layout and device. Nothing is
// allocated. UserError like the constructor.
DecoderMemory planned_memory(const models::TransformerOptions& model, const Mesh& mesh, const Layout& layout,
                             std::int64_t batch, std::int64_t inputs_length, std::int64_t prompt_length,
                             const Options& options = {}, const Store& store = {},
                             const device::Choice& device = device::cpu(), Site site = Site::current());

// The rows of Decoder::rows(), for one loop over them.
class FinishedRows {
 public:
  explicit FinishedRows(Decoder decoder) : decoder_(std::move(decoder)) {}

  class Iterator {
   public:
    using value_type = Finished;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Decoder* decoder) : decoder_(decoder) { ++*this; }
    const Finished& operator*() const { return *row_; }
    const Finished* operator->() const { return &*row_; }
    Iterator& operator++() { return row_ = decoder_->next(), *this; }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !row_; }

   private:
    Decoder* decoder_;
    std::optional<Finished> row_;
  };

  Iterator begin() { return Iterator(&decoder_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Decoder decoder_;
};

}  // namespace weft::decode
