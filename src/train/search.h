// The search of one row: what becomes of the candidates that the graph gives at each position. Plain numbers on the host.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/decode.h"

namespace weft::decode {

constexpr std::int32_t kEnd = 1;  // the end of a sequence

// The tokens that end a sequence, each once, kEnd first.
std::vector<std::int32_t> end_tokens(const Options& options);
// The candidates of each beam, and of all beams together. Beam search needs k that go on, even if every beam has all end
// tokens among its candidates: k (1 + end tokens).
std::int64_t candidate_count(const Options& options);

// Of one row: for each beam equally many tokens with their log probabilities, best first.
struct Candidates {
  std::span<const std::int32_t> ids;
  std::span<const double> log_probabilities;
};

// Called with the generated tokens of a hypothesis; true ends it after them.
using StopsAfter = std::function<bool(std::span<const std::int32_t> ids)>;

class Search {
 public:
  virtual ~Search() = default;

  // One more token for every beam.
  virtual void take(const Candidates& candidates) = 0;
  // Whether no later position can change the best hypothesis. It may be asked to go on all the same.
  virtual bool is_done() const = 0;
  virtual std::vector<Hypothesis> result() const = 0;  // best first
  // How many tokens an unfinished beam has, and these tokens, appended.
  virtual std::int64_t length() const = 0;
  virtual void append_ids(std::size_t beam, std::vector<std::int32_t>& to) const = 0;
  // With one beam: whether its hypothesis contains the last token. It contains no token that ends a sequence.
  virtual bool keeps_last() const = 0;

  // For each beam: its last token, and the beam it went on from.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<std::int32_t>& parents() const { return parents_; }

 protected:
  std::vector<std::int32_t> tokens_, parents_;
};

// `positions`: how many tokens there is room for.
std::unique_ptr<Search> make_search(const Options& options, std::int64_t positions, StopsAfter stops_after = {});

}  // namespace weft::decode
