// The search of one row: what becomes of the candidates that the graph gives at each position. Plain numbers on the host.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/decode.h"

namespace weft::decode {

constexpr std::int32_t kEnd = 1;  // the end of a sequence

// Of one row: for each beam equally many tokens with their log probabilities, best first.
struct Candidates {
  std::span<const std::int32_t> ids;
  std::span<const double> log_probabilities;
};

class Search {
 public:
  virtual ~Search() = default;

  // One more token for every beam.
  virtual void take(const Candidates& candidates) = 0;
  // Whether no later position can change the best hypothesis. It may be asked to go on all the same.
  virtual bool is_done() const = 0;
  virtual std::vector<Hypothesis> result() const = 0;  // best first

  // For each beam: its last token, and the beam it went on from.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<std::int32_t>& parents() const { return parents_; }

 protected:
  std::vector<std::int32_t> tokens_, parents_;
};

// `positions`: how many tokens there is room for.
std::unique_ptr<Search> make_search(const Options& options, std::int64_t positions);

}  // namespace weft::decode
