// The candidates that the graph of one step gives for every row and beam.
#pragma once

#include "weft/decode.h"
#include "weft/graph.h"

namespace weft::decode {

// [… candidate], with the dims of the logits but the classes: ids in i32, best first, and their log probabilities in f32.
// Beam search gets candidate_count() of them, exact however the classes are split; else it is one, the likeliest or
// drawn.
struct CandidateTensors {
  Tensor ids, log_probabilities;
  // Inputs in i32, with the dims of the logits but the classes; empty if the options have no rule that needs them.
  Tensor seen;     // [… seen]: ids that repetition_penalty is for; -1 is no id
  Tensor banned;   // [… banned]: ids that get no probability, for no_repeat_ngram
  Tensor goes_on;  // 1: the end tokens get no probability, for min_tokens
};
CandidateTensors offer(Tensor logits, const Options& options, Site site);

}  // namespace weft::decode
