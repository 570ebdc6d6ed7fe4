#include "runtime/cuda/collectives.h"

#include <set>

#include "base/str.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"
#include "runtime/host/views.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

using Group = std::vector<const Work*>;  // in rank order

const Work& first_of(const Group& group) { return *group[0]; }

// Reads the k-th operand of every member at one element, then writes: members' results may lie where their operands do.
// `joined`: text of the number of member q, from r0, r1, … of type wide.
template <class Result>
void at_once(const Group& group, std::size_t k, const Result& result) {
  const TensorView &in0 = first_of(group).inputs[k], &out0 = first_of(group).outputs[k];
  std::vector<std::vector<std::int64_t>> strides;
  for (const Work* member : group) strides.push_back(strides_along(member->inputs[k], out0.shape));
  for (const Work* member : group) strides.push_back(member->outputs[k].strides);
  const std::vector<Run> runs = joined_runs({out0.shape.begin(), out0.shape.end()}, strides);
  std::vector<Param> params;
  std::string reads, writes;
  for (std::size_t q = 0; q < group.size(); ++q) {
    params.push_back(in(in0.dtype, str("x", q), group[q]->inputs[k].data));
    params.push_back(out(out0.dtype, str("y", q), group[q]->outputs[k].data));
    reads += str("const ", register_type(in0.dtype), " r", q, " = get(x", q, "[", offset_text(runs, q, "i"), "]);\n");
    writes += str("y", q, "[", offset_text(runs, group.size() + q, "i"), "] = put<", stored_type(out0.dtype), ">(",
                  result(q), ");\n");
  }
  launch_per_element(first_of(group), out0.shape.elements(), params, str(reads, writes));
}

std::string joined_text(const Group& group, Reduce how, DType dtype) {
  std::string text = str("(", wide_type(dtype), ")widen(r0)");
  for (std::size_t q = 1; q < group.size(); ++q)
    text = str(join_type(how), "()(", text, ", (", wide_type(dtype), ")widen(r", q, "))");
  return str("narrow<", stored_type(dtype), ">(", text, ")");
}

void all_reduce(const Group& group, const AllReduce& operation) {
  for (std::size_t k = 0; k < first_of(group).inputs.size(); ++k) {
    const std::string all = joined_text(group, operation.how, first_of(group).inputs[k].dtype);
    at_once(group, k, [&](std::size_t) { return all; });
  }
}

void reduce_scatter(const Group& group, const ReduceScatter& operation) {
  for (std::size_t k = 0; k < first_of(group).inputs.size(); ++k)
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      const TensorView& y = group[rank]->outputs[k];
      const std::int64_t size = y.shape.size_of(operation.dim);
      std::vector<Param> params = {out(y.dtype, "y", y.data)};
      std::vector<std::vector<std::int64_t>> strides = {y.strides};
      std::string reads;
      for (std::size_t q = 0; q < group.size(); ++q) {
        const TensorView x = run_of(group[q]->inputs[k], operation.dim, static_cast<std::int64_t>(rank) * size, size);
        params.push_back(in(x.dtype, str("x", q), x.data));
        strides.push_back(strides_along(x, y.shape));
      }
      const std::vector<Run> runs = joined_runs({y.shape.begin(), y.shape.end()}, strides);
      for (std::size_t q = 0; q < group.size(); ++q)
        reads +=
            str("const ", register_type(y.dtype), " r", q, " = get(x", q, "[", offset_text(runs, q + 1, "i"), "]);\n");
      launch_per_element(*group[rank], y.shape.elements(), params,
                         str(reads, "y[", offset_text(runs, 0, "i"), "] = put<", stored_type(y.dtype), ">(",
                             joined_text(group, operation.how, y.dtype), ");\n"));
    }
}

void all_gather(const Group& group, const AllGather& operation) {
  for (std::size_t k = 0; k < first_of(group).inputs.size(); ++k)
    for (const Work* to : group)
      for (std::size_t q = 0; q < group.size(); ++q) {
        const TensorView& x = group[q]->inputs[k];
        const std::int64_t size = x.shape.size_of(operation.dim);
        copy_elements(*to, x, run_of(to->outputs[k], operation.dim, static_cast<std::int64_t>(q) * size, size));
      }
}

// Rank r keeps block r of `split` of every member, side by side along `gather`.
void all_to_all(const Group& group, const AllToAll& operation) {
  for (std::size_t rank = 0; rank < group.size(); ++rank)
    for (std::size_t q = 0; q < group.size(); ++q) {
      const TensorView &x = group[q]->inputs[0], &y = group[rank]->outputs[0];
      const std::int64_t split = y.shape.size_of(operation.split), gather = x.shape.size_of(operation.gather);
      copy_elements(*group[rank], run_of(x, operation.split, static_cast<std::int64_t>(rank) * split, split),
                    run_of(y, operation.gather, static_cast<std::int64_t>(q) * gather, gather));
    }
}

void permute(const Group& group, const Permute& operation) {
  at_once(group, 0, [&](std::size_t rank) {
    for (std::size_t q = 0; q < group.size(); ++q)
      if (operation.to[q] == static_cast<std::int64_t>(rank)) return str("r", q);
    return literal(Number(0), first_of(group).inputs[0].dtype);
  });
}

}  // namespace

void collective(const std::vector<Work>& works) {
  const Instr& instr = works[0].instr;
  const Mesh& mesh = works[0].program.mesh;
  std::set<ProcessorId> done;
  for (const ProcessorId p : mesh.processors()) {
    if (done.contains(p)) continue;
    Group group;
    for (const ProcessorId member : mesh.group(p, axes_of(instr))) {
      group.push_back(&works[member.index()]);
      done.insert(member);
    }
    if (const auto* operation = instr.as<AllReduce>()) all_reduce(group, *operation);
    else if (const auto* scatter = instr.as<ReduceScatter>()) reduce_scatter(group, *scatter);
    else if (const auto* gather = instr.as<AllGather>()) all_gather(group, *gather);
    else if (const auto* exchange = instr.as<AllToAll>()) all_to_all(group, *exchange);
    else if (const auto* moved = instr.as<Permute>()) permute(group, *moved);
    else throw InternalError("a collective that the CUDA engine does not know");
  }
}

}  // namespace weft::cuda
