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
  std::string out, wire;
};

const std::vector<double> kSides = {16, 64, 256, 1024, 2048};  // of products
const std::vector<double> kLengths = {64, 256, 1024}, kKeys = {16, 64};
constexpr int kRuns = 5;
constexpr double kAttendFlops = 2e7;  // of one probe of attention, about

std::int64_t whole(double size) { return static_cast<std::int64_t>(size); }
std::string number(double size) { return std::to_string(whole(size)); }

// The cores that this process may use.
int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// The processors of one calibration, and what is measured with them.
class Calibration {
 public:
  Calibration(int processors, const wire::Choice& wire)
      : mesh_(Mesh::parse(processors == 1 ? "" : "all:" + std::to_string(processors))), wire_(wire) {}

  Rates rates() {
    Rates all;
    all.cores = std::max(1, cores() / mesh_.size());
    measure_sweeps(all);
    all.pointwise = pointwise(all.overhead);
    all.random = random();
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      all.products.push_back(products(dtype));
      all.attention.push_back(attention(dtype));
    }
    return all;
  }
  double step_seconds() const { return empty_step_seconds(mesh_, wire_); }

 private:
  std::map<std::string, ProbeTime> timed(const Graph& graph, const CompileOptions& options,
                                         const std::string& kind = {}) const {
    return time_probes(graph, options, mesh_, wire_, kind, kRuns);
  }

  // x = x / 2 + 1 in place, again and again on the same bytes: from a few to more than caches hold.
  void measure_sweeps(Rates& rates) const {
    rates.overhead = sweep(64).seconds;
    rates.sweep.axes = {{}};
    for (std::int64_t elements = 1 << 12; elements <= (1 << 24); elements *= 4) {
      const ProbeTime time = sweep(elements);
      rates.sweep.axes[0].push_back(static_cast<double>(elements * 4));
      rates.sweep.values.push_back(time.bytes / std::max(time.seconds - rates.overhead, 1e-9));
    }
  }
  ProbeTime sweep(std::int64_t elements) const {
    Graph graph;
    const Tensor x = graph.variable("of_sweep", {{"element", elements}});
    const auto scope = graph.scope("sweep");
    return timed(graph, {.update = {assign(x, x * 0.5 + 1.0)}}).at("sweep");
  }

  double pointwise(double overhead) const {
    Graph graph;
    const Tensor x = graph.variable("of_map", {{"element", 1 << 18}});
    const auto scope = graph.scope("map");
    Tensor y = x;
    for (int i = 0; i < 8; ++i) y = tanh(exp(y * 0.5) * 0.25 + 0.125);
    const ProbeTime time = timed(graph, {.update = {assign(x, y)}}).at("map");
    return time.flops / (time.seconds - overhead);
  }

  double random() const {
    constexpr std::int64_t kDraws = 1 << 20;
    Graph graph;
    const Tensor x = graph.variable("of_draw", {{"element", kDraws}});
    const auto scope = graph.scope("draw");
    const Tensor y = random_uniform(graph, {{"element", kDraws}});
    return static_cast<double>(kDraws) / timed(graph, {.update = {assign(x, y)}}, "random").at("draw").seconds;
  }

  ProductRates products(DType dtype) const {
    Graph graph;
    std::map<std::string, Tensor> factors;
    const auto factor = [&](const std::string& name, const Shape& shape) {
      if (!factors.contains(name)) factors[name] = graph.variable(name, shape, init::normal(1), {.activation = dtype});
      return factors.at(name);
    };
    Tensors sums;
    ProductRates all{.dtype = dtype, .rate = {{kSides, kSides, kSides}, {}}};
    std::vector<std::string> names;
    for (const double m : kSides)
      for (const double n : kSides)
        for (const double k : kSides) {
          const Dim rows{"m", whole(m)}, columns{"n", whole(n)}, summed{"k", whole(k)};
          const Tensor x = factor("x" + number(m) + "_" + number(k), {rows, summed});
          const Tensor y = factor("y" + number(k) + "_" + number(n), {summed, columns});
          names.push_back("p" + number(m) + "_" + number(n) + "_" + number(k));
          const auto scope = graph.scope(names.back());
          sums.push_back(reduce_sum(cast(einsum({x, y}, {rows, columns}), DType::kF32)));
        }
    const auto times = timed(graph, {.fetch = sums}, "contract");
    for (const std::string& name : names) all.rate.values.push_back(times.at(name).flops / times.at(name).seconds);
    return all;
  }

  AttendRates attention(DType dtype) const {
    AttendRates all{.dtype = dtype, .forward = {{kLengths, kKeys}, {}}, .backward = {{kLengths, kKeys}, {}}};
    for (const double length : kLengths)
      for (const double key : kKeys) {
        Graph graph;
        const std::int64_t heads = std::max<std::int64_t>(4, whole(kAttendFlops / (length * length * key * 2)));
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
          return time.flops / time.seconds;
        };
        all.forward.values.push_back(rate("attend"));
        all.backward.values.push_back(rate("attend_back"));
      }
    return all;
  }

  Mesh mesh_;
  wire::Choice wire_;
};

// In a program the members of a group do not come at once, as they do where collectives are timed by themselves. With more
// processors than cores the time in which the others compute is theirs, not the collective's: as many as cores are timed.
// Only the first process has times.
void add_waits(std::vector<CollectiveTimes>& times, const std::string& wire) {
  const Mesh mesh = Mesh::parse("all:" + std::to_string(std::max(2, cores())));
  const double together = meeting_seconds(mesh, wire::named(wire), 3 * kRuns);
  if (wire::process() != 0) return;
  const double sizes[2] = {static_cast<double>(mesh.size()), static_cast<double>(kMeetingBytes)};
  const double wait = std::max(0.0, together - times[0].seconds.at(sizes));
  for (CollectiveTimes& one : times)
    for (double& seconds : one.seconds.values) seconds += wait;
}

std::vector<CollectiveTimes> measure_collectives(const std::vector<int>& processors, const std::string& wire) {
  const bench::CollectivesOptions all;
  const std::vector<std::size_t> bytes = {64, 4096, 65536, 1 << 20, 8 << 20, 32 << 20};
  std::vector<CollectiveTimes> times;
  for (const std::string& kind : all.kinds) {
    CollectiveTimes one{kind, {{{}, {}}, {}}};
    for (const std::size_t size : bytes) one.seconds.axes[1].push_back(static_cast<double>(size));
    for (const int group : processors) {
      one.seconds.axes[0].push_back(group);
      const bench::CollectivesOptions options{
          .kinds = {kind}, .processors = {group}, .bytes = bytes, .repeats = 5, .wire = wire};
      for (const bench::CollectiveTime& time : bench::collectives(options))
        one.seconds.values.push_back(time.median_seconds);
    }
    times.push_back(std::move(one));
  }
  add_waits(times, wire);
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
  std::vector<double*> all = {&machine.bytes_per_second, &machine.step_seconds, &machine.peaks[DType::kF32]};
  const auto take = [&](Table& table) {
    for (double& value : table.values) all.push_back(&value);
  };
  for (Rates& rates : machine.rates) {
    for (double* number : {&rates.overhead, &rates.pointwise, &rates.random}) all.push_back(number);
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

constexpr int kParts = 3;  // of a pass
// `show` is told what is measured next, kParts times.
Machine measured(const wire::Choice& wire, const std::function<void(const std::string&)>& show) {
  const bool is_threads = wire.name == wire::threads().name;
  Machine machine = measure_machine(device::cpu(), cores(), 1);
  machine.processors = 64;
  machine.cores = cores();
  machine.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  machine.overlaps = false;  // the processors' own cores move the bytes
  show("kernels of one core");
  Calibration many(cores(), wire);
  machine.rates = {many.rates()};
  machine.step_seconds = many.step_seconds();
  show("kernels of all cores");
  if (is_threads && cores() > 1) machine.rates.push_back(Calibration(1, wire).rates());
  show("collectives");
  machine.collectives =
      measure_collectives(is_threads ? std::vector<int>{2, 4, 8} : std::vector<int>{std::max(2, cores())}, wire.name);
  return machine;
}

void run_calibrate(const CalibrateOptions& o) {
  constexpr int kPasses = 3;  // a busy host slows all that is measured in a moment: each number is measured at three
  const auto begin = std::chrono::steady_clock::now();
  const wire::Choice wire = wire::named(o.wire);
  if (wire::process() == 0) write(o.out, "");  // before minutes of work
  ProgressLine progress(wire::process() == 0, 5);
  std::vector<Machine> passes;
  int done = 0;
  for (int pass = 0; pass < kPasses; ++pass)
    passes.push_back(measured(wire, [&](const std::string& what) {
      progress.draw(static_cast<double>(done++) / (kPasses * kParts),
                    {{"pass " + std::to_string(pass + 1) + " of " + std::to_string(kPasses)}, {what, 1}});
    }));
  progress.clear();
  if (wire::process() != 0) return;
  write(o.out, merged(std::move(passes)).text());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << "wrote " << o.out << " after " << duration_text(seconds) << "\n";
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("calibrate", "Measure this machine and write its description");
  const auto o = std::make_shared<CalibrateOptions>();
  sub->add_option("--out", o->out, "The file to write: docs/machines.md")->required();
  add_wire_option(*sub, o->wire);
  sub->callback([o, &action] { action = [o] { run_calibrate(*o); }; });
}

}  // namespace weft::tools
