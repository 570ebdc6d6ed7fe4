// The collectives, with the mesh's groups. A group of one processor needs none.
#include <set>

#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

std::vector<std::vector<std::int64_t>> groups_of(const Mesh& mesh, const Axes& axes) {
  std::vector<std::vector<std::int64_t>> groups;
  std::set<ProcessorId> seen;
  for (const ProcessorId processor : mesh.processors()) {
    if (seen.contains(processor)) continue;
    groups.emplace_back();
    for (const ProcessorId member : mesh.group(processor, axes)) {
      seen.insert(member);
      groups.back().push_back(member.number());
    }
  }
  return groups;
}

std::string table_text(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<std::string> texts;
  for (const Sizes& row : rows) texts.push_back(list_text(row));
  return str("dense<[", join(texts, ", "), "]> : tensor<", rows.size(), "x", rows.at(0).size(), "xi64>");
}

// Partitions talk over channels, one for each collective. all_to_all and permute know no global ids.
std::string channel_text(Block& block, bool global_ids) {
  if (block.state.options.mode == Mode::kReplicas) return "";
  return str(", channel_handle = #stablehlo.channel_handle<handle = ", ++block.state.channels, ", type = 1>",
             global_ids ? ", use_global_device_ids" : "");
}

bool alone(Block& block, const Axes& axes) { return block.program.mesh.size(axes) == 1; }

void pass_on(Block& block, const Instr& instr) {
  for (std::size_t i = 0; i < instr.inputs.size(); ++i) block.define(instr.outputs[i], block.term(instr.inputs[i]));
}

}  // namespace

std::string groups_text(const Mesh& mesh, const Axes& axes) { return table_text(groups_of(mesh, axes)); }

// One collective for all operands; of partitions one for each, since XLA's partitioner takes no more.
void write_all_reduce(Block& block, const Instr& instr, const AllReduce& operation) {
  if (alone(block, operation.axes)) return pass_on(block, instr);
  const std::size_t together = block.state.options.mode == Mode::kReplicas ? instr.inputs.size() : 1;
  for (std::size_t begin = 0; begin < instr.inputs.size(); begin += together) {
    Terms operands;
    for (std::size_t i = begin; i < begin + together; ++i) operands.push_back(block.term(instr.inputs[i]));
    const Element element = operands[0].element;
    const Terms results = block.w.with_region(
        "all_reduce", operands, {element, element},
        [&](const Terms& xy) { return block.w.apply(join_of(operation.how, element), xy); },
        str("{replica_groups = ", groups_text(block.program.mesh, operation.axes), channel_text(block, true), "}"),
        operands);
    for (std::size_t i = 0; i < together; ++i) block.define(instr.outputs[begin + i], results[i]);
  }
}

void write_reduce_scatter(Block& block, const Instr& instr, const ReduceScatter& operation) {
  if (alone(block, operation.axes)) return pass_on(block, instr);
  for (std::size_t i = 0; i < instr.inputs.size(); ++i) {
    const Term x = block.term(instr.inputs[i]);
    const Shape& out = block.value(instr.outputs[i]).shape;
    const Terms results =
        block.w.with_region("reduce_scatter", {x}, {x.element, x.element},
                            [&](const Terms& xy) { return block.w.apply(join_of(operation.how, x.element), xy); },
                            str("{scatter_dimension = ", out.position(operation.dim), " : i64, replica_groups = ",
                                groups_text(block.program.mesh, operation.axes), channel_text(block, true), "}"),
                            {{"", x.element, out}});
    block.define(instr.outputs[i], results[0]);
  }
}

void write_all_gather(Block& block, const Instr& instr, const AllGather& operation) {
  if (alone(block, operation.axes)) return pass_on(block, instr);
  for (std::size_t i = 0; i < instr.inputs.size(); ++i) {
    const Term x = block.term(instr.inputs[i]);
    const Shape& out = block.value(instr.outputs[i]).shape;
    block.define(instr.outputs[i],
                 block.w.generic("all_gather", {x},
                                 str("{all_gather_dim = ", out.position(operation.dim), " : i64, replica_groups = ",
                                     groups_text(block.program.mesh, operation.axes), channel_text(block, true), "}"),
                                 x.element, out));
  }
}

void write_all_to_all(Block& block, const Instr& instr, const AllToAll& operation) {
  if (alone(block, operation.axes)) return pass_on(block, instr);
  const Term x = block.term(instr.inputs[0]);
  const Shape& out = block.value(instr.outputs[0]).shape;
  block.define(instr.outputs[0],
               block.w.generic("all_to_all", {x},
                               str("{split_dimension = ", out.position(operation.split),
                                   " : i64, concat_dimension = ", out.position(operation.gather),
                                   " : i64, split_count = ", block.program.mesh.size(operation.axes),
                                   " : i64, replica_groups = ", groups_text(block.program.mesh, operation.axes),
                                   channel_text(block, false), "}"),
                               x.element, out));
}

void write_permute(Block& block, const Instr& instr, const Permute& operation) {
  std::vector<std::vector<std::int64_t>> pairs;
  for (const std::vector<std::int64_t>& group : groups_of(block.program.mesh, operation.axes))
    for (std::size_t rank = 0; rank < group.size(); ++rank)
      if (operation.to[rank] >= 0) pairs.push_back({group[rank], group[at(operation.to[rank])]});
  const Term x = block.term(instr.inputs[0]);
  if (pairs.empty()) return block.define(instr.outputs[0], block.w.number(0, x.element, x.shape));
  block.define(instr.outputs[0],
               block.w.generic("collective_permute", {x},
                               str("{source_target_pairs = ", table_text(pairs), channel_text(block, false), "}"),
                               x.element, x.shape));
}

}  // namespace weft::stablehlo
