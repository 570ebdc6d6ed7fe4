// The training loop. Everything that decides the numbers of a step is known from the config, the step and the checkpoint:
// variables, the position in the data, the count of draws.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "train/error_setting.h"
#include "train/activity_lines.h"
#include "train/checkpoint_files.h"
#include "train/fault.h"
#include "train/identity.h"
#include "train/metrics.h"
#include "train/parts.h"
#include "train/progress.h"
#include "train/run_header.h"
#include "train/scorer.h"
#include "train/signals.h"
#include "train/stored.h"
#include "weft/detail/activity.h"
#include "weft/detail/checkpoint_hook.h"
#include "weft/detail/session_access.h"
#include "weft/error.h"

namespace weft::train {

namespace {

constexpr std::int64_t kTracedSteps = 20, kBatchesAhead = 4;

bool due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

bool first_process() { return wire::process() == 0; }

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw RunError({.code = "train.cannot-make-folder",
                    .what = "cannot make the folder '" + path + "': " + error.message(),
                    .where = "run.out",
                    .fix = "set run.out to a folder that you may write to"});
}

void check_files(const std::string& key, const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (!std::filesystem::exists(path))
      throw UserError({.code = "config.file-missing",
                       .what = "setting '" + key + "' names the file '" + path + "', which is not there",
                       .where = key,
                       .fix = "give the path where it is now: --set '" + key + "=[\"PATH\"]'"});
}

// Whether another number of steps has changed the learning rates that are still to come, as a warning; "" if not.
std::string rescaled_schedule(const Config& config, const Checkpoint& from) {
  const auto saved = from.state().texts.find("config.toml");
  if (saved == from.state().texts.end()) return "";
  const Config before = parse_config(saved->second, from.path() + "/config.toml");
  if (before.schedule != config.schedule || before.run.steps == config.run.steps || before.run.steps < 1) return "";
  const optim::Schedule was = schedule_of(before), is = schedule_of(config);
  for (std::int64_t step = from.state().step + 1; step <= config.run.steps; ++step)
    if (was.at(step) != is.at(step))
      return "warning: run.steps was " + std::to_string(before.run.steps) + " and is " +
             std::to_string(config.run.steps) + ", which rescales the schedule \"" + config.schedule +
             "\": the learning rate of step " + std::to_string(step) + " is " + number_text(is.at(step)) +
             " and would have been " + number_text(was.at(step)) +
             "; write the numbers of steps into optimizer.schedule to keep it";
  return "";
}

// Whether checkpoints hold weights in another dtype than the optimizer updates, as a sentence; "" if not.
std::string rounding_of(const Session& session) {
  for (const detail::VariableShard& shard : detail::shards(session))
    if (shard.stored != shard.dtype)
      return "checkpoints hold weights as " + std::string(name_of(shard.stored)) + ", which the optimizer updates as " +
             std::string(name_of(shard.dtype));
  return "";
}

// The processors, the step compiled for them and the stream of batches, at the place where the run is.
struct TrainingSetup {
  data::Batches batches;
  TrainingStep step;
  Session session;
  Executable executable;

  TrainingSetup(const Config& config, const std::optional<Checkpoint>& from, const WarmStart& init,
                const CompileOptions& more)
      : batches(opened(config)),
        step(config, batches.packed()),
        session(open_session(config)),
        executable(compile(session, config, step.graph.graph, compiled(config, more))) {
    read_own_rows(batches, executable, step.graph.features);
    if (!from) {
      begin_with(init);
      return;
    }
    const Activity activity("reading the checkpoint");
    from->load(session, {.optimizer_state = has_state_of(*from, config.optimizer.name)});
    const auto position = from->state().texts.find("data.json");
    if (position != from->state().texts.end()) batches.seek(position->second);
    executable.set_step(from->state().step);
  }

  static data::Batches opened(const Config& config) {
    const Activity activity("reading data");
    return data::Batches(source(config, config.data.train, true), kBatchesAhead);
  }

  void begin_with(const WarmStart& init) {
    if (init.from.empty()) return;
    Checkpoint::open(init.from).load(session, {.optimizer_state = false,
                                               .rename = init.rename,
                                               .allow_missing = init.allow_missing,
                                               .allow_unused = init.allow_unused});
  }

  // Weights that were imported have no state.
  static bool has_state_of(const Checkpoint& from, const std::string& optimizer) {
    if (from.state().texts.contains("config.toml") && stored_config(from).optimizer.name != optimizer) return false;
    const auto& all = from.variables();
    return std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.second.slot_of.empty(); });
  }

  CompileOptions compiled(const Config& config, const CompileOptions& more) const {
    CompileOptions options = step.compiled(config);
    options.check_finite = more.check_finite;
    options.trace = more.trace;
    return options;
  }

  PendingRun start(const Config& config, std::int64_t number) {
    return executable.start(step.feeds(number, *next_batch(session, config, batches)));
  }
  double loss(const Values& values) const { return values.scalar(step.graph.loss); }
};

// A step that the processors are at, or whose results have not been looked at yet.
struct StartedStep {
  std::int64_t step = 0, epoch = 0;
  PendingRun running;
  double at = 0;
};

// UserError if another run is at it: that run replaces the checkpoints and writes the metrics.
std::optional<Checkpoint> to_go_on_from(const std::string& folder) {
  if (first_process()) checkpoint::check_not_in_use(folder);
  return Checkpoint::latest(folder);
}

class Trainer {
 public:
  Trainer(const Config& config, const TrainOptions& options, const std::string& fail_at)
      : config_(config),
        options_(options),
        fault_(fail_at),
        from_(to_go_on_from(config_.out())),
        progress_(config_.run.steps, options.progress && first_process()) {
    done_.first = done_.step = first();
  }

  Trained run();

 private:
  std::int64_t first() const { return from_ ? from_->state().step : 0; }
  double tokens_per_step() const {
    return static_cast<double>(config_.sequences() * config_.model->row_tokens(config_).first);
  }
  void check_weights() const;
  void prepare();
  void announce();
  void steps();
  void begin(std::int64_t step);
  void take_oldest(Checkpoints& checkpoints);
  void log(const StartedStep& begun, const Values& values);
  void evaluate(std::int64_t step);
  void save(Checkpoints& checkpoints, std::int64_t step, bool is_last);
  void warn_of_failed_save(const std::exception_ptr& error);
  bool minutes_passed() const;
  void write_metrics(std::int64_t step, const Metrics& metrics);
  bool traces() const { return !options_.trace.empty() || options_.keep_trace; }
  std::int64_t traced_from() const { return std::max(first(), config_.run.steps - kTracedSteps); }
  void check_trace() const;
  void write_trace();
  [[noreturn]] void not_finite(Checkpoints& checkpoints, std::int64_t step, double loss);

  Config config_;
  TrainOptions options_;
  Fault fault_;
  std::optional<Checkpoint> from_;
  Progress progress_;
  std::unique_ptr<TrainingSetup> machinery_;
  std::deque<StartedStep> begun_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<MetricsFiles> metrics_;
  std::ofstream trace_;  // open before the run, so that no long run is for nothing
  Machine machine_;      // all cores together
  double flops_ = 0;     // of a step, of all processors
  double logged_at_ = 0;
  std::int64_t logged_step_ = 0;
  double seconds_ = 0;  // that the last step took
  Trained done_;
  std::map<std::string, std::string> texts_;  // of every checkpoint
  double saved_at_ = 0;                       // when the last save began
  std::int64_t saved_step_ = 0;
  bool warned_of_save_ = false, warned_of_metrics_ = false;  // of the save at hand; at all
};

// Of what the run goes on from, or begins with.
void Trainer::check_weights() const {
  const std::string& begin = options_.init.from;
  if (from_) check_identity(*from_, config_, options_.allow_change, Use::kGoOn);
  else if (!begin.empty()) check_identity(Checkpoint::open(begin), config_, options_.allow_change, Use::kBeginWith);
}

void Trainer::prepare() {
  CompileOptions more;
  if (!options_.trace.empty() && first_process()) trace_.open(options_.trace, std::ios::binary);
  check_trace();
  if (traces()) more.trace = {.first = traced_from(), .steps = kTracedSteps};
  machinery_ = std::make_unique<TrainingSetup>(config_, from_, options_.init, more);
  if (!config_.data.dev.empty()) {
    Config exact = config_;
    exact.decode.weights = decode::Weights::kF32;  // of the weights that are trained, whatever decoding rounds
    scorer_ = std::make_unique<Scorer>(machinery_->session, exact, config_.data.dev);
  }
  texts_ = stored_texts(config_);
  make_folder(config_.out());
  if (first_process()) metrics_ = std::make_unique<MetricsFiles>(config_.out());
  const std::string& begin = options_.init.from;
  if (from_) progress_.say("going on from " + from_->path());
  if (from_ && !begin.empty()) progress_.say("the run has begun already: the weights of " + begin + " are not used");
  if (!from_ && !begin.empty()) progress_.say("beginning with the weights of " + begin);
  const std::string rounds = rounding_of(machinery_->session);
  if (!rounds.empty())
    progress_.say("note: " + rounds + ", so a run that goes on from one begins with rounded weights");
  const std::string rescaled = from_ ? rescaled_schedule(config_, *from_) : "";
  if (!rescaled.empty()) progress_.say(rescaled);
}

// What the progress is held against: the flops of the model as written, and what the cores can do.
void Trainer::announce() {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  machine_ =
      placed(config_, {.otherwise = "mesh.device"}, [&] { return measure_machine(device_of(config_), 1, cores); });
  const Explanation planned = [&] {
    const Activity activity("compiling");
    return plan(config_, {.machine = machine_});
  }();
  flops_ = planned.model_flops;
  progress_.say(run_header(config_, planned, cores, machine_memory()));
  if (const std::string saved = saved_by_bf16(config_, planned, machine_); !saved.empty()) progress_.say(saved);
}

Trained Trainer::run() {
  check_weights();
  if (from_ && first() >= config_.run.steps) {
    progress_.say("nothing to do: " + from_->path() + " has " + std::to_string(first()) + " steps, run.steps is " +
                  std::to_string(config_.run.steps));
    return done_;
  }
  {
    const ActivityLines lines([this](const std::string& line) { progress_.say(line); });
    if (options_.progress || traces()) announce();
    prepare();
  }
  const double begin = seconds_now();
  logged_at_ = saved_at_ = begin;
  logged_step_ = first();
  steps();
  const auto made = static_cast<double>(done_.step - first());
  done_.tokens_per_second = made * tokens_per_step() / (seconds_now() - begin);
  write_trace();
  return done_;
}

void Trainer::steps() {
  const StopSignals signals;
  Checkpoints checkpoints(machinery_->session,
                          {.folder = config_.out(), .keep = static_cast<int>(config_.run.keep), .finite = true});
  detail::on_phase(checkpoints, [this](const std::string& phase) { fault_.at(phase); });
  for (std::int64_t step = first() + 1; step <= config_.run.steps && !done_.stopped; ++step) {
    begin(step);
    if (begun_.size() > 1) take_oldest(checkpoints);  // while the processors are at this one
    if (first_process() && checkpoints.failure()) warn_of_failed_save(checkpoints.failure());
    const bool last = step == config_.run.steps;
    const bool asked = signals.asked();
    const bool stops_or_saves =
        detail::any(machinery_->session, asked || minutes_passed());  // one question in most steps
    done_.stopped = stops_or_saves && detail::any(machinery_->session, asked) && !last;
    const bool evaluates = last || due(config_.run.eval_every, step);
    const bool saves = last || stops_or_saves || due(config_.run.checkpoint_every, step);
    if (evaluates || saves) take_oldest(checkpoints);
    if (evaluates) evaluate(step);
    if (done_.stopped) progress_.say("stopping at step " + std::to_string(step) + ", after a checkpoint");
    if (saves) save(checkpoints, step, last || done_.stopped);
  }
  if (config_.run.steps == 0) save(checkpoints, 0, true);  // the first weights
  checkpoints.wait();
}

// Returns once the processors are at the step.
void Trainer::begin(std::int64_t step) {
  fault_.at("step", seconds_ / 2);
  PendingRun running = machinery_->start(config_, step);
  begun_.push_back({step, machinery_->batches.epoch(), std::move(running), seconds_now()});
}

void Trainer::take_oldest(Checkpoints& checkpoints) {
  StartedStep begun = std::move(begun_.front());
  begun_.pop_front();
  const Values values = begun.running.get();
  seconds_ = seconds_now() - begun.at;
  const double loss = machinery_->loss(values);
  if (!std::isfinite(loss)) not_finite(checkpoints, begun.step, loss);
  done_.losses.push_back(loss);
  done_.step = begun.step;
  log(begun, values);
}

void Trainer::log(const StartedStep& begun, const Values& values) {
  const std::int64_t step = begun.step;
  const bool logged = due(config_.run.log_every, step) || step == config_.run.steps || step == first() + 1;
  const double since = std::max(1e-9, seconds_now() - logged_at_);
  const double per_second = logged ? static_cast<double>(step - logged_step_) / since : 1 / std::max(1e-9, seconds_);
  const bool one_host = wire::named(config_.mesh.wire).name == wire::threads().name;
  const double peak = one_host ? machine_.peak() : 0;
  const ProgressNumbers numbers{.step = step,
                                .loss = machinery_->loss(values),
                                .tokens_per_second = per_second * tokens_per_step(),
                                .flops_per_second = per_second * flops_,
                                .fraction_of_peak = peak > 0 ? per_second * flops_ / peak : 0};
  progress_.step(numbers, logged);
  if (!logged) return;
  logged_at_ = seconds_now();
  logged_step_ = step;
  if (!metrics_) return;
  Metrics metrics = {{"loss", numbers.loss},
                     {"learning_rate", machinery_->step.schedule.at(step)},
                     {"tokens_per_second", numbers.tokens_per_second},
                     {"flops_per_second", numbers.flops_per_second},
                     {"fraction_of_peak", numbers.fraction_of_peak},
                     {"epoch", static_cast<double>(begun.epoch)}};
  for (const auto& [name, value] : values.metrics()) metrics.emplace(name, value);
  if (config_.optimizer.clip_norm > 0)
    metrics["gradient_norm"] = values.scalar(machinery_->step.optimizer->gradient_norm());
  write_metrics(step, metrics);
}

void Trainer::evaluate(std::int64_t step) {
  if (!scorer_) return;
  const double begin = seconds_now();
  done_.dev = scorer_->evaluation(config_.run.eval_batches);
  std::vector<LinePart> parts = {{"dev at step " + std::to_string(step)}};
  int rank = 0;
  for (const std::string& part : config_.model->summary(done_.dev->sums)) parts.push_back({part, rank++});
  parts.push_back({duration_text(seconds_now() - begin), rank});
  progress_.say(parts);
  Metrics metrics;
  for (const Metric& metric : done_.dev->metrics)
    if (metric.is_logged) metrics["dev/" + metric.name] = metric.value;
  write_metrics(step, metrics);
  logged_at_ += seconds_now() - begin;  // the speed that is shown is that of training
}

// A failed save does not end the run: the next one may find room. If the last one fails, the run does.
void Trainer::save(Checkpoints& checkpoints, std::int64_t step, bool is_last) {
  const auto attempted = [&](bool is_required, const auto& work) {
    try {
      work();
    } catch (const RunError&) {
      if (is_required) throw;
      if (first_process()) warn_of_failed_save(std::current_exception());
    }
  };
  attempted(false, [&] { checkpoints.wait(); });  // for the one before
  texts_["data.json"] = machinery_->batches.position();
  saved_at_ = seconds_now();
  saved_step_ = step;
  warned_of_save_ = false;
  attempted(is_last, [&] { checkpoints.save({.step = step, .texts = texts_}); });
}

void Trainer::warn_of_failed_save(const std::exception_ptr& error) {
  if (std::exchange(warned_of_save_, true)) return;
  try {
    std::rethrow_exception(error);
  } catch (const Error& failed) {
    progress_.warn("there is no checkpoint of step " + std::to_string(saved_step_) + ": " + failed.text().what +
                   "; training goes on, and the next checkpoint is tried\nfix: " + failed.text().fix);
  } catch (const std::exception& failed) {
    progress_.warn("there is no checkpoint of step " + std::to_string(saved_step_) + ": " + failed.what());
  }
}

bool Trainer::minutes_passed() const {
  const double minutes = config_.run.checkpoint_minutes;
  return first_process() && minutes > 0 && seconds_now() - saved_at_ >= 60 * minutes;
}

void Trainer::write_metrics(std::int64_t step, const Metrics& metrics) {
  if (!metrics_) return;
  try {
    metrics_->write(step, metrics);
  } catch (const RunError& failed) {
    if (!std::exchange(warned_of_metrics_, true))
      progress_.warn("there are no metrics of step " + std::to_string(step) + ", and perhaps of later ones: " +
                     failed.text().what + "; training goes on\nfix: " + failed.text().fix);
  }
}

void Trainer::check_trace() const {
  if (trace_) return;
  throw RunError({.code = "trace.cannot-write",
                  .what = "cannot write the trace to '" + options_.trace + "'",
                  .where = "--trace " + options_.trace,
                  .fix = "see that the folder exists and that you may write there"});
}

void Trainer::write_trace() {
  if (!traces() || (options_.trace.empty() && done_.step <= traced_from())) return;
  const double processors = machinery_->session.mesh().size();
  const Machine one = Machine::uniform(machine_.peak() / processors, machine_.bytes_per_second / processors);
  std::string text = machinery_->executable.trace(one, "measured");  // of all processes
  if (!first_process()) return;
  trace_ << text;
  if (options_.keep_trace) done_.trace = std::move(text);
  if (options_.trace.empty()) return;
  trace_.close();
  check_trace();
}

// The steps since the last checkpoint are made again, exactly, with every instruction's results looked at.
void Trainer::not_finite(Checkpoints& checkpoints, std::int64_t step, double loss) {
  try {
    checkpoints.wait();
  } catch (const RunError&) {  // of weights that are no numbers already
  }
  const std::string what = std::string("the loss is ") +
                           (std::isnan(loss) ? "nan"
                            : loss > 0       ? "inf"
                                             : "-inf") +
                           " at step " + std::to_string(step);
  const std::string rounds = rounding_of(machinery_->session);
  begun_.clear();
  scorer_.reset();
  machinery_.reset();
  const std::optional<Checkpoint> from = Checkpoint::latest(config_.out());
  const std::string copy = from ? vocabulary_copy(*from) : "", &vocabulary = config_.data.vocabulary;
  if (!copy.empty() && vocabulary != "bytes" && !std::filesystem::exists(vocabulary))
    config_.data.vocabulary = copy;  // it lay in a checkpoint that has been removed since
  const std::int64_t begin = from ? from->state().step : 0;
  const std::string left = from ? "the last good checkpoint is " + from->path() : "there is no checkpoint yet";
  if (config_.mesh.device == "xla")
    throw RunError({.code = "train.not-finite-on-xla",
                    .what = what + "; the device 'xla' cannot find where it begins",
                    .where = "processors of mesh " + config_.mesh.mesh,
                    .fix = "run again with --device cpu, which finds it; or lower the learning rate, or clip with "
                           "optimizer.clip_norm; " +
                           left});
  progress_.say(what + "; steps " + std::to_string(begin + 1) + " to " + std::to_string(step) +
                " are made again to find where it begins");
  try {
    CompileOptions more;
    more.check_finite = true;
    TrainingSetup again(config_, from, options_.init, more);
    for (std::int64_t s = begin + 1; s <= step; ++s) again.start(config_, s).get();
  } catch (const RunError& error) {
    throw RunError({.code = "train.not-finite",
                    .what = what + ": " + error.text().what,
                    .where = error.text().where.text,
                    .fix = "lower the learning rate, or clip with optimizer.clip_norm; " + left});
  }
  throw RunError(
      {.code = "train.not-finite-unrepeatable",
       .what = what + ", but not when the steps are made again",
       .where = "processors of mesh " + config_.mesh.mesh,
       .fix = (from && !rounds.empty() ? rounds + ", so the steps were not quite the same: lower the learning rate; "
                                       : "suspect the machine's memory; ") +
              left});
}

}  // namespace

Trained train_until(const std::string& fail_at, const Config& config, const TrainOptions& options) {
  const Config whole = completed(config);
  check(whole);
  check_files("data.train", whole.data.train);
  check_files("data.dev", whole.data.dev);
  return Trainer(whole, options, fail_at).run();
}

Trained train(const Config& config, const TrainOptions& options) { return train_until("", config, options); }

}  // namespace weft::train
