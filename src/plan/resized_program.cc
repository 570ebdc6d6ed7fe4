#include "plan/resized_program.h"

#include "plan/program_work.h"

#include <algorithm>

#include "base/index.h"
#include "plan/cost.h"
#include "program/attend.h"
#include "program/builder.h"
#include "program/cost.h"

namespace weft {

namespace {

using Step = ResizedCost::Step;
using Run = ResizedCost::Run;

void merge(std::vector<AxisExtent>& all, const AxisExtent& one) {
  if (one.size == 0) return;
  const auto same = std::ranges::find(all, one.axes, &AxisExtent::axes);
  if (same == all.end()) all.push_back(one);
  else same->size += one.size;
}

AxisSet set_of(const Axes& axes) {
  AxisSet set = 0;
  for (const int axis : axes) set |= AxisSet{1} << axis;
  return set;
}

// One dim of a contraction, and the steps from one of its indices to the next.
struct DimSteps {
  AxisExtent extent;
  std::int64_t size = 1, x = 0, y = 0, out = 0;
};

// Joins dims that are walked as one, as matrix_form() does. A dim of local size one goes along with its neighbour.
template <class IsUnit>
std::vector<Run> runs_of(const std::vector<DimSteps>& dims, const IsUnit& is_unit) {
  std::vector<Run> runs;
  DimSteps last;
  const auto join = [&](const DimSteps& dim) {
    Run& run = runs.back();
    run.size = {run.size.size * dim.extent.size, run.size.axes | dim.extent.axes};
  };
  for (const DimSteps& dim : dims) {
    if (dim.size == 1 && dim.extent.axes == 0) continue;
    const bool continues =
        !runs.empty() && last.x == dim.x * dim.size && last.y == dim.y * dim.size && last.out == dim.out * dim.size;
    if (dim.size == 1 && !runs.empty()) {
      join(dim);
      continue;
    }
    if (continues) join(dim);
    else runs.push_back({dim.extent, false});
    runs.back().is_unit = is_unit(dim);
    last = dim;
  }
  return runs;
}

// The values that the update reads, also through views.
ByValue<bool> read_by_update(const Program& program) {
  ByValue<bool> is_read(program.values.size());
  for (auto instr = program.body.rbegin(); instr != program.body.rend(); ++instr) {
    const bool passes = is_view(*instr) && is_read[instr->outputs[0]];
    if (passes || instr->origin.phase == Phase::kUpdate)
      for (const ValueId id : instr->inputs) is_read[id] = true;
  }
  return is_read;
}

}  // namespace

ResizedProgram::ResizedProgram(const Program& program, const Machine& machine, const Rates& rates)
    : mesh_(program.mesh), machine_(machine), rates_(rates) {}

double ResizedProgram::parts(AxisSet axes) const {
  double product = 1;
  for (std::size_t i = 0; i < mesh_.axes().size(); ++i)
    if (axes >> i & 1) product *= mesh_.axes()[i].size;
  return product;
}

AxisExtent ResizedProgram::dim_extent(const Value& value, std::size_t i) const {
  const AxisSet axes = set_of(value.sharding.dims[i]);
  return {static_cast<double>(value.shape[i].size) * parts(axes), axes};
}

AxisExtent ResizedProgram::elements(const Value& value, double factor) const {
  AxisExtent all{factor, 0};
  for (std::size_t i = 0; i < value.shape.rank(); ++i) {
    const AxisExtent one = dim_extent(value, i);
    all = {all.size * one.size, all.axes | one.axes};
  }
  return all;
}

AxisExtent ResizedProgram::bytes(const Value& value) const {
  return elements(value, static_cast<double>(size_of(value.dtype)));
}

std::vector<AxisExtent> ResizedProgram::bytes(const Program& p, const std::vector<ValueId>& ids) const {
  std::vector<AxisExtent> all;
  for (const ValueId id : ids) merge(all, bytes(p.values[id]));
  return all;
}

// Of the instruction's own count of flops, spread over the sizes that they grow with.
std::vector<AxisExtent> ResizedProgram::flops_of(const Program& p, const Instr& instr) const {
  std::vector<AxisExtent> all;
  if (const auto* fused = instr.as<Fused>()) {
    for (const Instr& member : fused->body->body)
      for (const AxisExtent& one : flops_of(*fused->body, member)) merge(all, one);
    return all;
  }
  AxisSet axes = 0;
  const bool by_operand = instr.is<ReduceDims>() || instr.is<Scan>() || instr.is<ScatterAdd>();
  const auto join = [&](ValueId id) { axes |= elements(p.values[id]).axes; };
  if (instr.is<Contract>() || instr.is<Convolve>()) {
    for (const ValueId id : instr.inputs) join(id);
    for (const ValueId id : instr.outputs) join(id);
  } else if (attend_rules(instr)) {
    join(instr.inputs[0]);
  } else if (instr.is<ScatterAdd>()) {
    join(instr.inputs[1]);
  } else if (by_operand) {
    join(instr.inputs[0]);
  } else if (!instr.outputs.empty()) {
    join(instr.outputs[0]);
  }
  merge(all, {cost_of(p, instr).flops * parts(axes), axes});
  return all;
}

ResizedCost::Product ResizedProgram::product(const Program& p, const Instr& instr,
                                             const ByValue<std::vector<std::int64_t>>& strides) const {
  const ValueId x = instr.inputs[0], y = instr.inputs[1], out = instr.outputs[0];
  const auto stride = [&](ValueId id, const Dim& dim) {
    const auto at = p.values[id].shape.find(dim.name);
    return at ? strides[id][*at] : 0;
  };
  std::vector<DimSteps> outer, m, n, k;
  const Shape &x_shape = p.values[x].shape, &y_shape = p.values[y].shape, &out_shape = p.values[out].shape;
  const auto steps = [&](ValueId from, std::size_t i) {
    const Dim& dim = p.values[from].shape[i];
    return DimSteps{dim_extent(p.values[from], i), dim.size, stride(x, dim), stride(y, dim), stride(out, dim)};
  };
  for (std::size_t i = 0; i < out_shape.rank(); ++i) {
    const bool in_x = x_shape.has(out_shape[i].name), in_y = y_shape.has(out_shape[i].name);
    (in_x && in_y ? outer : in_x ? m : n).push_back(steps(out, i));
  }
  for (std::size_t i = 0; i < x_shape.rank(); ++i)
    if (!out_shape.has(x_shape[i].name)) k.push_back(steps(x, i));
  ResizedCost::Product product{.dtype = p.values[x].dtype, .m = {}, .n = {}, .k = {}, .outer = {}};
  const auto lies_in_out = [](const DimSteps& dim) { return dim.out == 1; };
  product.m = runs_of(m, lies_in_out);
  product.n = runs_of(n, lies_in_out);
  product.k = runs_of(k, [](const DimSteps& dim) { return dim.x == 1 || dim.y == 1; });
  for (const DimSteps& dim : outer)
    product.outer = {product.outer.size * dim.extent.size, product.outer.axes | dim.extent.axes};
  return product;
}

// As one product: places by channels of y, summed over the rest of the filter.
ResizedCost::Product ResizedProgram::convolution(const Program& p, const Instr& instr) const {
  const WindowRoles roles = roles_of(instr);
  const Value &y = p.values[roles.y], &filter = p.values[roles.filter];
  AxisExtent places, channels, rest;
  const auto grow = [&](AxisExtent& extent, const AxisExtent& by) {
    extent = {extent.size * by.size, extent.axes | by.axes};
  };
  for (std::size_t i = 0; i < y.shape.rank(); ++i)
    grow(filter.shape.has(y.shape[i].name) ? channels : places, dim_extent(y, i));
  for (std::size_t i = 0; i < filter.shape.rank(); ++i)
    if (!y.shape.has(filter.shape[i].name)) grow(rest, dim_extent(filter, i));
  return {p.values[instr.inputs[0]].dtype, {{places, true}}, {{channels, true}}, {{rest, true}}, {}};
}

double ResizedProgram::attend_rate(const Program& p, const Instr& instr) const {
  const AttendRules& attend = *attend_rules(instr);
  const Value& key = p.values[instr.inputs[1]];
  const double sizes[2] = {static_cast<double>(key.shape.size_of(attend.memory)),
                           static_cast<double>(key.shape.size_of(attend.key))};
  for (const AttendRates& one : rates_.attention)
    if (one.dtype == key.dtype) return (instr.is<AttendBack>() ? one.backward : one.forward).at(sizes);
  return machine_.peak(key.dtype);
}

Step ResizedProgram::computation(const Program& p, const Instr& instr,
                                 const ByValue<std::vector<std::int64_t>>& strides, ResizedCost::Body& body) const {
  Step step;
  if (instr.is<Contract>() || instr.is<Convolve>()) {
    step.kind = Step::Kind::kProduct;
    step.item = static_cast<int>(body.products.size());
    body.products.push_back(instr.is<Contract>() ? product(p, instr, strides) : convolution(p, instr));
  } else if (attend_rules(instr)) {
    step.kind = Step::Kind::kAttend;
    step.flops = flops_of(p, instr);
    step.rate = attend_rate(p, instr);
  } else if (instr.is<Random>()) {
    step.kind = Step::Kind::kRandom;  // by bytes, as Pricer counts draws
    for (const auto* ids : {&instr.inputs, &instr.outputs})
      for (const ValueId id : *ids)
        merge(step.flops, elements(p.values[id], static_cast<double>(size_of(p.values[id].dtype)) / 4));
  } else {
    step.flops = flops_of(p, instr);
    step.bytes = bytes(p, instr.inputs);
    for (const AxisExtent& one : bytes(p, instr.outputs)) merge(step.bytes, one);
  }
  return step;
}

Step ResizedProgram::collective(const Program& p, const Instr& instr, ResizedCost::Body& body) const {
  Step step{.kind = Step::Kind::kCollective, .item = static_cast<int>(body.collectives.size())};
  step.value = instr.outputs[0].number();
  body.collectives.push_back(
      {instr.operation, name_of(instr), set_of(axes_of(instr)), bytes(p, instr.inputs), bytes(p, instr.outputs)});
  return step;
}

// As Pricer has them: a view is read where the value lies that it is a view of.
void ResizedProgram::add_touches(const Program& p, ResizedCost::Body& body,
                                 const std::vector<const Instr*>& instrs) const {
  ByValue<ValueId> base = identity<ValueId>(p.values.size());
  const ByValue<bool> is_update = updates_of(p);
  for (const ProgramVariable& variable : p.variables) merge(body.touched_in_step, bytes(p.values[variable.value]));
  for (const Instr& instr : p.body) {
    if (is_view(instr)) base[instr.outputs[0]] = base[instr.inputs[0]];
    else
      for (const ValueId id : instr.outputs) merge(body.touched_in_step, bytes(p.values[id]));
  }
  for (std::size_t i = 0; i < instrs.size(); ++i) {
    for (const ValueId id : instrs[i]->inputs)
      body.steps[i].touches.push_back({base[id].number(), bytes(p.values[id])});
    for (const ValueId id : instrs[i]->outputs)
      body.steps[i].touches.push_back({id.number(), bytes(p.values[id]), true, is_update[id]});
  }
}

ResizedCost::Body ResizedProgram::body(const Program& p) const {
  ResizedCost::Body body{.steps = {}, .products = {}, .collectives = {}, .loops = {}, .touched_in_step = {}};
  body.values = static_cast<int>(p.values.size());
  const ByValue<std::vector<std::int64_t>> strides = strides_of(p);
  const ByValue<bool> of_update = read_by_update(p);
  ByValue<bool> has_done(p.values.size());
  for (const Instr& instr : p.body)
    if (instr.is<Done>()) has_done[instr.inputs[0]] = true;
  std::vector<const Instr*> instrs;
  const bool is_top = &p.mesh == &mesh_;
  const std::vector<bool> divided = divided_by_storage(p);
  const ByValue<double> factors = widening(p);
  for (const Instr& instr : p.body) {
    if (is_view(instr)) continue;
    Step step;
    if (const auto* loop = instr.as<Loop>()) {
      step.kind = Step::Kind::kLoop;
      step.item = static_cast<int>(body.loops.size());
      body.loops.emplace_back(this->body(*loop->body), static_cast<double>(loop->trips));
    } else if (instr.is<Done>()) {
      step.kind = Step::Kind::kDone;
      step.value = instr.inputs[0].number();
    } else {
      step = is_collective(instr) ? collective(p, instr, body) : computation(p, instr, strides, body);
    }
    for (const ValueId id : instr.inputs)
      if (factors[id] > 1) {
        AxisExtent wide = bytes(p.values[id]);
        wide.size *= 1 - 1 / factors[id];
        merge(step.wide, wide);
      }
    step.is_update =
        is_top && !is_collective(instr) ? divided[at(&instr - p.body.data())] : instr.origin.phase == Phase::kUpdate;
    step.has_done = is_collective(instr) && has_done[instr.outputs[0]];
    const bool is_hidden =
        is_collective(instr) && ((step.has_done && machine_.overlaps) || of_update[instr.outputs[0]]);
    step.is_floor = is_top && !step.is_update && !is_hidden && !instr.is<Done>();
    body.steps.push_back(std::move(step));
    instrs.push_back(&instr);
  }
  if (!rates_.sweep.axes.empty()) add_touches(p, body, instrs);
  return body;
}

ResizedCost::Pieces ResizedProgram::arena(const Program& p, const MemoryPlan& plan) const {
  ResizedCost::Pieces pieces;
  pieces.end = static_cast<int>(p.body.size());
  std::vector<AxisExtent> bytes_of_storage(plan.storages.size(), {0, 0});
  const auto fill = [&](int storage, const AxisExtent& extent) {
    AxisExtent& known = bytes_of_storage[at(storage)];
    if (extent.size / parts(extent.axes) > known.size / parts(known.axes)) known = extent;
  };
  for (const ValueId id : p.values.ids())
    if (const int storage = plan.storage_of[id]; storage != MemoryPlan::kExternal) {
      const AxisExtent extent = bytes(p.values[id]);
      if (extent.size / parts(extent.axes) <= static_cast<double>(plan.storages[at(storage)].bytes))
        fill(storage, extent);
    }
  for (const auto& [value, storage] : plan.saved_views) fill(storage, bytes(p.values[value]));
  // A kernel's workspace grows with its results, as far as is known here.
  for (const auto& [position, storage] : plan.workspaces) {
    const Instr& instr = p.body[at(position)];
    const AxisSet axes = instr.outputs.empty() ? 0 : elements(p.values[instr.outputs[0]]).axes;
    fill(storage, {static_cast<double>(plan.storages[at(storage)].bytes) * parts(axes), axes});
  }
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    const Storage& storage = plan.storages[s];
    ResizedCost::Pieces::Piece piece{storage.first, storage.last, bytes_of_storage[s]};
    if (piece.bytes.size == 0) piece.bytes = {static_cast<double>(storage.bytes), 0};
    const auto loop = plan.loops.find(storage.first);
    if (bytes_of_storage[s].size == 0 && loop != plan.loops.end()) {
      piece.loop = static_cast<int>(pieces.loops.size());
      pieces.loops.push_back(arena(*p.body[at(storage.first)].as<Loop>()->body, loop->second.plan[0]));
    }
    pieces.pieces.push_back(piece);
  }
  if (plan.live_bytes > 0)
    pieces.packing = static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.live_bytes);
  return pieces;
}

void ResizedProgram::add_flops(const Program& p, double trips, std::vector<AxisExtent>& all) const {
  for (const Instr& instr : p.body) {
    if (const auto* loop = instr.as<Loop>()) add_flops(*loop->body, trips * static_cast<double>(loop->trips), all);
    else if (!is_view(instr) && !is_collective(instr) && !instr.is<Done>())
      for (const AxisExtent& one : flops_of(p, instr)) merge(all, {one.size * trips, one.axes});
  }
}

std::vector<AxisExtent> ResizedProgram::flops(const Program& p) const {
  std::vector<AxisExtent> all;
  add_flops(p, 1, all);
  return all;
}

std::vector<AxisExtent> ResizedProgram::variable_bytes(const Program& p) const {
  std::vector<AxisExtent> all;
  for (const ProgramVariable& variable : p.variables) merge(all, bytes(p.values[variable.value]));
  return all;
}

void ResizedProgram::add_divisions(const Program& p, std::vector<std::pair<std::int64_t, AxisSet>>& all) const {
  for (const Value& value : p.values)
    for (std::size_t i = 0; i < value.shape.rank(); ++i) {
      const AxisExtent extent = dim_extent(value, i);
      if (extent.axes) all.emplace_back(static_cast<std::int64_t>(extent.size), extent.axes);
    }
  for (const Instr& instr : p.body)
    if (const auto* loop = instr.as<Loop>()) add_divisions(*loop->body, all);
}

std::vector<std::pair<std::int64_t, AxisSet>> ResizedProgram::divisions(const Program& p) const {
  std::vector<std::pair<std::int64_t, AxisSet>> all;
  add_divisions(p, all);
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

}  // namespace weft
