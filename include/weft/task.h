// Tasks: `weft train` trains, evaluates and decodes a task. A task has the settings of section [model], its graphs, the
// features that it reads from the data, and its metrics. `[model] kind` names it. docs/writing-a-task.md shows an example.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weft/data.h"
#include "weft/decode.h"
#include "weft/graph.h"
#include "weft/session.h"

namespace weft::train {

struct Config;

// A setting whose value is one word of a list.
struct Choice {
  std::vector<std::string> words;
  std::function<std::string()> get;                  // "": not set
  std::function<void(const std::string& word)> set;  // one of the words
};

// A setting of section [model]: its name, the member of the task that holds its value, and a line for docs/config.md.
struct Setting {
  using Field = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                             std::optional<double>*, Choice>;
  std::string name;
  Field field;
  std::string doc;
  bool is_identity = false;  // determines the meaning of the weights: a checkpoint is used only with the same value
  std::string unset = {};    // for docs/config.md: the meaning of a field without a value
};
inline constexpr bool kIdentity = true;

// The inputs of a graph, by the names of the arrays of a batch. Each has the dim "batch" of Config::sequences() rows.
using Features = std::map<std::string, Tensor>;

struct TrainingGraph {
  Graph graph;  // the scalar metrics of the graph (scalar_metric) are logged with the loss
  Features features;
  Tensor loss;  // a scalar
};

struct EvaluationGraph {
  Graph graph;
  Features features;
  std::map<std::string, Tensor> results;  // [batch …], for Task::add_rows
  models::WeightCopies copies = {};       // that the graph reads
};

// Sums over examples, by name.
using Sums = std::map<std::string, double>;

// A number that weft eval reports.
struct Metric {
  std::string name;
  double value = 0;
  bool is_count = false;   // an integer
  bool is_logged = false;  // also logged during training, as dev/<name>
};

// The text that a task generates from a given text.
enum class Decoding {
  kNone,          // none
  kContinuation,  // the continuation of the text: weft generate
  kAnswer,        // an output for the text as input: weft generate
  kTranslation,   // an output for the text as input: weft translate
};

// Generates ids from ids, with the weights of a session.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  // Begins with these rows and drops all rows before them. next() returns a row as soon as it is done, and nothing if all
  // rows have been returned.
  virtual void start(const std::vector<std::vector<std::int32_t>>& rows) = 0;
  virtual std::optional<decode::Finished> next() = 0;
  // All rows from now on begin with these ids, which are read once.
  virtual void set_prefix(const std::vector<std::int32_t>& ids) = 0;
  // With one beam, calls `listener` with each id of a row as soon as it is chosen.
  virtual void on_token(std::function<void(std::size_t row, std::int32_t id)> listener) = 0;
  // Ends a sequence after a token if `rule` is true for the tokens generated in its row so far.
  virtual void stop_when(std::function<bool(std::size_t row, std::span<const std::int32_t> ids)> rule) = 0;
  virtual decode::Speed speed() const = 0;  // over all rows so far

  // The hypotheses for each row, best first.
  std::vector<std::vector<decode::Hypothesis>> run(const std::vector<std::vector<std::int32_t>>& rows);
};

// Every function may throw a UserError. If the `where` of the error is a setting ("data.mask", or "layers" of [model]),
// the report names the line of the config that sets it.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::unique_ptr<Task> clone() const = 0;

  const std::string& kind() const { return kind_; }
  virtual void set_kind(const std::string& kind) { kind_ = kind; }  // one of TaskDefinition::kinds

  // --- Settings ---
  virtual std::vector<Setting> settings() = 0;  // without "kind"; the fields point into this object
  // Sets the fields that follow from the rest of the config, for example the size of the vocabulary. May run repeatedly.
  virtual void complete(const Config& config);
  virtual void check(const Config& config) const;  // UserError for settings that contradict each other

  // --- Data ---
  // Changes the options that sections [data] and [batch] give, for example how examples become rows. By default the data
  // has "targets" and, for pairs, "inputs".
  virtual void choose_data(const Config& config, data::SourceOptions& options) const;
  // Converts the arrays of the data to the features of the graphs. Rows of padding belong to other processes or are at
  // the end of the data.
  virtual data::Batch prepare(const Config& config, data::Batch batch) const;
  virtual bool has_inputs() const { return false; }  // true: an example is a pair of inputs and targets
  // The largest number of tokens in a row, and its text "128 targets", for the first lines of a run and the tokens per
  // second.
  virtual std::pair<std::int64_t, std::string> row_tokens(const Config& config) const;

  // --- Graphs: over the same variables, which the session shares by name. `packed`: a row has several examples. ---
  virtual TrainingGraph training_graph(const Config& config, bool packed) const = 0;
  virtual EvaluationGraph evaluation_graph(const Config& config, bool packed) const = 0;
  // A graph with all weights. By default the training graph with one row of one token.
  virtual Graph weights(const Config& config) const;
  // Dims, besides batch, that a hint to the user recommends to split.
  virtual std::vector<std::string> dims_to_split() const { return {}; }

  // --- Metrics ---
  // Adds rows [begin, end) of the results of a batch to the sums. By default adds each result [batch] under its name.
  virtual void add_rows(const EvaluationGraph& graph, const Values& values, std::int64_t begin, std::int64_t end,
                        Sums& sums) const;
  // The metrics from the sums over all examples. weft eval adds the sum "words": the words of the targets' text.
  virtual std::vector<Metric> metrics(const Sums& sums) const = 0;
  // The columns of weft eval --per-line from the sums of one example. By default the sums, in the order of their names.
  virtual std::vector<double> example_figures(const Sums& sums) const;
  // Short texts for the progress line, most important first. By default the logged metrics.
  virtual std::vector<std::string> summary(const Sums& sums) const;

  // --- Decoding ---
  virtual Decoding decoding() const { return Decoding::kNone; }
  // A decoder for `batch` rows at a time, of lengths from `shortest` to `longest`. Not called for kNone.
  virtual std::unique_ptr<TextDecoder> decoder(Session& session, const Config& config, std::int64_t batch,
                                               std::int64_t shortest, std::int64_t longest) const;
  // The memory of this decoder on each processor of config.mesh, without making it.
  virtual decode::DecoderMemory decoder_memory(const Config& config, std::int64_t batch, std::int64_t shortest,
                                               std::int64_t longest) const;

 private:
  std::string kind_;
};

// Kinds that share their settings. make() returns a task of the first kind with default settings.
struct TaskDefinition {
  std::vector<std::string> kinds;
  std::function<std::unique_ptr<Task>()> make;
};
// Adds a task that configs can name. Call it in the initialization of a static object. The reference stays valid.
const TaskDefinition& define_task(TaskDefinition definition);
// All kinds, the default kind first; a task of a kind with default settings. InternalError for an unknown kind.
std::vector<std::string> task_kinds();
std::unique_ptr<Task> make_task(const std::string& kind);

// The choice for a field that is an enum or an optional enum.
template <class T>
Choice choice(T& field, const std::vector<std::pair<std::string, T>>& words) {
  Choice made;
  for (const auto& [word, value] : words) made.words.push_back(word);
  made.get = [&field, words] {
    for (const auto& [word, value] : words)
      if (value == field) return word;
    return std::string();
  };
  made.set = [&field, words](const std::string& chosen) {
    for (const auto& [word, value] : words)
      if (word == chosen) field = value;
  };
  return made;
}

}  // namespace weft::train
