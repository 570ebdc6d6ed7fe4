// Scorer: how well a session's weights do on some files, by the metrics of the config's task.
#pragma once

#include <vector>

#include "train/decode_weights.h"
#include "train/parts.h"

namespace weft::train {

class Scorer {
 public:
  Scorer(Session& session, const Config& config, const std::vector<std::string>& files);

  // Over the first `most` batches, or, at 0, all of them; from the beginning each time.
  Evaluation evaluation(std::int64_t most = 0);
  // Of every example by itself, in order; of examples that are not packed.
  std::vector<Sums> each();

 private:
  Session session_;
  Config config_;
  data::Batches batches_;
  std::string begin_;
  EvaluationGraph graph_;
  Executable executable_;
  decode::CopiedWeights copies_;
};

}  // namespace weft::train
