// The memory that a decoder will need, from the plans of its programs.
#include <map>

#include "train/candidates.h"
#include "train/decode_checks.h"
#include "train/decode_weights.h"
#include "train/prompt_reader.h"
#include "train/steps_ahead.h"
#include "weft/detail/session_access.h"
#include "weft/explain.h"

namespace weft::decode {

namespace {

// Adds the variables of a program, each once.
void add_variables(const Explanation& program, std::map<std::string, std::int64_t>& variables) {
  for (const Explanation::Placed& tensor : program.tensors)
    if (tensor.use == "variable") variables[tensor.name] = tensor.bytes;
}

}  // namespace

DecoderMemory planned_memory(const models::TransformerOptions& model, const Mesh& mesh, const Layout& layout,
                             std::int64_t batch, std::int64_t inputs_length, std::int64_t prompt_length,
                             const Options& options, const Store& store, const device::Choice& device, Site site) {
  const Sizes sizes{batch, inputs_length, prompt_length};
  check(model, sizes, options, site);
  const models::DecodeSizes shape =
      decode_sizes(sizes, options, panels_of(detail::panel_lanes(device), model, options, batch, mesh, layout));
  const Machine machine = Machine::uniform(1, 1);  // rates do not matter here
  std::map<std::string, std::int64_t> variables;
  DecoderMemory memory;
  const auto plan = [&](const Graph& graph, const CompileOptions& how, std::int64_t& arena) {
    const Explanation program = explain(graph, mesh, layout, how, machine, store, device);
    add_variables(program, variables);
    arena = std::max(arena, program.arena_bytes);
    memory.scratch = std::max(memory.scratch, program.scratch_bytes);
  };
  const models::StepGraph step = models::step_graph(model, shape, site);
  if (!step.copies.empty()) plan(step.graph, copy_options(step.copies), memory.step_arena);
  const CandidateTensors offered = offer(step.logits, options, site);
  plan(step.graph, {.fetch = {offered.ids, offered.log_probabilities}, .update = step.updates}, memory.step_arena);
  if (steps_ahead(options, detail::queues_steps(device)) > 1) {
    const AheadGraph ahead = ahead_graph(model, shape, options, site);
    plan(ahead.step.graph, ahead.options(), memory.step_arena);
  }
  for (const PassSizes& pass : largest_passes(limits_of(shape, layout, mesh))) {
    const models::PrefillGraph prefill = models::prefill_graph(model, sizes_of_pass(shape, pass), site);
    plan(prefill.graph, {.update = prefill.updates}, memory.prompt_arena);
    const models::WeightCopies copies = copies_without(prefill.copies, step.copies);
    if (!copies.empty()) plan(prefill.graph, copy_options(copies), memory.prompt_arena);
  }
  for (const auto& [name, bytes] : variables) (name.starts_with("cache/") ? memory.caches : memory.weights) += bytes;
  return memory;
}

}  // namespace weft::decode
