// Scorer: how well a session's weights foresee some files.
#pragma once

#include <vector>

#include "train/parts.h"
#include "weft/evaluate.h"

namespace weft::train {

class Scorer {
 public:
  Scorer(Session& session, const Config& config, const std::vector<std::string>& files);

  // Over the first `most` batches, or, at 0, all of them; from the beginning each time.
  evaluate::Scores scores(std::int64_t most = 0);
  // Of every example by itself, in order; of examples that are not packed.
  std::vector<evaluate::Scores> each();

 private:
  Session session_;
  data::SourceOptions options_;
  data::Batches batches_;
  std::string begin_;
  models::SequenceGraph graph_;
  Executable executable_;
};

}  // namespace weft::train
