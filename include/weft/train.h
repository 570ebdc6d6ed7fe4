// Training a config: from its data to checkpoints and metrics in its folder. A run that was stopped or killed goes on from
// its last checkpoint, on any mesh and layout, and on the same mesh and workers makes the very numbers that it would have
// made without the stop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/checkpoint.h"
#include "weft/config.h"
#include "weft/explain.h"

namespace weft::train {

// The weights that a new run begins with: those of another run, without optimizer state. The step is 0.
struct WarmStart {
  std::string from = {};  // a training folder or a checkpoint; "": random weights
  // As those of Checkpoint::LoadOptions.
  std::vector<std::pair<std::string, std::string>> rename = {};
  bool allow_missing = false, allow_unused = false;
};

// How well weights do on some files.
struct Evaluation {
  Sums sums;                    // over the examples
  std::vector<Metric> metrics;  // of the task, made of the sums

  double metric(const std::string& name) const;  // UserError if the task has no such metric
};

struct TrainOptions {
  bool progress = true;    // lines on standard output and, on a terminal, a bar on standard error
  std::string trace = {};  // the file of a trace of the last steps, as Executable::trace
  WarmStart init = {};     // not used by a run that has a checkpoint: it goes on from there
  // Settings whose value may be another than that of the checkpoint, although they give its weights their meaning: those
  // marked "identity" in docs/config.md. With "optimizer.name" the state of the optimizer begins anew.
  std::vector<std::string> allow_change = {};
};

struct Trained {
  std::int64_t first = 0, step = 0;  // this call began after step `first`; `step` are done
  bool stopped = false;              // by SIGINT, SIGTERM, SIGHUP or SIGPIPE, after a checkpoint
  std::vector<double> losses;        // of the steps of this call
  std::optional<Evaluation> dev;
  double tokens_per_second = 0;  // padding counted; evaluations and checkpoints included
};

// UserError for a config that cannot be run, or that gives the weights it goes on from another meaning; RunError if a processor, a disk or the numbers fail: a loss that is not finite
// ends the run with the instruction that made the first NaN or infinity, and leaves the last checkpoint.
Trained train(const Config& config, const TrainOptions& options = {});

// What that step costs on each processor, read off the program. UserError, with the setting, if the layout cannot work.
struct PlanOptions {
  std::optional<Machine> machine = {};                                            // by default measured
  std::function<void(std::string_view pass, const std::string& text)> dump = {};  // as CompileOptions::dump
};
Explanation plan(const Config& config, const PlanOptions& options = {});

// A trained model in use: the config it was trained with, and its weights on a mesh.
class TrainedModel {
 public:
  // A training folder or a checkpoint, with these assignments ("mesh.mesh=data:2") to its config in place. UserError if
  // they give the weights another meaning, by settings that `allow_change` has not; see TrainOptions.
  explicit TrainedModel(const std::string& path, const std::vector<std::string>& assignments = {},
                        const std::vector<std::string>& allow_change = {});
  ~TrainedModel();

  const Config& config() const;
  const std::string& path() const;  // of the checkpoint
  std::int64_t step() const;

  // Over all examples of the files, whose format is the config's unless their ending says otherwise.
  Evaluation evaluate(const std::vector<std::string>& files);
  // The sums of each example by itself, in the files' order.
  std::vector<Sums> evaluate_each(const std::vector<std::string>& files);

  struct Text {
    std::string text;
    std::vector<std::int32_t> ids;
    double score = 0;  // as decode::Hypothesis
    bool ended = false;
  };
  // The best texts for each prompt, as config().decode and the task's Decoding say. UserError if the task makes no text.
  // Prompts may be of unlike lengths. With one
  // beam, `listener` is called with the number of a prompt and the next piece of its text as soon as that is known: the
  // pieces of a prompt in a row are its text.
  using Listener = std::function<void(std::size_t prompt, const std::string& piece)>;
  std::vector<std::vector<Text>> generate(const std::vector<std::string>& prompts, const Listener& listener = {});

  struct Speed {
    std::int64_t tokens = 0;  // made by the last generate()
    double prefill_seconds = 0, decode_seconds = 0;
  };
  const Speed& speed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::train
