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

// Collectives lose NaN in maxima and minima of floats (seen with xla-cpu-pjrt 0.0.1). So floats are reduced as integers of
// the same order, in which NaN is the most extreme: the bits, with all but the sign turned around where the sign is set.
class OrderedBits {
 public:
  OrderedBits(Writer& w, Reduce how, Element element)
      : w_(w),
        how_(how),
        element_(element),
        wide_(wide_of(element)),
        is_used_(is_float(element) && (how == Reduce::kMax || how == Reduce::kMin)) {}

  Element element() const { return is_used_ ? integer() : element_; }
  Term from_float(const Term& given) const {
    if (!is_used_) return given;
    const Term x = w_.convert(given, wide_);
    const Term is_nan = w_.compare("NE", x, x);
    const Term most =
        w_.number(start_of(how_ == Reduce::kMax ? Reduce::kMin : Reduce::kMax, integer()), integer(), x.shape);
    return w_.select(is_nan, most, turned(w_.generic("bitcast_convert", {x}, "", integer(), x.shape)));
  }
  Term to_float(const Term& ordered) const {
    if (!is_used_) return ordered;
    const Term bits = turned(ordered);
    return w_.convert(w_.generic("bitcast_convert", {bits}, "", wide_, bits.shape), element_);
  }

 private:
  Element integer() const { return wide_ == "f64" ? "i64" : "i32"; }
  Term turned(const Term& bits) const {
    const Term sign =
        w_.apply("shift_right_arithmetic", {bits, w_.number(wide_ == "f64" ? 63 : 31, integer(), bits.shape)});
    const Term mask = w_.apply("and", {sign, w_.number(start_of(Reduce::kMin, integer()), integer(), bits.shape)});
    return w_.apply("xor", {bits, mask});
  }

  Writer& w_;
  const Reduce how_;
  const Element element_, wide_;
  const bool is_used_;
};

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
    const OrderedBits bits(block.w, operation.how, block.term(instr.inputs[begin]).element);
    Terms operands;
    for (std::size_t i = begin; i < begin + together; ++i)
      operands.push_back(bits.from_float(block.term(instr.inputs[i])));
    const Element element = bits.element();
    const Terms results = block.w.with_region(
        "all_reduce", operands, {element, element},
        [&](const Terms& xy) { return block.w.apply(join_of(operation.how, element), xy); },
        str("{replica_groups = ", groups_text(block.program.mesh, operation.axes), channel_text(block, true), "}"),
        operands);
    for (std::size_t i = 0; i < together; ++i) block.define(instr.outputs[begin + i], bits.to_float(results[i]));
  }
}

void write_reduce_scatter(Block& block, const Instr& instr, const ReduceScatter& operation) {
  if (alone(block, operation.axes)) return pass_on(block, instr);
  for (std::size_t i = 0; i < instr.inputs.size(); ++i) {
    const OrderedBits bits(block.w, operation.how, block.term(instr.inputs[i]).element);
    const Term x = bits.from_float(block.term(instr.inputs[i]));
    const Shape& out = block.value(instr.outputs[i]).shape;
    const Terms results =
        block.w.with_region("reduce_scatter", {x}, {x.element, x.element},
                            [&](const Terms& xy) { return block.w.apply(join_of(operation.how, x.element), xy); },
                            str("{scatter_dimension = ", out.position(operation.dim), " : i64, replica_groups = ",
                                groups_text(block.program.mesh, operation.axes), channel_text(block, true), "}"),
                            {{"", x.element, out}});
    block.define(instr.outputs[i], bits.to_float(results[0]));
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
