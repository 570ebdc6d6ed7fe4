// weft bench lm: trains a decoder-only language model with given initial weights on a fixed batch, and times it.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>

#include "lm_report.h"
#include "lm_weights.h"
#include "options.h"
#include "product_roof.h"
#include "report_file.h"
#include "weft/detail/session_access.h"
#include "weft/explain.h"
#include "weft/optim.h"
#include "weft/simulate.h"
#include "weft/detail/progress.h"
#include "weft/detail/words.h"

namespace weft::tools {

namespace {

struct LmOptions {
  std::string config = "small", dtype, optimizer = "adam", wire, device = "cpu", plugin;
  std::string mesh, layout;
  std::vector<std::string> set;
  StoreWords store;
  std::optional<double> rate, load;
  int steps = 20, warmup = 3, workers = 0, loss_chunks = 1, microbatches = 1;
  std::optional<std::string> trace, machine;
  ReportPath report;
  bool roofs = false, json = false, nondeterministic = false;

  bool is_card() const { return device == device::cuda().name; }
  double load_seconds() const { return load.value_or(is_card() ? 1 : 0); }
};

// UserError, with the list of known words, if the word is not one of them.
void check_word(const std::string& word, const std::vector<std::string>& known, const std::string& option,
                const std::string& kind) {
  std::string list;
  for (const std::string& k : known) {
    if (k == word) return;
    list += (list.empty() ? "" : ", ") + k;
  }
  const std::string near = nearest_word(word, known);
  throw UserError({.code = "bench.unknown-choice",
                   .what = "bench lm has no " + kind + " '" + word + "'",
                   .where = option + " " + word,
                   .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") + "it has: " + list});
}

void check_range(double number, double least, double most, const std::string& option) {
  if (number >= least && number <= most) return;
  const auto text = [](double x) { return (std::ostringstream() << x).str(); };
  throw UserError({.code = "bench.bad-number",
                   .what = option + " of bench lm cannot be " + text(number),
                   .where = "command line",
                   .fix = "give a number from " + text(least) + " to " + text(most)});
}

std::string lower(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

void check(const LmOptions& o) {
  check_word(o.config, models::language_model_configs(), "--config", "config");
  if (!o.dtype.empty()) check_word(o.dtype, {"f32", "bf16"}, "--dtype", "dtype");
  check_word(o.optimizer, {"adam", "adafactor"}, "--optimizer", "optimizer");
  check_range(o.steps, 1, 1e6, "--steps");
  check_range(o.warmup, 0, 1e6, "--warmup");
  check_range(o.workers, 0, 1024, "--workers");
  check_range(o.loss_chunks, 1, 1e6, "--loss-chunks");
  check_range(o.microbatches, 1, 1e6, "--microbatches");
  if (o.rate) check_range(*o.rate, 0, 1e3, "--lr");
  if (o.load) check_range(*o.load, 0, 3600, "--load");
}

models::Sizes sizes_of(const LmOptions& o) {
  std::string text;
  for (const std::string& word : o.set) text += (text.empty() ? "" : ",") + word;
  return models::complete_sizes("lm/" + o.config, text.empty() ? models::Sizes{} : models::parse_sizes(text));
}

// CPU seconds of all threads of this process so far.
double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Seconds since this process was started, to a hundredth, including the time before main.
double process_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));  // the name may contain spaces
  std::string word;
  for (int i = 3; i < 22; ++i) fields >> word;
  double started = 0;  // field 22, in ticks after boot
  timespec boot{};
  if (!(fields >> started) || clock_gettime(CLOCK_BOOTTIME, &boot) != 0) return 0;
  return static_cast<double>(boot.tv_sec) + static_cast<double>(boot.tv_nsec) * 1e-9 -
         started / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::vector<LinePart> progress_parts(int done, int all, double loss, double seconds) {
  std::ostringstream numbers;
  numbers << "loss " << loss;
  return {
      {"step " + std::to_string(done) + " of " + std::to_string(all)}, {numbers.str(), 1}, {seconds_text(seconds), 2}};
}

std::unique_ptr<optim::Optimizer> optimizer_of(const LmOptions& o, const models::LanguageModelDesign& design,
                                               const models::LanguageModel& lm) {
  const Site here = Site::current();
  if (o.optimizer == "adafactor")
    return std::make_unique<optim::Adafactor>(lm.loss, lm.graph.variables(), optim::AdafactorOptions{}, here);
  return std::make_unique<optim::Adam>(lm.loss, lm.graph.variables(), design.adam, here);
}

double rate_of(const LmOptions& o, const optim::Optimizer& optimizer, double rate, std::int64_t step) {
  if (o.rate) return *o.rate;
  const auto* adafactor = dynamic_cast<const optim::Adafactor*>(&optimizer);
  return adafactor ? adafactor->default_rate(step) : rate;
}

// Step s + 1 starts before the host reads step s; but the first step ends alone, because it ends the set-up. The time of a
// step is from the end of the step before to its own end.
class Training {
 public:
  Training(const LmOptions& o, double rate, const models::LanguageModel& lm, const optim::Optimizer& optimizer,
           Executable& step, double session_begin)
      : o_(o), rate_(rate), lm_(lm), optimizer_(optimizer), step_(step), session_begin_(session_begin) {}

  void run(const Session& session, const Feeds& batch, LmReport& report) {
    ProgressLine progress(wire::process() == 0, 0);
    const double begin = now();
    double end = begin, cpu_begin = 0;
    int first = -1;  // the first timed step; -1 before it is known
    std::optional<PendingRun> next;
    for (int s = 0; first < 0 || s < first + o_.steps; ++s) {
      if (first < 0 && s >= o_.warmup && is_loaded(session, now() - begin)) {
        first = s;
        cpu_begin = cpu_seconds();
      }
      PendingRun pending = next ? std::move(*next) : start(s, batch);
      next.reset();
      if (s > 0 && (first < 0 || s + 1 < first + o_.steps)) next = start(s + 1, batch);
      const double loss = pending.get().scalar(lm_.loss);
      const double seconds = now() - end;
      end += seconds;
      if (s == 0) report.setup_s = process_seconds(), report.first_loss_s = end - session_begin_;
      if (first >= 0) report.seconds.push_back(seconds);
      report.losses.push_back(loss);
      const int all = (first < 0 ? s + 1 : first) + o_.steps;
      progress.draw(static_cast<double>(s + 1) / all, progress_parts(s + 1, all, loss, seconds));
    }
    report.cpu_s = cpu_seconds() - cpu_begin;
  }

 private:
  PendingRun start(int s, const Feeds& batch) {
    Feeds feeds = optimizer_.feeds(s + 1, rate_of(o_, optimizer_, rate_, s + 1));
    feeds.insert(feeds.end(), batch.begin(), batch.end());
    return step_.start(feeds);
  }

  bool is_loaded(const Session& session, double seconds) const {
    return o_.load_seconds() == 0 || detail::any(session, seconds >= o_.load_seconds());
  }

  const LmOptions& o_;
  const double rate_;
  const models::LanguageModel& lm_;
  const optim::Optimizer& optimizer_;
  Executable& step_;
  const double session_begin_;
};

// Of one processor: the median of several rounds, on a card under load.
double measured_roof(const LmOptions& o) {
  constexpr int kRounds = 5;
  ProductRoofOptions product{.dtype = o.dtype == "bf16" ? DType::kBF16 : DType::kF32, .rounds = kRounds};
  if (o.is_card()) product = {.dtype = product.dtype, .side = 8192, .chain = 10, .rounds = kRounds, .load_seconds = 1};
  return product_rates({o.device, o.plugin}, o.workers, product)[kRounds / 2];
}

constexpr int kTracedSteps = 20;

// --trace and --report: their files are tried before the run, so that a long run is not lost if they cannot be written.
class TraceFiles {
 public:
  TraceFiles(const LmOptions& o, int processors) : o_(o) {
    if (!wanted(o)) return;
    check_report(o.report);
    if (o.trace && wire::process() == 0) file_.open(*o.trace, std::ios::binary);
    check();
    if (o.machine) {
      machine_ = Machine::load(*o.machine);
      return;
    }
    machine_ = measure_machine({o.device, o.plugin}, processors, o.workers);
    peaks_ = "measured";
  }

  static bool wanted(const LmOptions& o) { return o.trace || o.report; }

  // All processes call. `compiled` makes the explanation of the step, on this machine.
  void write(const Executable& step, double seconds, const std::function<Explanation(const Machine&)>& compiled) {
    if (!wanted(o_)) return;
    const std::string text = step.trace(machine_, peaks_);  // of all processes
    if (wire::process() != 0) return;
    file_ << text;
    file_.close();
    if (o_.trace) check();
    if (!o_.report) return;
    const Machine machine = o_.machine ? machine_ : host_machine({o_.device, o_.plugin}, Mesh::parse(o_.mesh).size());
    StepReport report{
        .title = "bench lm " + o_.config + ", " + o_.dtype, .compiled = compiled(machine), .predicted = {}};
    report.predicted = simulate(report.compiled.program(), machine, o_.device);
    report.measured = {.seconds = seconds, .device = o_.device, .trace = text};
    report.write(*o_.report);
  }

 private:
  void check() const {
    if (file_) return;
    throw RunError({.code = "bench.cannot-write-trace",
                    .what = "cannot write the trace to '" + *o_.trace + "'",
                    .where = "--trace " + *o_.trace,
                    .fix = "see that the folder exists and that you may write there"});
  }

  const LmOptions& o_;
  std::ofstream file_;
  Machine machine_;
  std::string peaks_ = "given";
};

void run_lm(LmOptions o) {
  o.config = lower(o.config);
  check(o);
  const models::Sizes sizes = sizes_of(o);
  const models::LanguageModelDesign design = models::language_model_design(o.config, sizes);
  if (o.dtype.empty()) o.dtype = name_of(design.activations);
  const Mesh mesh = Mesh::parse(o.mesh);
  const Layout layout = Layout::parse(o.layout);
  const Store store = store_of(o.store);
  const models::LanguageModel lm =
      models::language_model(sizes, {.design = design,
                                     .activations = o.dtype == "bf16" ? DType::kBF16 : DType::kF32,
                                     .init = init::zeros(),
                                     .loss_chunks = o.loss_chunks,
                                     .microbatches = o.microbatches});
  const std::unique_ptr<optim::Optimizer> optimizer = optimizer_of(o, design, lm);
  const CompileOptions compile{
      .fetch = {lm.loss},
      .update = optimizer->updates(),
      .trace = {.first = o.warmup, .steps = TraceFiles::wanted(o) ? std::min(o.steps, kTracedSteps) : 0}};
  TraceFiles trace(o, mesh.size());
  const wire::Choice joined_by = wire::named(o.wire);
  const double product_flops = o.roofs || o.is_card() ? measured_roof(o) : 0;
  const double begin = now();
  Session session(mesh, joined_by, {o.device, o.plugin, {}, o.nondeterministic},
                  {.workers = o.workers, .store = store});
  LmReport report{.config = o.config,
                  .mesh = mesh.text(),
                  .layout = o.layout,
                  .store = store.text(),
                  .wire = joined_by.name,
                  .device = o.device,
                  .dtype = o.dtype,
                  .optimizer = o.optimizer,
                  .nondeterministic = o.nondeterministic,
                  .store_level = store.level(),
                  .processors = mesh.size(),
                  .sizes = sizes};
  Executable step = session.compile(lm.graph, layout, compile);
  report.plan_s = step.plan_seconds();
  report.bind_s = step.bind_seconds();
  report.planned = step.memory();
  if (o.machine) {
    const Simulation predicted = simulate(step.text(), Machine::load(*o.machine), o.device);
    report.predicted_s = predicted.seconds;
    report.predicted_bytes = predicted.variable_bytes + predicted.arena_bytes;
  }
  report.product_flops = product_flops;
  const double weights_begin = now();
  set_lm_weights(session, sizes, design);
  report.weights_s = now() - weights_begin;
  Training(o, design.rate, lm, *optimizer, step, begin).run(session, lm_batch(lm, sizes), report);
  report.peak_bytes = detail::peak_resident_bytes(session);
  const auto explained = [&](const Machine& machine) {
    return explain(lm.graph, mesh, layout, compile, machine, store,
                   {o.device, o.plugin, {}, o.nondeterministic, wire::named(o.wire).name == wire::nccl().name});
  };
  trace.write(step, report.step_seconds(), explained);
  if (wire::process() != 0) return;  // the first process prints
  if (mesh.size() > 1) report.work_ratio = explained(measure_machine()).work_ratio;
  std::cout << (o.json ? report.json() + "\n" : report.table());
}

std::string config_list() {
  std::string text = "Configs, with the sizes that --set changes:\n";
  for (const std::string& config : models::language_model_configs()) {
    const models::Sizes sizes = models::default_sizes("lm/" + config);
    const models::LanguageModelDesign design = models::language_model_design(config, sizes);
    std::ostringstream line;
    line << "  " << config << ":";
    for (const auto& [dim, size] : sizes) line << " " << dim << "=" << size;
    line << "; " << name_of(design.activations) << "; Adam's rate " << design.rate << "\n";
    text += line.str();
  }
  return text + "`weft explain lm/small --mesh … --layout …` shows the program. docs/bench.md explains the numbers.\n";
}

}  // namespace

void add_bench_lm(CLI::App& bench, Action& action) {
  CLI::App* sub = bench.add_subcommand(
      "lm", "Train a language model with fixed initial weights on a fixed batch and time its steps");
  const auto o = std::make_shared<LmOptions>();
  sub->add_option("--config", o->config, "A config of the list below, in any case")->capture_default_str();
  sub->add_option("--set", o->set, "dim=size[,dim=size…]: other sizes; may be repeated")->allow_extra_args(false);
  sub->add_option("--optimizer", o->optimizer, "adam or adafactor")->capture_default_str();
  sub->add_option("--lr", o->rate, "Learning rate; default: the config's for adam, the usual rate for adafactor");
  sub->add_option("--mesh", o->mesh, "The processors, as in \"data:2 model:4\"; default: one");
  sub->add_option(
      "--layout", o->layout,
      "The layout: dims and the axes that split them, as in \"batch:data heads,d_ff,vocab:model\"; default: none");
  add_store_options(*sub, o->store);
  sub->add_option("--dtype", o->dtype, "f32, or bf16: activations; weights stay f32. Default: the config's");
  add_wire_option(*sub, o->wire);
  sub->add_option("--device", o->device, "The device that computes: see weft doctor")->capture_default_str();
  sub->add_option("--plugin", o->plugin, "Of device xla: the PJRT plugin's shared library; see docs/xla.md");
  sub->add_flag("--nondeterministic", o->nondeterministic,
                "Of device cuda: faster sums, whose roundings differ from run to run")
      ->disable_flag_override();
  sub->add_option("--steps", o->steps, "Timed steps; the median counts")->capture_default_str();
  sub->add_option("--warmup", o->warmup, "Untimed steps before them")->capture_default_str();
  sub->add_option("--loss-chunks", o->loss_chunks, "Number of parts of the batch; logits exist for one part at a time")
      ->capture_default_str();
  sub->add_option("--microbatches", o->microbatches, "Parts of the batch whose gradients are added, one after another")
      ->capture_default_str();
  sub->add_option("--workers", o->workers, "Threads of each processor; 0: the cores over the processors")
      ->capture_default_str();
  sub->add_option("--trace", o->trace, "Write the time of each instruction to this file: see weft trace-summary");
  sub->add_option("--machine", o->machine,
                  "A machine by its name or description, for a predicted step and the trace's roofs: docs/machines.md");
  add_report_option(*sub, o->report, "the step, predicted and measured,");
  sub->add_option("--load", o->load,
                  "Least seconds of untimed steps; default: 1 on device cuda, else 0. A trace begins after --warmup");
  sub->add_flag("--roofs", o->roofs, "Measure a large product first, and compare; always on device cuda")
      ->disable_flag_override();
  sub->add_flag("--json", o->json, "One object on one line, see docs/bench.md")->disable_flag_override();
  sub->footer(config_list);
  sub->callback([o, &action] { action = [o] { run_lm(*o); }; });
}

}  // namespace weft::tools
