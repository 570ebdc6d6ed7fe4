// Tasks: what `weft train` trains, evaluates and decodes. A task has the settings of section [model], the graphs, the
// features that it reads of the data, and the metrics. `[model] kind` names it. docs/writing-a-task.md shows one.
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

// A setting whose value is one of some words.
struct Choice {
  std::vector<std::string> words;
  std::function<std::string()> get;                  // "": not set
  std::function<void(const std::string& word)> set;  // one of the words
};

// A setting of section [model]: its name, its value's place in the task, and a line of explanation for docs/config.md.
struct Setting {
  using Field = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                             std::optional<double>*, Choice>;
  std::string name;
  Field field;
  std::string doc;
  bool is_identity = false;  // gives weights their meaning: a run goes on, and is used, under its own value
  std::string unset = {};    // what it means that the field has no value
};
inline constexpr bool kIdentity = true;

// Inputs of a graph by the names of a batch's arrays. Each has the dim "batch", of Config::sequences() rows.
using Features = std::map<std::string, Tensor>;

struct TrainingGraph {
  Graph graph;  // its scalar metrics (scalar_metric) are logged with the loss
  Features features;
  Tensor loss;  // a scalar
};

struct EvaluationGraph {
  Graph graph;
  Features features;
  std::map<std::string, Tensor> results;  // [batch …]: what Task::add_rows reads
};

// Sums over examples, by name.
using Sums = std::map<std::string, double>;

// A figure of merit that weft eval reports.
struct Metric {
  std::string name;
  double value = 0;
  bool is_count = false;   // a whole number
  bool is_logged = false;  // also in the metrics of a training run, as dev/<name>
};

// What a task makes of a text.
enum class Decoding {
  kNone,          // nothing
  kContinuation,  // goes on with it: weft generate
  kAnswer,        // reads it as a whole input: weft generate
  kTranslation,   // the same: weft translate
};

// Makes ids from ids, with a session's weights.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  // For each row hypotheses, best first.
  virtual std::vector<std::vector<decode::Hypothesis>> run(const std::vector<std::vector<std::int32_t>>& rows) = 0;
  // With one beam: called from run() with each id of a row as soon as it is chosen.
  virtual void on_token(std::function<void(std::size_t row, std::int32_t id)> listener) = 0;
  virtual decode::Speed speed() const = 0;  // of all runs so far
};

// Every function may throw a UserError. One whose `where` is a setting ("data.mask", or "layers" of [model]) is reported
// with the place where the config sets it.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::unique_ptr<Task> clone() const = 0;

  const std::string& kind() const { return kind_; }
  virtual void set_kind(const std::string& kind) { kind_ = kind; }  // one of its definition's

  // --- Settings ---
  virtual std::vector<Setting> settings() = 0;  // besides "kind"; the fields are this object's
  // Fills in what the rest of the config decides, such as the size of the vocabulary. May run more than once.
  virtual void complete(const Config& config);
  virtual void check(const Config& config) const;  // UserError if the settings make no model

  // --- Data ---
  // Changes what the config's sections [data] and [batch] say, such as how examples become rows. Without a change the
  // data gives "targets" and, of pairs, "inputs".
  virtual void choose_data(const Config& config, data::SourceOptions& options) const;
  // The arrays that the graphs' features name, from those of the data. Rows of padding are other processes' or at the end.
  virtual data::Batch prepare(const Config& config, data::Batch batch) const;
  virtual bool has_inputs() const { return false; }  // an example is a pair: inputs and targets
  // What a row has at most, "128 targets": for the run's first lines and the tokens per second.
  virtual std::pair<std::int64_t, std::string> row_tokens(const Config& config) const;

  // --- Graphs: over the same variables, which the session shares by name. `packed`: rows are several examples. ---
  virtual TrainingGraph training_graph(const Config& config, bool packed) const = 0;
  virtual EvaluationGraph evaluation_graph(const Config& config, bool packed) const = 0;
  // One with all weights. By default that of training, with one row of one token.
  virtual Graph weights(const Config& config) const;
  // The dims to split after batch, in a hint to the user.
  virtual std::vector<std::string> dims_to_split() const { return {}; }

  // --- Metrics ---
  // Adds rows [begin, end) of a batch's results to the sums. By default each result, [batch], under its name.
  virtual void add_rows(const EvaluationGraph& graph, const Values& values, std::int64_t begin, std::int64_t end,
                        Sums& sums) const;
  // Of the sums of all examples; weft eval adds the sum "words", of the targets' text.
  virtual std::vector<Metric> metrics(const Sums& sums) const = 0;
  // Of one example's sums: the columns of weft eval --per-line. By default the sums, in the order of their names.
  virtual std::vector<double> example_figures(const Sums& sums) const;
  // The metrics in a line during training, most important first. By default the logged metrics.
  virtual std::vector<std::string> summary(const Sums& sums) const;

  // --- Decoding ---
  virtual Decoding decoding() const { return Decoding::kNone; }
  // For `batch` rows at a time whose lengths are from `shortest` to `longest`. Not called for kNone.
  virtual std::unique_ptr<TextDecoder> decoder(Session& session, const Config& config, std::int64_t batch,
                                               std::int64_t shortest, std::int64_t longest) const;

 private:
  std::string kind_;
};

// Kinds that share their settings, and the task of the first of them with its defaults.
struct TaskDefinition {
  std::vector<std::string> kinds;
  std::function<std::unique_ptr<Task>()> make;
};
// Adds a task to those that configs can name; call it when a static object is initialized. The reference stays good.
const TaskDefinition& define_task(TaskDefinition definition);
// All kinds, the default one first; and a task of this kind with its defaults. InternalError if there is none.
std::vector<std::string> task_kinds();
std::unique_ptr<Task> make_task(const std::string& kind);

// Of a field that is an enum, or an optional one.
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
