// The candidates that the graph of one step gives for every row and beam.
#pragma once

#include "weft/decode.h"
#include "weft/graph.h"

namespace weft::decode {

// [… candidate], with the dims of the logits but the classes: ids in i32, best first, and their log probabilities in f32.
// Beam search gets twice as many as there are beams, exact however the classes are split; else it is one, the likeliest
// or drawn.
struct CandidateTensors {
  Tensor ids, log_probabilities;
};
CandidateTensors offer(Tensor logits, const Options& options, Site site);

}  // namespace weft::decode
