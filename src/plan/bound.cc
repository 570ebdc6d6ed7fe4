#include "plan/bound.h"

#include <algorithm>

#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/index.h"
#include "language/op_def.h"
#include "plan/program_work.h"

namespace weft {

namespace {

double rounded_up(double size, std::int64_t tile) {
  return std::ceil(size / static_cast<double>(tile)) * static_cast<double>(tile);
}

double rate_at(const Table& table, std::span<const double> sizes) {
  return table.axes.empty() ? table.values[0] : table.at(sizes);
}

double largest(const Table& table) { return *std::ranges::max_element(table.values); }

const ProductRates* product_rates(const Rates& rates, DType dtype) {
  const auto found = std::ranges::find(rates.products, dtype, &ProductRates::dtype);
  return found == rates.products.end() ? nullptr : &*found;
}

// With a storage layout of level 3 the forward and the backward pass each gather a variable that they read, as it is or
// cast.
std::map<NodeId, double> bytes_gathered(const WantedGraph& wanted, const std::vector<NodeId>& nodes) {
  const GraphData& graph = wanted.data();
  std::set<std::pair<TensorId, bool>> seen;
  std::map<NodeId, double> bytes;
  for (const NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    const std::string& op = node.op->name;
    if (node.phase == Phase::kUpdate || op == "assign" || op == "cast" || op == "loop" || node.loop >= 0) continue;
    for (const TensorId id : node.inputs) {
      const NodeId variable = variable_of(graph, id);
      if (!variable || !seen.emplace(id, node.phase != Phase::kForward).second) continue;
      const DType whole = graph.nodes[variable].outputs[0].dtype;
      const std::size_t size = std::min(size_of(graph.type(id).dtype), size_of(wanted.compute_as.value_or(whole)));
      bytes[variable] += static_cast<double>(size) / static_cast<double>(size_of(whole));
    }
  }
  return bytes;
}

// The axes over which the storage layout splits the variable, and into how many parts.
std::pair<AxisSet, double> stored_parts(const Choice& choice, const VariableDims& dims) {
  if (choice.level == 0 || stored_dim(choice, dims) == dims.size()) return {0, 1};
  const AxisSet axes = stored_axes(choice, dims);
  double parts = 1;
  for (std::size_t i = 0; i < choice.axes.size(); ++i)
    if (axes >> i & 1) parts *= choice.axes[i].size;
  return {axes, parts};
}

}  // namespace

// How often each dim is split, and what that does to an extent.
struct WorkBound::Splits {
  std::array<double, kMostDims> parts{};
  DimSet split = 0;         // dims with more than one part
  double microbatches = 1;  // a part of the batch's splits: its work is repeated as often
  DimSet batch = 0;

  double local(const Extent& extent) const {
    double size = extent.size;
    for (DimSet rest = extent.dims & split; rest; rest &= rest - 1)
      size /= parts[static_cast<std::size_t>(std::countr_zero(rest))];
    return size;
  }
  double times(DimSet dims) const { return dims & batch ? microbatches : 1; }
};

WorkBound::WorkBound(const FoldedGraphs::Parts& parts, const SplitRules& rules, const std::string& batch,
                     const Machine& machine, int processors, const Target& target)
    : machine_(machine), rates_(machine.rates_of(processors)), crowding_(machine.crowding(processors)) {
  if (const int dim = rules.find(batch); dim >= 0) batch_ = DimSet{1} << dim;
  fastest_sweep_ = largest(rates_.sweep);
  for (const FoldedGraphs::Part& part : parts) {
    const Program program = compiled_for(*part.graph, PlanChoice{}, target);
    ProgramWork found = work_of(program, rules, rates_, machine_);
    Part& made = parts_.emplace_back();
    made.weight = part.weight;
    made.partials = std::move(found.partials);
    made.gradients = std::move(found.gradients);
    for (auto& [work, trips] : found.order) made.order.emplace_back(number_of(std::move(work)), trips);
    add_variables(part, rules);
  }
  totals_.resize(works_.size());
  apart_.resize(works_.size());
  for (const Part& part : parts_) {
    std::vector<bool> hides(part.order.size());
    for (const Partial& partial : part.partials)
      for (std::size_t i = partial.begin; i < partial.end && machine.overlaps; ++i) hides[i] = true;
    for (std::size_t i = 0; i < part.order.size(); ++i) {
      const auto& [work, trips] = part.order[i];
      totals_[work] += part.weight * trips;
      if (!hides[i]) apart_[work] += part.weight * trips;
    }
  }
}

std::size_t WorkBound::number_of(Work work) {
  const auto found = std::ranges::find(works_, work);
  if (found != works_.end()) return static_cast<std::size_t>(found - works_.begin());
  works_.push_back(std::move(work));
  return works_.size() - 1;
}

void WorkBound::add_variables(const FoldedGraphs::Part& part, const SplitRules& rules) {
  const GraphData& graph = part.graph->data();
  const std::vector<NodeId> nodes = nodes_for(graph, part.graph->wanted());
  const std::map<NodeId, double> gathered = bytes_gathered(*part.graph, nodes);
  std::set<NodeId> assigned;
  for (const NodeId n : nodes)
    if (graph.nodes[n].op->name == "assign") assigned.insert(graph.nodes[n].inputs[0].node);
  for (const NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    if (node.op->name != "variable") continue;
    const auto& options = node.attrs.get<VariableOptions>("options");
    const TensorType& type = node.outputs[0];
    const auto reads = gathered.find(n);
    variables_.push_back({.bytes = extent_of(type.shape, rules, static_cast<double>(size_of(type.dtype))),
                          .dims = variable_dims(type.shape, rules),
                          .count = part.weight,
                          .is_slot = !options.slot_of.empty(),
                          .is_trainable = options.trainable,
                          .is_assigned = assigned.contains(n),
                          .bytes_gathered = reads == gathered.end() ? 0 : reads->second});
  }
}

DimSet WorkBound::heavy_dims() const {
  std::array<double, kMostDims> bytes{};
  double all = 0;
  for (const Variable& variable : variables_) {
    all += variable.count * variable.bytes.size;
    for (std::size_t i = 0; i < kMostDims; ++i)
      if (variable.bytes.dims >> i & 1) bytes[i] += variable.count * variable.bytes.size;
  }
  constexpr double kLeastShare = 0.01;
  DimSet heavy = 0;
  for (std::size_t i = 0; i < kMostDims; ++i)
    if (bytes[i] >= kLeastShare * all) heavy |= DimSet{1} << i;
  return heavy;
}

double WorkBound::variable_bytes(const Choice& choice) const {
  const Splits splits = splits_of(choice.axes, 1);
  double sum = 0;
  for (const Variable& variable : variables_) {
    double bytes = splits.local(variable.bytes);
    if ((variable.is_slot && choice.level >= 1) || (variable.is_trainable && choice.level >= 3))
      bytes /= stored_parts(choice, variable.dims).second;
    sum += variable.count * bytes;
  }
  return sum;
}

// Of work of the update, if the storage layout splits each of its operands over the axes that do not split it anyhow.
double WorkBound::stored_seconds(const Work& work, const Splits& splits, const Choice& choice) const {
  const auto local = [&](const Extent& extent) {
    double size = splits.local(extent);
    for (std::size_t i = 0; i < choice.axes.size(); ++i)
      if ((choice.stored >> i & 1) && !(choice.axes[i].dims & extent.dims)) size /= choice.axes[i].size;
    return size;
  };
  double bytes = 0;
  for (const Extent& extent : work.bytes) bytes += local(extent);
  if (work.kind != Work::Kind::kSweep) return 0;
  return std::max(bytes / fastest_sweep_, local(work.flops) / rates_.pointwise) * crowding_;
}

// A gradient may be scattered instead of reduced, over axes of the storage layout. Without latency: gradients are joined.
double WorkBound::gradient_seconds(const Partial& gradient, const Splits& splits, const Choice& choice,
                                   const MeshGroups& groups) const {
  AxisSet axes = 0;
  double bytes = splits.local(gradient.bytes);
  bool is_scattered = false;
  for (std::size_t i = 0; i < choice.axes.size(); ++i) {
    const AxisRole& axis = choice.axes[i];
    const bool is_summed = axis.dims & gradient.summed, is_stored = choice.stored >> i & 1;
    if (is_summed) axes |= AxisSet{1} << i;
    if (is_summed && is_stored) is_scattered = true;
    if (!is_summed && is_stored && !(axis.dims & gradient.bytes.dims)) bytes /= axis.size;
  }
  const double seconds = groups.all_reduce_seconds(axes, bytes) - groups.all_reduce_seconds(axes, 0);
  return gradient.trips * (is_scattered ? seconds / 2 : seconds);
}

double WorkBound::update_seconds(const Choice& choice, const MeshGroups& groups, bool may_store) const {
  const Splits splits = splits_of(choice.axes, 1);
  const auto seconds = [&](const Choice& one) {
    double sum = 0;
    for (std::size_t i = 0; i < works_.size(); ++i)
      if (works_[i].is_update) sum += apart_[i] * stored_seconds(works_[i], splits, one);
    if (!machine_.overlaps)
      for (const Part& part : parts_)
        for (const Partial& gradient : part.gradients)
          sum += part.weight * gradient_seconds(gradient, splits, one, groups);
    Choice zero = one;
    if (zero.stored) zero.level = 1;
    double gathers = gather_seconds(zero, groups);
    zero.level = 3;
    if (zero.stored) gathers = std::min(gathers, gather_seconds(zero, groups));
    return sum + gathers;
  };
  Choice one{.axes = choice.axes};
  double least = seconds(one);
  for (one.stored = 1; may_store && one.stored < AxisSet{1} << choice.axes.size(); ++one.stored)
    least = std::min(least, seconds(one));
  return least;
}

double WorkBound::gather_seconds(const Choice& choice, const MeshGroups& groups) const {
  if (machine_.overlaps || choice.level == 0) return 0;
  const Splits splits = splits_of(choice.axes, 1);
  double sum = 0;
  for (const Variable& variable : variables_) {
    if (variable.is_slot || !variable.is_trainable) continue;
    const AxisSet axes = stored_parts(choice, variable.dims).first;
    const double share = choice.level == 3 ? variable.bytes_gathered : variable.is_assigned ? 1 : 0;
    // Gathers may be joined, so their latency is left out.
    const double bytes = splits.local(variable.bytes) * share;
    sum += variable.count * (groups.all_gather_seconds(axes, bytes) - groups.all_gather_seconds(axes, 0));
  }
  return sum;
}

WorkBound::Splits WorkBound::splits_of(std::span<const AxisRole> axes, std::int64_t microbatches) const {
  Splits splits;
  splits.parts.fill(1);
  for (const AxisRole& axis : axes)
    for (DimSet rest = axis.dims; rest; rest &= rest - 1)
      splits.parts[static_cast<std::size_t>(std::countr_zero(rest))] *= axis.size;
  splits.microbatches = static_cast<double>(microbatches);
  splits.batch = batch_;
  if (batch_) splits.parts[static_cast<std::size_t>(std::countr_zero(batch_))] *= splits.microbatches;
  for (std::size_t i = 0; i < kMostDims; ++i)
    if (splits.parts[i] > 1) splits.split |= DimSet{1} << i;
  return splits;
}

double WorkBound::seconds(const Work& work, const Splits& splits) const {
  double seconds = 0;
  if (work.kind == Work::Kind::kProduct) {
    const double m = splits.local(work.m), n = splits.local(work.n), k = splits.local(work.k);
    const double products = splits.local(work.outer);
    if (const ProductRates* rates = product_rates(rates_, work.dtype)) {
      const auto ordered = [&](double rows, double columns) {
        const double sizes[3] = {rounded_up(rows, rates->tile[0]), rounded_up(columns, rates->tile[1]),
                                 rounded_up(k, rates->tile[2])};
        return products * 2 * sizes[0] * sizes[1] * sizes[2] / rate_at(rates->rate, sizes);
      };
      seconds = std::min(ordered(m, n), ordered(n, m));
    } else {
      seconds = 2 * products * m * n * k / machine_.peak(work.dtype);
    }
  } else if (work.kind == Work::Kind::kAttend) {
    seconds = splits.local(work.flops) / work.rate;
  } else {
    double bytes = 0;
    for (const Extent& extent : work.bytes) bytes += splits.local(extent);
    if (work.kind == Work::Kind::kRandom) seconds = bytes / rates_.random;
    else seconds = std::max(bytes / fastest_sweep_, splits.local(work.flops) / rates_.pointwise);
  }
  return (seconds + rates_.overhead) * crowding_ * splits.times(work.dims);
}

double WorkBound::fastest_seconds(const Work& work, const Splits& splits) const {
  double seconds = 0;
  if (work.kind == Work::Kind::kProduct) {
    const ProductRates* rates = product_rates(rates_, work.dtype);
    const double flops =
        2 * splits.local(work.m) * splits.local(work.n) * splits.local(work.k) * splits.local(work.outer);
    seconds = flops / (rates ? largest(rates->rate) : machine_.peak(work.dtype));
  } else if (work.kind == Work::Kind::kAttend) {
    seconds = splits.local(work.flops) / work.rate;
  } else if (work.kind == Work::Kind::kSweep) {
    for (const Extent& extent : work.bytes) seconds += splits.local(extent) / fastest_sweep_;
  }
  return seconds * crowding_;
}

double WorkBound::of_prefix(std::span<const AxisRole> axes, double rest) const {
  const Splits splits = splits_of(axes, 1);
  double sum = 0;
  for (std::size_t i = 0; i < works_.size(); ++i)
    if (!works_[i].is_update) sum += totals_[i] * fastest_seconds(works_[i], splits);
  return sum / rest;
}

double WorkBound::seconds(const Choice& choice, const MeshGroups& groups, bool ignores_update) const {
  const Splits splits = splits_of(choice.axes, choice.microbatches);
  double stored = 1;
  for (std::size_t i = 0; i < choice.axes.size(); ++i)
    if (choice.stored >> i & 1) stored *= choice.axes[i].size;
  std::vector<double> each(works_.size());
  double total = 0;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    each[i] = seconds(works_[i], splits);
    if (works_[i].is_update) each[i] = ignores_update ? 0 : each[i] / stored;
    total += totals_[i] * each[i];
  }
  const auto axes_of = [&](DimSet summed) {
    AxisSet set = 0;
    for (std::size_t i = 0; i < choice.axes.size(); ++i)
      if (choice.axes[i].dims & summed) set |= AxisSet{1} << i;
    return set;
  };
  for (const Part& part : parts_)
    for (const Partial& partial : part.partials) {
      const AxisSet axes = axes_of(partial.summed);
      if (!axes) continue;
      const double times = splits.times(partial.bytes.dims);
      double hidden = 0;
      for (std::size_t i = partial.begin; i < partial.end && machine_.overlaps; ++i)
        hidden += each[part.order[i].first];
      const double bytes = splits.local(partial.bytes);
      const double once =
          partial.is_gathered ? groups.all_gather_seconds(axes, bytes) : groups.all_reduce_seconds(axes, bytes);
      const double wire = once * times;
      total += part.weight * partial.trips * std::max(0.0, wire - hidden);
    }
  return total + machine_.step_seconds * crowding_;
}

}  // namespace weft
