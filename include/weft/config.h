// Config: all settings of a training run, as a TOML file gives them. docs/config.md lists them with their defaults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/decode.h"
#include "weft/mesh.h"
#include "weft/optim.h"
#include "weft/task.h"

namespace weft::train {

// Section [model]: the kind of the task, and the task with the remaining settings of the section.
class ModelConfig {
 public:
  ModelConfig();  // kind "lm"
  ModelConfig(const ModelConfig& other);
  ModelConfig& operator=(const ModelConfig& other);
  ~ModelConfig();

  // `kind`: one of task_kinds(). If the new kind has the same settings, they keep their values; otherwise all settings
  // have the defaults of the new kind.
  void set_kind(const std::string& kind);
  Task& task() { return *task_; }
  const Task& task() const { return *task_; }
  const Task* operator->() const { return task_.get(); }

 private:
  std::unique_ptr<Task> task_;
};

struct DataConfig {
  std::vector<std::string> train, dev;       // files; for parallel text the file of inputs, then the file of targets
  std::string format, vocabulary = "bytes";  // format "": by the file name extension
  bool pack = true, shuffle = true;
  double mask = 0.15;        // for an encoder: the share of tokens that are masked
  std::int64_t mask_id = 2;  // Vocabulary::kUnknown
};

struct BatchConfig {
  std::int64_t sequences = 0, tokens = 0;  // set one: the rows of a batch, or its targets including padding
  std::int64_t length = 128, inputs_length = 128;
  std::int64_t microbatches = 1;
};

struct MeshConfig {
  std::string mesh, layout, store;
  std::int64_t store_level = 1;
  std::string wire, device = "cpu";  // wire "": wire::automatic()
  std::string plugin;                // of device xla: see device::Choice
  bool nondeterministic = false;     // of device cuda: likewise
  std::int64_t workers = 0;
  std::string memory;  // the limit on each processor, "2GiB", met by recomputation; "": no limit
};

struct RunConfig {
  std::string out;  // the folder of checkpoints and metrics; "": runs/<name>
  std::int64_t steps = 1000, seed = 0;
  std::int64_t log_every = 10, eval_every = 0, eval_batches = 0, checkpoint_every = 0, keep = 3;
  double checkpoint_minutes = 10;  // in addition to checkpoint_every; 0: none
  bool f64 = false;                // compute_as f64 on the reference device, to compare layouts
  bool check_ids = false;          // see CompileOptions
  double deadline = 600;
};

struct DecodeConfig : decode::Options {
  std::vector<std::string> stop;  // a text ends before the first of these texts that it contains
  std::int64_t batch = 0;         // rows that are decoded together; 0: chosen
  std::string memory;             // the limit for decoding on each processor, "2GiB"; "": what is free
};

struct Config {
  std::string name = "run";
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  optim::OptimizerOptions optimizer;
  // The learning rate is rate * schedule. Without a rate it is the schedule; without both it is 0.001.
  std::optional<double> rate;
  std::string schedule;  // see docs/optimizers.md
  MeshConfig mesh;
  RunConfig run;
  DecodeConfig decode;

  // Key -> the place that set it, "lm.toml:12" or "--set …", for errors.
  std::map<std::string, std::string> places;

  std::string out() const { return run.out.empty() ? "runs/" + name : run.out; }
  std::int64_t sequences() const;  // the rows of a batch
};

// UserError, with the line, for text that is not TOML, for an unknown setting (with the nearest known name) and for a
// value of the wrong kind. Settings that are not given have their defaults.
Config parse_config(std::string_view text, const std::string& name = "config");
Config read_config(const std::string& path);
void read_more(Config& config, const std::string& path);  // overrides some settings: configs/layouts/2x4.toml
// "model.layers=4" or "model.layers=4,run.steps=10". UserError like parse_config.
void set(Config& config, std::string_view assignments);
// UserError if the settings contradict each other or cannot run: files, sizes, mesh, layout, schedule.
void check(const Config& config);

std::string text(const Config& config);  // as TOML, with a line on every setting; parse_config() reads it back
std::string reference();                 // the text of docs/config.md

}  // namespace weft::train
