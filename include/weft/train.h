// Trains a config: reads its data, writes checkpoints and metrics to its folder. A run that was stopped or killed resumes
// from its last checkpoint, on any mesh and layout. On the same mesh and with the same number of workers it computes the
// same bits as a run without the stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/checkpoint.h"
#include "weft/config.h"
#include "weft/explain.h"

namespace weft::train {

// A new run starts with the weights of an earlier run, without optimizer state, at step 0.
struct WarmStart {
  std::string from = {};  // a training folder or a checkpoint; "": random weights
  // See Checkpoint::LoadOptions.
  std::vector<std::pair<std::string, std::string>> rename = {};
  bool allow_missing = false, allow_unused = false;
};

// The results of an evaluation over some files.
struct Evaluation {
  Sums sums;                    // over the examples
  std::vector<Metric> metrics;  // of the task, computed from the sums

  double metric(const std::string& name) const;  // UserError for a name that is not a metric of the task
};

struct TrainOptions {
  bool progress = true;     // lines on standard output and, on a terminal, a bar on standard error
  std::string trace = {};   // a file for the trace of the last steps; see Executable::trace
  bool keep_trace = false;  // whether Trained::trace has its text
  WarmStart init = {};      // ignored if the run has a checkpoint to resume from
  // Settings marked "identity" in docs/config.md, which determine the meaning of the weights. The settings that are listed
  // here may differ from the checkpoint's. With "optimizer.name" the optimizer state starts anew.
  std::vector<std::string> allow_change = {};
};

struct Trained {
  std::int64_t first = 0, step = 0;  // the steps done before this call, and after it
  bool stopped = false;              // by SIGINT, SIGTERM, SIGHUP or SIGPIPE, after a checkpoint
  std::vector<double> losses;        // of the steps of this call
  std::optional<Evaluation> dev;
  double tokens_per_second = 0;  // counts padding, and the time of evaluations and checkpoints
  std::string trace = {};        // in the first process; empty if the run stopped before the steps that are traced
};

// UserError for a config that cannot run, or whose identity settings differ from the checkpoint's. RunError if a processor
// or a disk fails, or if the loss is NaN or infinite. The error then names the instruction that computed the first NaN or
// infinity, and the last checkpoint stays.
Trained train(const Config& config, const TrainOptions& options = {});

struct PlanOptions {
  std::optional<Machine> machine = {};                                            // default: measured
  std::string topology = {};                                                      // see device::Choice
  std::function<void(std::string_view pass, const std::string& text)> dump = {};  // see CompileOptions::dump
};
// The cost of one training step on each processor, counted on the compiled program. Nothing runs. UserError, with the
// setting, if the layout cannot work.
Explanation plan(const Config& config, const PlanOptions& options = {});

// A trained model, ready for evaluation and decoding: its config, and its weights on a mesh.
class TrainedModel {
 public:
  // Opens a training folder or a checkpoint and applies `assignments` ("mesh.mesh=data:2") to its config. UserError if
  // they change an identity setting that `allow_change` does not list; see TrainOptions.
  explicit TrainedModel(const std::string& path, const std::vector<std::string>& assignments = {},
                        const std::vector<std::string>& allow_change = {});
  ~TrainedModel();

  const Config& config() const;
  const std::string& path() const;  // of the checkpoint
  std::int64_t step() const;

  // Evaluates all examples of the files. Their format is the config's, unless the file name extension implies another.
  Evaluation evaluate(const std::vector<std::string>& files);
  // The sums of each example, in the order of the files.
  std::vector<Sums> evaluate_each(const std::vector<std::string>& files);

  struct Text {
    std::string text;
    std::vector<std::int32_t> ids;
    double score = 0;  // see decode::Hypothesis
    bool ended = false;
    std::vector<double> log_probabilities = {};
    std::int32_t end_token = -1;
    std::string stop_text = {};  // the text of decode.stop before which it ends; its tokens are among the ids
  };
  // The best texts for each prompt, by the settings of config().decode and the task's Decoding. Prompts may have different
  // lengths. With one beam, calls `listener` with the number of a prompt and the next piece of its text as soon as the
  // piece is known; the pieces of a prompt, in order, are its text. Calls `text_listener` with the texts of each prompt in
  // order, as soon as this prompt and all prompts before it are done. UserError if the task does not decode, and if
  // config().decode.batch rows do not fit in memory.
  using Listener = std::function<void(std::size_t prompt, const std::string& piece)>;
  using TextListener = std::function<void(std::size_t prompt, const std::vector<Text>& texts)>;
  std::vector<std::vector<Text>> generate(const std::vector<std::string>& prompts, const Listener& listener = {},
                                          const TextListener& text_listener = {});

  // All prompts from now on follow this text, which the model reads once. Texts and pieces are without it. Only for tasks
  // that continue texts: Decoding::kContinuation.
  void set_prefix(const std::string& text);

  // What generate() would need for these prompts, without a prefix. Nothing is allocated.
  struct Plan {
    std::int64_t batch = 0;        // rows that are decoded together
    std::int64_t longest = 0;      // tokens of the longest prompt
    decode::DecoderMemory memory;  // of each processor
    std::int64_t limit = 0;        // of the memory of each processor; 0: unknown
  };
  Plan plan(const std::vector<std::string>& prompts);

  struct Speed {
    std::int64_t tokens = 0;  // generated by the last generate()
    double prefill_seconds = 0, decode_seconds = 0;
  };
  const Speed& speed() const;

 private:
  struct State;
  struct Prompts;
  Prompts read(const std::vector<std::string>& prompts);
  std::unique_ptr<State> state_;
};

}  // namespace weft::train
