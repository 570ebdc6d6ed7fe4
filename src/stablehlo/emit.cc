#include "stablehlo/emit.h"

#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"
#include "weft/error.h"

namespace weft::stablehlo {

namespace {

std::vector<Argument> arguments_of(const Program& program) {
  std::vector<Argument> all;
  const auto add = [&](const std::string& name, ValueId id, Argument::Role role) {
    const Value& v = program.values[id];
    all.push_back({name, id, role, v.shape, v.dtype});
  };
  for (const ProgramInput& input : program.inputs) add(input.name, input.value, Argument::Role::kInput);
  for (const ProgramVariable& variable : program.variables)
    add(variable.name, variable.value, Argument::Role::kVariable);
  all.push_back({"seed", ValueId(), Argument::Role::kSeed, {{"word", 2}}, DType::kU32});
  all.push_back({"step", ValueId(), Argument::Role::kStep, {}, DType::kU32});
  return all;
}

// Of outputs and updates. An updated variable's argument is donated to its result.
std::vector<Result> results_of(const Program& program, std::vector<Argument>& arguments) {
  std::vector<Result> all;
  const auto add = [&](const std::string& name, ValueId id, Result::Role role) {
    const Value& v = program.values[id];
    all.push_back({name, id, role, v.shape, v.dtype});
  };
  for (const ProgramOutput& output : program.outputs) add(output.name, output.value, Result::Role::kFetched);
  for (std::size_t i = 0; i < program.variables.size(); ++i) {
    const ProgramVariable& variable = program.variables[i];
    if (!variable.update) continue;
    arguments[program.inputs.size() + i].donated_to = static_cast<int>(all.size());
    add(variable.name, *variable.update, Result::Role::kVariable);
  }
  return all;
}

// Everything inside is manual: the module has its own collectives.
constexpr const char* kManual = "mhlo.sharding = \"{manual}\"";

std::string head_text(const Module& module, const Terms& arguments, Mode mode) {
  std::vector<std::string> parameters, results;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::vector<std::string> attributes;
    if (mode == Mode::kPartitions) attributes.emplace_back(kManual);
    if (module.arguments[i].donated_to >= 0)
      attributes.push_back(str("tf.aliasing_output = ", module.arguments[i].donated_to, " : i32"));
    parameters.push_back(str(arguments[i].id, ": ", type_text(arguments[i]),
                             attributes.empty() ? "" : str(" {", join(attributes, ", "), "}"), " loc(",
                             quoted(str(module.arguments[i].name, " ", module.arguments[i].shape)), ")"));
  }
  for (const Result& result : module.results)
    results.push_back(str(type_text(element_of(result.dtype), result.shape),
                          mode == Mode::kPartitions ? str(" {", kManual, "}") : ""));
  return str("  func.func public @main(", join(parameters, ",\n      "), ")\n      -> (", join(results, ", "), ") {\n");
}

void check_refusals(const std::vector<std::string>& refusals) {
  if (refusals.empty()) return;
  throw UserError({.code = "stablehlo.no-form",
                   .what = str("the program has instructions without a StableHLO form (", refusals.size(), "):\n  ",
                               join(refusals, "\n  ")),
                   .where = "the StableHLO emitter",
                   .fix = "change the ops above as the reasons say, or run the program on --device cpu"});
}

}  // namespace

Module emit(const Program& program, const EmitOptions& options) {
  Module module;
  module.arguments = arguments_of(program);
  module.results = results_of(program, module.arguments);
  ModuleState state;
  state.options = options;
  Terms arguments;
  for (const Argument& argument : module.arguments)
    arguments.push_back(state.writer.argument(element_of(argument.dtype), argument.shape));
  Block block(state, program, arguments[arguments.size() - 2], arguments.back(), false);
  for (std::size_t i = 0; i + 2 < arguments.size(); ++i) block.define(module.arguments[i].value, arguments[i]);
  block.write();
  Terms returned;
  for (const Result& result : module.results) returned.push_back(block.term(result.value));
  check_refusals(state.refusals);
  module.results.insert(module.results.end(), state.host_results.begin(), state.host_results.end());
  returned.insert(returned.end(), state.host_terms.begin(), state.host_terms.end());
  state.writer.line(returned.empty() ? "return" : str("return ", ids_text(returned), " : ", types_text(returned)));
  const char* count = options.mode == Mode::kReplicas ? "mhlo.num_replicas = " : "mhlo.num_partitions = ";
  module.text =
      str("module @weft attributes {", count, program.mesh.size(), " : i32} {\n",
          head_text(module, arguments, options.mode), state.writer.lines(), "  }\n}\n", state.writer.locations());
  return module;
}

}  // namespace weft::stablehlo
