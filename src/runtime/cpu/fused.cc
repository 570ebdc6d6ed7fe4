// fused, map and reduce: each is a sweep over rows. The reference's kernel runs the bodies that no sweep can compute.
#include <algorithm>
#include <memory>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/sweep.h"
#include "runtime/reference/kernels.h"
#include "weft/error.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kColumns = 4096;

// Extents of the operands, when the border is moved.
Extent extent_of(const Shape& shape, const RowPlan& plan) {
  const auto has = [&](const std::vector<Dim>& dims) {
    return std::ranges::any_of(dims, [&](const Dim& dim) { return shape.has(dim.name); });
  };
  const bool rows = has(plan.rows), cols = has(plan.cols);
  return rows ? cols ? Extent::kFull : Extent::kRow : cols ? Extent::kColumn : Extent::kScalar;
}

// Where no result fixes the border: as many columns as every operand and result lays out in one run, up to a tile.
void widen_columns(const Program& body, RowPlan& plan, const KernelArgs& args) {
  for (const Instr& instr : body.body) {
    const Extent extent = plan.extents[instr.outputs[0]];
    if (instr.is<ReduceDims>() || extent == Extent::kRow || extent == Extent::kColumn) return;
  }
  const auto in_one_run = [&](const std::vector<Dim>& rows, const std::vector<Dim>& cols) {
    const auto fits = [&](const TensorView& v) { return Access(v, rows, cols).one_column_run(); };
    return std::ranges::all_of(args.inputs, fits) && std::ranges::all_of(args.outputs, fits);
  };
  std::int64_t size = 1;
  for (const Dim& dim : plan.cols) size *= dim.size;
  while (!plan.rows.empty() && size * plan.rows.back().size <= kColumns) {
    std::vector<Dim> rows = plan.rows, cols = plan.cols;
    size *= rows.back().size;
    cols.insert(cols.begin(), rows.back());
    rows.pop_back();
    if (!in_one_run(rows, cols)) break;
    plan.rows = std::move(rows);
    plan.cols = std::move(cols);
  }
  for (const ProgramInput& input : body.inputs) {
    plan.extents[input.value] = extent_of(body.values[input.value].shape, plan);
  }
}

Kernel sweep_of(const Program& body, RowPlan plan, const KernelArgs& args) {
  widen_columns(body, plan, args);
  auto sweep = std::make_shared<Sweep>(
      bind_sweep(body, plan, args.inputs, args.outputs, args.processor, args.workers->size()), *args.workers);
  return [sweep](const StepState&) { sweep->run(); };
}

// One instruction as a body of its own.
Program body_of_one(const KernelArgs& args) {
  Program body;
  body.mesh = args.program.mesh;
  Instr instr{args.instr.operation, {}, {}, {}};
  const auto add = [&](ValueId id) { return body.values.add(args.program.values[id]); };
  for (ValueId id : args.instr.inputs) {
    instr.inputs.push_back(add(id));
    body.inputs.push_back({"", instr.inputs.back()});
  }
  for (ValueId id : args.instr.outputs) {
    instr.outputs.push_back(add(id));
    body.outputs.push_back({"", instr.outputs.back()});
  }
  body.body.push_back(std::move(instr));
  return body;
}

Kernel fused(const KernelArgs& args) {
  const Program& body = *args.instr.as<Fused>()->body;
  std::optional<RowPlan> plan = row_plan(body);
  if (!plan) throw InternalError("a fused body that cannot run in one sweep");
  return sweep_of(body, *std::move(plan), args);
}

Kernel map(const KernelArgs& args) {
  const Program body = body_of_one(args);
  const std::optional<RowPlan> plan = row_plan(body);
  if (!plan) throw InternalError("a map that cannot run in one sweep");
  return sweep_of(body, *plan, args);
}

// Dims that lie between others are columns too: they are read at a stride.
Kernel reduce(const KernelArgs& args) {
  const Program body = body_of_one(args);
  if (const std::optional<RowPlan> plan = row_plan(body)) return sweep_of(body, *plan, args);
  const Shape &x = args.inputs[0].shape, &out = args.outputs[0].shape;
  if (same_dims(x, out)) return reference::serve(args);
  return sweep_of(body,
                  {.rows = out.dims(),
                   .cols = x.minus(out).dims(),
                   .extents = {Extent::kFull, Extent::kRow},
                   .late = {false, false},
                   .whole_rows = true},
                  args);
}

const AddKernel kMapKernel(kernels(), Map::kName, map);
const AddKernel kReduceDimsKernel(kernels(), ReduceDims::kName, reduce);
const AddKernel kFusedKernel(kernels(), Fused::kName, fused);

}  // namespace

}  // namespace weft::cpu
