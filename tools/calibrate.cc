// weft calibrate: measures this machine with the engine's own kernels and writes its description.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "options.h"
#include "probes.h"
#include "weft/attend.h"
#include "weft/detail/bench.h"
#include "weft/detail/progress.h"
#include "weft/explain.h"
#include "weft/ops.h"
#include "weft/session.h"

namespace weft::tools {

namespace {

struct CalibrateOptions {
  std::string out, wire, device = "cpu";
  int passes = 0;  // 0: as many as the device needs
};

constexpr int kRuns = 5;
constexpr int kMeetingRuns = 100;  // the share of the CPUs that a virtual machine gets changes from moment to moment

// What is measured, as large as the device is fast.
struct Probes {
  std::vector<double> sides;          // of products
  std::vector<double> lengths, keys;  // of attention
  double attend_flops = 0;            // of one probe of attention, about
  std::int64_t most_swept = 0;        // elements: more than caches hold
  std::vector<int> groups;            // of collectives: processors
  int passes = 1;                     // each number is the median of the passes: a busy host slows all of a moment
};
const Probes kOfHosts = {.sides = {16, 64, 256, 1024, 2048},
                         .lengths = {64, 256, 1024},
                         .keys = {16, 64},
                         .attend_flops = 2e7,
                         .most_swept = 1 << 24,
                         .groups = {2, 4, 8},
                         .passes = 3};
const Probes kOfCards = {.sides = {64, 256, 1024, 4096},
                         .lengths = {256, 1024, 2048},
                         .keys = {32, 64, 128},
                         .attend_flops = 2e10,
                         .most_swept = 1 << 26,
                         .groups = {2, 4, 8}};
const std::vector<std::size_t> kMoved = {64, 4096, 65536, 1 << 20, 8 << 20, 32 << 20};  // bytes of collectives

std::int64_t whole(double size) { return static_cast<std::int64_t>(size); }
std::string number(double size) { return std::to_string(whole(size)); }

// The cores that this process may use.
int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// The processors of one calibration, and what is measured with them.
class Calibration {
 public:
  Calibration(const ProbePlace& place, const Probes& probes, int cores)
      : place_(place), probes_(probes), cores_(std::max(1, cores / place.mesh.size())) {}

  Rates rates() {
    Rates all;
    all.cores = cores_;
    const double smallest = instruction_seconds(place_, false);
    all.overhead = std::max(smallest, instruction_seconds(place_, true));
    // Of what is divided among workers. A trace waits for each instruction, which a step on a card does not.
    traced_overhead_ = sweep(64).seconds + all.overhead - smallest;
    measure_sweeps(all);
    all.pointwise = pointwise();
    all.hidden = hidden();
    all.random = random();
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      all.products.push_back(products(dtype));
      all.attention.push_back(attention(dtype));
    }
    return all;
  }
  double step_seconds() const { return empty_step_seconds(place_); }

 private:
  std::map<std::string, ProbeTime> timed(const Graph& graph, const CompileOptions& options,
                                         const std::string& kind = {}) const {
    return time_probes(graph, options, place_, kind, kRuns);
  }
  double work_seconds(const ProbeTime& time) const { return std::max(time.seconds - traced_overhead_, 1e-9); }

  // x = x / 2 + 1 in place, again and again on the same bytes: from a few to more than caches hold.
  void measure_sweeps(Rates& rates) const {
    rates.sweep.axes = {{}};
    for (std::int64_t elements = 1 << 12; elements <= probes_.most_swept; elements *= 4) {
      const ProbeTime time = sweep(elements);
      rates.sweep.axes[0].push_back(static_cast<double>(elements * 4));
      rates.sweep.values.push_back(time.bytes / work_seconds(time));
    }
  }
  ProbeTime sweep(std::int64_t elements) const {
    Graph graph;
    const Tensor x = graph.variable("of_sweep", {{"element", elements}});
    const auto scope = graph.scope("sweep");
    return timed(graph, {.update = {assign(x, x * 0.5 + 1.0)}}).at("sweep");
  }

  double pointwise() const {
    Graph graph;
    const Tensor x = graph.variable("of_map", {{"element", probes_.most_swept / 64}});
    const auto scope = graph.scope("map");
    Tensor y = x;
    for (int i = 0; i < 8; ++i) y = tanh(exp(y * 0.5) * 0.25 + 0.125);
    const ProbeTime time = timed(graph, {.update = {assign(x, y)}}).at("map");
    return time.flops / work_seconds(time);
  }

  // A function of an array that caches hold, a sweep over one that they do not, and the function of that one.
  double hidden() const {
    constexpr std::int64_t kCached = 1 << 16;
    const auto each = [&](std::int64_t elements, bool computes) {
      Graph graph;
      const Tensor x = graph.variable("of_both", {{"element", elements}});
      const auto scope = graph.scope("both");
      const Tensor y = computes ? x / (sqrt(x * x + 1.0) + 0.5) : x * 0.5 + 1.0;
      return work_seconds(timed(graph, {.update = {assign(x, y)}}).at("both")) / static_cast<double>(elements);
    };
    const double flops = each(kCached, true), bytes = each(probes_.most_swept, false);
    const double both = each(probes_.most_swept, true);
    return std::clamp(1 - (both - std::max(flops, bytes)) / std::min(flops, bytes), 0.0, 1.0);
  }

  double random() const {
    const std::int64_t draws = probes_.most_swept / 16;
    Graph graph;
    const Tensor x = graph.variable("of_draw", {{"element", draws}});
    const auto scope = graph.scope("draw");
    const Tensor y = random_uniform(graph, {{"element", draws}});
    return static_cast<double>(draws) / work_seconds(timed(graph, {.update = {assign(x, y)}}, "random").at("draw"));
  }

  ProductRates products(DType dtype) const {
    Graph graph;
    std::map<std::string, Tensor> factors;
    const auto factor = [&](const std::string& name, const Shape& shape) {
      if (!factors.contains(name)) factors[name] = graph.variable(name, shape, init::normal(1), {.activation = dtype});
      return factors.at(name);
    };
    Tensors sums;
    ProductRates all{.dtype = dtype, .rate = {{probes_.sides, probes_.sides, probes_.sides}, {}}};
    std::vector<std::string> names;
    for (const double m : probes_.sides)
      for (const double n : probes_.sides)
        for (const double k : probes_.sides) {
          const Dim rows{"m", whole(m)}, columns{"n", whole(n)}, summed{"k", whole(k)};
          const Tensor x = factor("x" + number(m) + "_" + number(k), {rows, summed});
          const Tensor y = factor("y" + number(k) + "_" + number(n), {summed, columns});
          names.push_back("p" + number(m) + "_" + number(n) + "_" + number(k));
          const auto scope = graph.scope(names.back());
          sums.push_back(reduce_sum(cast(einsum({x, y}, {rows, columns}), DType::kF32)));
        }
    const auto times = timed(graph, {.fetch = sums}, "contract");
    for (const std::string& name : names)
      all.rate.values.push_back(times.at(name).flops / work_seconds(times.at(name)));
    return all;
  }

  AttendRates attention(DType dtype) const {
    AttendRates all{.dtype = dtype,
                    .forward = {{probes_.lengths, probes_.keys}, {}},
                    .backward = {{probes_.lengths, probes_.keys}, {}}};
    for (const double length : probes_.lengths)
      for (const double key : probes_.keys) {
        Graph graph;
        const std::int64_t heads = std::max<std::int64_t>(4, whole(probes_.attend_flops / (length * length * key * 2)));
        const Dim head{"heads", heads}, query{"length", whole(length)}, memory{"memory", whole(length)},
            depth{"key", whole(key)};
        const auto operand = [&](const char* name, const Dim& along) {
          return graph.variable(name, {head, along, depth}, init::normal(1), {.activation = dtype});
        };
        const Tensor q = operand("q", query), k = operand("k", memory), v = operand("v", memory);
        const Tensor loss = reduce_sum(cast(attend(q, k, v, memory, depth, {.causal = true}), DType::kF32));
        Tensors fetch = {loss};
        for (const Tensor& d : gradients({loss}, {q, k, v})) fetch.push_back(reduce_sum(d));
        const auto rate = [&](const std::string& kind) {
          const ProbeTime time = timed(graph, {.fetch = fetch}, kind).begin()->second;
          return time.flops / work_seconds(time);
        };
        all.forward.values.push_back(rate("attend"));
        all.backward.values.push_back(rate("attend_back"));
      }
    return all;
  }

  ProbePlace place_;
  const Probes& probes_;
  int cores_;
  double traced_overhead_ = 0;
};

ProbePlace place_of(int processors, const CalibrateOptions& o) {
  const std::string mesh = processors == 1 ? "" : "all:" + std::to_string(processors);
  return {Mesh::parse(mesh), wire::named(o.wire), {o.device}};
}

// In a program the members of a group do not come at once, as they do where collectives are timed by themselves: the
// share of their work by which the slowest is late. With more processors than cores the time in which the others compute
// is theirs, not the collective's, so as many as cores are timed. Only the first process has times.
double measured_skew(const std::vector<CollectiveTimes>& times, const CalibrateOptions& o) {
  const ProbePlace place = place_of(std::max(2, cores()), o);
  const MeetingTime meeting = meeting_time(place, kMeetingRuns);
  if (wire::process() != 0) return 0;
  const double sizes[2] = {static_cast<double>(place.mesh.size()), static_cast<double>(kMeetingBytes)};
  return std::clamp((meeting.collective - times[0].seconds.at(sizes)) / meeting.work, 0.0, 1.0);
}

CollectiveTimes no_times(const std::string& kind) {
  CollectiveTimes one{kind, {{{}, {}}, {}}};
  for (const std::size_t size : kMoved) one.seconds.axes[1].push_back(static_cast<double>(size));
  return one;
}

// Between the processors' own threads or processes.
std::vector<CollectiveTimes> measure_collectives(const std::vector<int>& processors, const CalibrateOptions& o) {
  const bench::CollectivesOptions all;
  std::vector<CollectiveTimes> times;
  for (const std::string& kind : all.kinds) {
    CollectiveTimes one = no_times(kind);
    for (const int group : processors) {
      one.seconds.axes[0].push_back(group);
      const bench::CollectivesOptions options{
          .kinds = {kind}, .processors = {group}, .bytes = kMoved, .repeats = 5, .wire = wire::named(o.wire).name};
      for (const bench::CollectiveTime& time : bench::collectives(options))
        one.seconds.values.push_back(time.median_seconds);
    }
    times.push_back(std::move(one));
  }
  return times;
}

// Of processors that share a card: instructions that copy and add.
std::vector<CollectiveTimes> measure_copies(const std::vector<int>& processors, const CalibrateOptions& o,
                                            double overhead) {
  std::map<std::string, CollectiveTimes> by_kind;
  for (const int group : processors) {
    const ProbePlace place = place_of(group, o);
    const double traced_overhead = collective_seconds(place, 64 * group, kRuns).at("all_reduce");
    for (const std::size_t size : kMoved) {
      const auto bytes = std::max(static_cast<std::int64_t>(size), std::int64_t{64} * group);
      for (const auto& [kind, seconds] : collective_seconds(place, bytes, kRuns)) {
        CollectiveTimes& one = by_kind.try_emplace(kind, no_times(kind)).first->second;
        one.seconds.values.push_back(overhead + std::max(0.0, seconds - traced_overhead));
      }
    }
    for (auto& [kind, one] : by_kind) one.seconds.axes[0].push_back(group);
  }
  std::vector<CollectiveTimes> times;
  for (auto& [kind, one] : by_kind) times.push_back(std::move(one));
  return times;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file)
    throw RunError({.code = "calibrate.cannot-write",
                    .what = "cannot write the description to '" + path + "'",
                    .where = "--out " + path,
                    .fix = "see that the folder exists and that you may write there"});
}

// All measured numbers, in the same order for each pass.
std::vector<double*> numbers_of(Machine& machine) {
  std::vector<double*> all = {&machine.bytes_per_second, &machine.step_seconds, &machine.skew,
                              &machine.peaks[DType::kF32]};
  const auto take = [&](Table& table) {
    for (double& value : table.values) all.push_back(&value);
  };
  for (Rates& rates : machine.rates) {
    for (double* number : {&rates.overhead, &rates.pointwise, &rates.hidden, &rates.random}) all.push_back(number);
    take(rates.sweep);
    for (ProductRates& one : rates.products) take(one.rate);
    for (AttendRates& one : rates.attention) take(one.forward), take(one.backward);
  }
  for (CollectiveTimes& one : machine.collectives) take(one.seconds);
  return all;
}

// The median of each number.
Machine merged(std::vector<Machine> passes) {
  std::vector<std::vector<double*>> numbers;
  for (Machine& pass : passes) numbers.push_back(numbers_of(pass));
  for (std::size_t i = 0; i < numbers[0].size(); ++i) {
    std::vector<double> same;
    for (const std::vector<double*>& pass : numbers) same.push_back(*pass[i]);
    std::nth_element(same.begin(), same.begin() + static_cast<std::ptrdiff_t>(same.size() / 2), same.end());
    *numbers[0][i] = same[same.size() / 2];
  }
  return passes[0];
}

constexpr int kParts = 3;                              // of a pass
using Show = std::function<void(const std::string&)>;  // is told what is measured next, kParts times

Machine measured_host(const CalibrateOptions& o, const Show& show) {
  const bool is_threads = wire::named(o.wire).name == wire::threads().name;
  Machine machine = measure_machine({o.device}, cores(), 1);
  machine.processors = 64;
  machine.cores = cores();
  machine.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  machine.overlaps = false;  // the processors' own cores move the bytes
  show("kernels of one core");
  Calibration many(place_of(cores(), o), kOfHosts, cores());
  machine.rates = {many.rates()};
  machine.step_seconds = many.step_seconds();
  show("kernels of all cores");
  if (is_threads && cores() > 1) machine.rates.push_back(Calibration(place_of(1, o), kOfHosts, cores()).rates());
  show("collectives");
  machine.collectives = measure_collectives(is_threads ? kOfHosts.groups : std::vector<int>{std::max(2, cores())}, o);
  machine.skew = measured_skew(machine.collectives, o);
  return machine;
}

// One card, which all processors of a mesh share.
Machine measured_card(const CalibrateOptions& o, const Show& show) {
  Machine machine = measure_machine({o.device}, 1, 1);
  machine.processors = 64;
  machine.cores = 1;
  machine.overlaps = false;
  show("the step and its kernels");
  Calibration one(place_of(1, o), kOfCards, 1);
  machine.rates = {one.rates()};
  machine.step_seconds = one.step_seconds();
  show("collectives");
  machine.collectives = measure_copies(kOfCards.groups, o, machine.rates[0].overhead);
  show("done");
  return machine;
}

// Rates are measured instruction by instruction.
void check_device(const CalibrateOptions& o) {
  if (o.device != device::xla().name) return;
  throw UserError({.code = "calibrate.no-instructions",
                   .what = "the device 'xla' compiles whole programs, so its instructions cannot be timed",
                   .where = "--device " + o.device,
                   .fix = "calibrate the device cpu or cuda"});
}

void run_calibrate(const CalibrateOptions& o) {
  check_device(o);
  const auto begin = std::chrono::steady_clock::now();
  const bool is_card = o.device == device::cuda().name;
  const int passes = o.passes > 0 ? o.passes : (is_card ? kOfCards : kOfHosts).passes;
  wire::named(o.wire);                         // before the file is touched
  if (wire::process() == 0) write(o.out, "");  // before minutes of work
  ProgressLine progress(wire::process() == 0, 5);
  std::vector<Machine> all;
  int done = 0;
  for (int pass = 0; pass < passes; ++pass)
    all.push_back((is_card ? measured_card : measured_host)(o, [&](const std::string& what) {
      progress.draw(static_cast<double>(done++) / (passes * kParts),
                    {{"pass " + std::to_string(pass + 1) + " of " + std::to_string(passes)}, {what, 1}});
    }));
  progress.clear();
  if (wire::process() != 0) return;
  write(o.out, merged(std::move(all)).text());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << "wrote " << o.out << " after " << duration_text(seconds) << "\n";
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("calibrate", "Measure this machine and write its description");
  const auto o = std::make_shared<CalibrateOptions>();
  sub->add_option("--out", o->out, "The file to write: docs/machines.md")->required();
  add_wire_option(*sub, o->wire);
  sub->add_option("--device", o->device, "The device whose kernels are measured: see weft doctor")
      ->capture_default_str();
  sub->add_option("--passes", o->passes,
                  "How often everything is measured; the description has medians. Default: 3, on a card 1")
      ->check(CLI::Range(1, 100));
  sub->callback([o, &action] { action = [o] { run_calibrate(*o); }; });
}

}  // namespace weft::tools
