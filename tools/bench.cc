// weft bench: measures the speed of the parts on this machine.
#include "weft/detail/bench.h"

#include <iostream>
#include <memory>

#include "options.h"

namespace weft::tools {

namespace {

struct BenchOptions {
  std::string kinds, processors = "2", bytes = "1MiB,16MiB,64MiB";
  int repeats = 11;
  std::string wire;
  bool json = false;
};

void run_collectives(const BenchOptions& o) {
  bench::CollectivesOptions options;
  if (!o.kinds.empty()) options.kinds = split_list(o.kinds);
  options.processors = parse_counts(o.processors, "--processors");
  options.bytes = parse_bytes(o.bytes, "--bytes");
  options.repeats = o.repeats;
  options.wire = wire::named(o.wire).name;
  const std::vector<bench::CollectiveTime> times = bench::collectives(options);
  if (times.empty()) return;  // another rank prints them
  std::cout << (o.json ? bench::json(times) + "\n" : bench::table(times));
}

struct CompileBenchOptions {
  ModelWords model;
  int repeats = 11;
  bool json = false;
};

void run_compile(const CompileBenchOptions& o) {
  const models::Model model = model_of(o.model);
  const bench::CompileTime time =
      bench::compile(model.graph, model.mesh, model.layout, model.options, store_of(o.model), o.repeats);
  std::cout << (o.json ? bench::json(time) + "\n" : bench::table(time));
}

void add_compile(CLI::App& bench, Action& action) {
  CLI::App* sub = bench.add_subcommand("compile", "Time the compiler from the graph to the memory plan, for any mesh");
  const auto o = std::make_shared<CompileBenchOptions>();
  sub->add_option("--config", o->model.name,
                  "A built-in model, or a config: a .toml file, or a name such as paper/lm-4.9b")
      ->required();
  add_model_options(*sub, o->model);
  sub->add_option("--repeats", o->repeats, "Measurements; the median counts")->capture_default_str();
  sub->add_flag("--json", o->json, "One object")->disable_flag_override();
  sub->footer(model_list);
  sub->callback([o, &action] { action = [o] { run_compile(*o); }; });
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the speed of parts of Weft on this machine");
  bench->require_subcommand(1);
  add_bench_lm(*bench, action);
  add_bench_decode(*bench, action);
  add_compile(*bench, action);
  CLI::App* sub = bench->add_subcommand("collectives", "Time the collectives of a wire, in place, in f32");
  const auto o = std::make_shared<BenchOptions>();
  sub->add_option("--kinds", o->kinds, "all_reduce, reduce_scatter, …, separated by commas; default: all");
  sub->add_option("--processors", o->processors, "Numbers of processors, separated by commas")->capture_default_str();
  add_wire_option(*sub, o->wire);
  sub->add_option("--bytes", o->bytes, "Sizes of a processor's buffer")->capture_default_str();
  sub->add_option("--repeats", o->repeats, "Measurements of each; the median counts")->capture_default_str();
  sub->add_flag("--json", o->json, "One array of objects")->disable_flag_override();
  sub->callback([o, &action] { action = [o] { run_collectives(*o); }; });
}

}  // namespace weft::tools
