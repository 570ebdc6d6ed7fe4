// Steps that follow each other without the host: each leaves its tokens and positions to the next one, and notes the tokens
// for the host. For greedy choice by rules that the graph knows alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/candidates.h"
#include "weft/decode.h"

namespace weft::decode {

// How many steps may follow each other; 1: none without the host. `queues`: detail::queues_steps of the device.
std::int64_t steps_ahead(const Options& options, bool queues);

struct AheadGraph {
  models::StepGraph step;
  Tensor ids, log_probabilities;  // [batch memory_length]: of the token that was chosen at a position
  CompileOptions options() const { return {.fetch = {ids, log_probabilities}, .update = step.updates}; }
};
AheadGraph ahead_graph(const models::TransformerOptions& model, models::DecodeSizes sizes, const Options& options,
                       Site site);

// What the next step reads, of each row of the batch.
struct Reads {
  std::vector<std::int32_t> tokens, positions;
};

class StepsAhead {
 public:
  StepsAhead(Session session, const models::TransformerOptions& model, const Layout& layout,
             const models::DecodeSizes& sizes, const Options& options, Site site);

  // The steps after what rows read; those of `active` rows count.
  void run(const Reads& reads, const std::vector<bool>& active, std::int64_t steps);
  // What a row of the batch chose at a position of that run.
  std::int32_t id(std::size_t row, std::int64_t position) const { return ids_[place(row, position)]; }
  double log_probability(std::size_t row, std::int64_t position) const {
    return log_probabilities_[place(row, position)];
  }

 private:
  std::size_t place(std::size_t row, std::int64_t position) const {
    return row * static_cast<std::size_t>(length_) + static_cast<std::size_t>(position);
  }
  bool is_there(const Reads& reads, const std::vector<bool>& active) const;

  Session session_;
  const std::int64_t length_;
  const AheadGraph graph_;
  Executable run_;
  Reads there_;  // what the variables hold
  std::vector<std::int32_t> ids_;
  std::vector<float> log_probabilities_;
};

}  // namespace weft::decode
