// What a config means in graphs, sessions and streams of data: shared by training, scoring and decoding.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/data.h"
#include "weft/optim.h"
#include "weft/schedule.h"
#include "weft/train.h"

namespace weft::train {

models::BatchSizes batch_sizes(const Config& config, bool packed);
// The files in order, without end, or, for evaluation, once, unshuffled.
data::SourceOptions source(const Config& config, const std::vector<std::string>& files, bool endless);
// Are rows of this config several examples each?
bool packs(const Config& config);

Session open_session(const Config& config);
Mesh mesh_of(const Config& config);
Layout layout_of(const Config& config);
optim::Schedule schedule_of(const Config& config);
// UserError for a word of [mesh] that means nothing.
void check_choices(const Config& config);
CompileOptions compile_options(const Config& config);  // without fetches and updates
std::string number_text(double number);                // "0.15": as a stream prints it

// As Session::compile under the config's layout; a UserError names the config's settings.
Executable compile(Session& session, const Config& config, const Graph& graph, const CompileOptions& options);

// Inputs of a graph from the arrays of a batch.
Feeds feeds_of(const models::SequenceGraph& graph, const data::Batch& batch);

// From now on a process reads of every batch the rows that its processors hold.
void read_own_rows(data::Batches& batches, const Executable& executable, const models::SequenceGraph& graph);
// The next batch; if it cannot be made in one process, all of them throw what that one threw.
std::optional<data::Batch> next_batch(const Session& session, data::Batches& batches);

// One step of training as a graph.
struct TrainingStep {
  models::SequenceGraph graph;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::Schedule schedule;

  TrainingStep(const Config& config, bool packed);
  Feeds feeds(std::int64_t step, const data::Batch& batch) const;
  CompileOptions compiled(const Config& config) const;
};

}  // namespace weft::train
