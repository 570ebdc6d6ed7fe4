// Makes graphs, sessions and streams of data from a config: shared by training, scoring and decoding.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/data.h"
#include "weft/detail/train_parts.h"
#include "weft/optim.h"
#include "weft/schedule.h"

namespace weft::train {

// The files in order, without end, or, for evaluation, once, unshuffled.
data::SourceOptions source(const Config& config, const std::vector<std::string>& files, bool endless);
// Are rows of this config several examples each?
bool packs(const Config& config);

Session open_session(const Config& config);
device::Choice device_of(const Config& config);
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
Feeds feeds_of(const Features& features, const data::Batch& batch);

// From now on a process reads of every batch the rows that its processors hold.
void read_own_rows(data::Batches& batches, const Executable& executable, const Features& features);
// The next batch, prepared by the task; if it cannot be made in one process, all of them throw what that one threw.
std::optional<data::Batch> next_batch(const Session& session, const Config& config, data::Batches& batches);

// One step of training as a graph.
struct TrainingStep {
  TrainingGraph graph;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::Schedule schedule;

  TrainingStep(const Config& config, bool packed);
  Feeds feeds(std::int64_t step, const data::Batch& batch) const;
  CompileOptions compiled(const Config& config) const;
};

}  // namespace weft::train
