// Parts of a training run, for the commands: what a checkpoint keeps of it, and its step as a graph. Not part of the
// API's promise: it may change in any release.
#pragma once

#include <map>
#include <string>

#include "weft/detail/models.h"
#include "weft/plan.h"
#include "weft/train.h"

namespace weft::train {

// The config, with the settings that its data and vocabulary decide filled in: the number of tokens, the missing parts
// of the layout.
Config completed(const Config& config);

// The texts that a checkpoint of this run keeps, by file name: "config.toml", with absolute paths of the data and
// without mesh.wire and run.out, and "vocabulary.model", a copy, unless the vocabulary is "bytes".
std::map<std::string, std::string> stored_texts(const Config& config);
// The config of a checkpoint's run, for use in this process: the vocabulary is the checkpoint's copy, run.out is the
// folder of the checkpoint, mesh.wire is the default. UserError if the checkpoint has no config.
Config stored_config(const Checkpoint& checkpoint);

// The weights of the config's model and their shapes.
std::map<std::string, Shape> weight_shapes(const Config& config);

// One step of the config's training as a graph, with its fetches and updates, mesh and layout. Nothing runs, and no
// data is read.
models::Model step_model(const Config& config);
// As plan(config, options), for the model that step_model(config) gave.
Explanation plan(const Config& config, const models::Model& model, const PlanOptions& options);
// The same step with any number of layers of each kind, any number of microbatches and with or without recomputation.
StepFamily step_family(const Config& config);
Store store_of(const Config& config);  // mesh.store and mesh.store_level

// train() for tests: the process kills itself when it reaches a phase for the N-th time, `fail_at` = "step:5",
// "save-begun:2", "mid-shard:1", "before-rename:1" or "before-latest:1". With "@1" at the end only process 1 does. "":
// never. UserError for any other text.
Trained train_until(const std::string& fail_at, const Config& config, const TrainOptions& options);

}  // namespace weft::train
