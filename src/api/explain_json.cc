// An explanation as JSON. Counts are integers of any size: a double without a fraction is written as an integer.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/index.h"
#include "base/str.h"
#include "weft/explain.h"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

Json number(double x) {
  const bool whole = std::floor(x) == x && std::abs(x) < 9e18;
  return whole ? Json(static_cast<std::int64_t>(x)) : Json(x);
}

Json flops_of(const Explanation& e) {
  Json contract = Json::object();
  for (const char* phase : {"forward", "recompute", "backward", "update"}) {
    const auto found = e.contract_flops.find(phase);
    contract[phase] = number(found == e.contract_flops.end() ? 0 : found->second);
  }
  return {{"contract", contract},
          {"model", number(e.model_flops)},
          {"executed", number(e.executed_flops)},
          {"recomputed", number(e.recomputed_flops)}};
}

Json collective_of(const Explanation::Collective& c) {
  return {
      {"kind", c.kind},   {"axes", c.axes},   {"elements", c.elements}, {"bytes", c.bytes}, {"dtype", name_of(c.dtype)},
      {"count", c.count}, {"phase", c.phase}, {"cause", c.cause}};
}

Json warning_of(const Explanation::Warning& w) {
  return {{"kind", w.kind}, {"axes", w.axes}, {"cause", w.cause}, {"share", w.share}, {"text", w.text}};
}

Json compiler_of(const Explanation::Compiler& c) {
  return {{"name", c.name},
          {"argument_bytes", c.arguments},
          {"output_bytes", c.outputs},
          {"aliased_bytes", c.aliased},
          {"temporary_bytes", c.temporaries},
          {"code_bytes", c.code},
          {"peak_bytes", c.peak},
          {"seconds", c.seconds},
          {"cpu_seconds", c.cpu_seconds},
          {"topology", c.topology},
          {"fits", c.refusal.empty()},
          {"refusal", c.refusal},
          {"executable", c.executable}};
}

Json variable_of(const Explanation::Placed& t, const Mesh& mesh) {
  Json split = Json::object();
  for (std::size_t i = 0; i < t.whole.rank(); ++i)
    for (int axis : t.split[i]) split[t.whole[i].name].push_back(mesh.axes()[at(axis)].name);
  return {{"name", t.name}, {"dtype", name_of(t.dtype)}, {"bytes", t.bytes}, {"split", split}};
}

}  // namespace

std::string Explanation::json() const {
  Json all;
  all["mesh"] = mesh.text();
  all["layout"] = layout;
  all["store"] = {{"layout", store.text()}, {"level", store.level()}};
  all["processors"] = mesh.size();
  all["parameters"] = {{"total", parameters}, {"per_processor", parameters_per_processor}};
  all["flops"] = flops_of(*this);
  all["collectives"] = Json::array();
  for (const Collective& c : collectives) all["collectives"].push_back(collective_of(c));
  all["work_ratio"] = work_ratio;
  all["machine"] = {{"flops_per_second", machine.peak()}, {"bytes_per_second", machine.bytes_per_second}};
  all["variable_bytes"] = variable_bytes;
  all["variables"] = Json::array();
  for (const Placed& t : tensors)
    if (t.use == "variable") all["variables"].push_back(variable_of(t, mesh));
  all["arena_bytes"] = arena_bytes;
  all["live_bytes"] = live_bytes;
  all["workspace_bytes"] = workspace_bytes;
  all["scratch_bytes"] = scratch_bytes;
  if (compiler) all["compiler"] = compiler_of(*compiler);
  all["kernels"] = Json::array();
  for (const Kernel& k : kernels)
    all["kernels"].push_back(
        {{"instruction", k.instruction}, {"served_by", k.served_by}, {"count", k.count}, {"share", k.share}});
  all["warnings"] = Json::array();
  for (const Warning& w : warnings) all["warnings"].push_back(warning_of(w));
  all["instructions"] = instructions;
  all["compile_s"] = compile_seconds;
  all["passes"] = Json::array();
  for (const Pass& pass : passes) all["passes"].push_back({{"pass", pass.name}, {"seconds", pass.seconds}});
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft
