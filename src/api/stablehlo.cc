#include "weft/detail/stablehlo.h"

#include <nlohmann/json.hpp>

#include "api/compile.h"
#include "base/index.h"
#include "stablehlo/emit.h"

namespace weft::detail {

namespace {

using Json = nlohmann::ordered_json;
using stablehlo::Argument;
using stablehlo::Result;

const char* name_of(Argument::Role role) {
  static constexpr std::array kNames = {"input", "variable", "seed", "step"};
  return kNames[at(role)];
}
const char* name_of(Result::Role role) {
  static constexpr std::array kNames = {"output", "variable", "host"};
  return kNames[at(role)];
}

// The dims of the whole value, the sizes of a shard, and the axes that split each dim.
Json placed(const Program& program, ValueId id, const Shape& local, DType dtype) {
  const Sharding sharding = id ? program.values[id].sharding : unsplit(local);
  const Shape whole = global_shape(local, sharding, program.mesh);
  Json dims = Json::array(), shard = Json::array(), split = Json::array();
  for (std::size_t i = 0; i < whole.rank(); ++i) {
    dims.push_back({{"name", whole[i].name}, {"size", whole[i].size}});
    shard.push_back(local[i].size);
    split.push_back(Json::array());
    for (const int axis : sharding.dims[i]) split.back().push_back(program.mesh.axes()[at(axis)].name);
  }
  return {{"dtype", weft::name_of(dtype)}, {"dims", dims}, {"shard", shard}, {"split", split}};
}

Json manifest_of(const std::string& name, const Program& program, const stablehlo::Module& module) {
  Json all = {{"format", 1}, {"name", name}, {"layout", program.layout}, {"processors", program.mesh.size()}};
  all["mesh"] = Json::array();
  for (const Axis& axis : program.mesh.axes()) all["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}});
  all["arguments"] = Json::array();
  for (const Argument& argument : module.arguments) {
    Json one = {{"name", argument.name}, {"role", name_of(argument.role)}};
    one.update(placed(program, argument.value, argument.shape, argument.dtype));
    if (argument.donated_to >= 0) one["donated_to"] = argument.donated_to;
    if (argument.role == Argument::Role::kVariable)
      one["trainable"] = program.variables[all["arguments"].size() - program.inputs.size()].trainable;
    all["arguments"].push_back(std::move(one));
  }
  all["results"] = Json::array();
  for (const Result& result : module.results) {
    Json one = {{"name", result.name}, {"role", name_of(result.role)}};
    one.update(placed(program, result.value, result.shape, result.dtype));
    if (!result.what.empty()) one["what"] = result.what;
    all["results"].push_back(std::move(one));
  }
  return all;
}

}  // namespace

StableHlo stablehlo(const std::string& name, const Graph& graph, const Mesh& mesh, const Layout& layout,
                    const CompileOptions& options, const Store& store) {
  const Program program =
      lowered_program(graph, mesh, layout, options, store, engine_named(device::cpu().name, "the StableHLO emitter"));
  const stablehlo::Module module = stablehlo::emit(program, {.mode = stablehlo::Mode::kPartitions});
  return {.module = module.text,
          .manifest = manifest_of(name, program, module).dump(1) + "\n",
          .inputs = static_cast<int>(program.inputs.size()),
          .variables = static_cast<int>(program.variables.size()),
          .results = static_cast<int>(module.results.size())};
}

}  // namespace weft::detail
