#include <algorithm>

#include "base/index.h"
#include "language/shape_math.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

bool contains(const Axes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// The shard's axes in runs, in their order: those that the all_reduce joins are reduced while they are scattered, the
// others are only split. The axes of a run become minor to those before it, as they are in the shard.
std::vector<Operation> steps_of(const AllReduce& reduce, const Shard& shard) {
  std::vector<Operation> steps;
  Axes run, rest = reduce.axes;
  for (std::size_t i = 0; i < shard.axes.size(); ++i) {
    const bool scatters = contains(reduce.axes, shard.axes[i]);
    run.push_back(shard.axes[i]);
    std::erase(rest, shard.axes[i]);
    if (i + 1 < shard.axes.size() && contains(reduce.axes, shard.axes[i + 1]) == scatters) continue;
    if (scatters) steps.push_back(ReduceScatter{reduce.how, shard.dim, std::move(run)});
    else steps.push_back(Shard{shard.dim, std::move(run)});
    run.clear();
  }
  if (!rest.empty()) steps.push_back(AllReduce{reduce.how, std::move(rest)});
  return steps;
}

class Scattering {
 public:
  explicit Scattering(Program& program)
      : p_(program), uses_(program), strides_(program), instead_(program.body.size()), removed_(program.body.size()) {}

  bool run() {
    bool changed = false;
    for (std::size_t i = 0; i < p_.body.size(); ++i) changed = scatter(i) || changed;
    if (changed) rewrite();
    return changed;
  }

 private:
  bool scatter(std::size_t i) {
    const auto* reduce = p_.body[i].as<AllReduce>();
    if (!reduce || p_.body[i].inputs.size() != 1) return false;
    const int user = uses_.only_user(p_.body[i].outputs[0]);
    const auto* shard = user < 0 ? nullptr : p_.body[at(user)].as<Shard>();
    if (!shard) return false;
    const auto joined_here = [&](int axis) { return contains(reduce->axes, axis); };
    if (std::none_of(shard->axes.begin(), shard->axes.end(), joined_here)) return false;
    const ValueId y = p_.body[at(user)].outputs[0];
    const std::vector<Operation> steps = steps_of(*reduce, *shard);
    const bool dense = !std::holds_alternative<Shard>(steps.back());
    if (is_viewed(y) && !(dense && (strides_.is_dense(y) || lay_views_of(y)))) return false;
    replace(i, steps, y);
    removed_[i] = removed_[at(user)] = true;
    return true;
  }

  // Views of a value count on its strides.
  bool is_viewed(ValueId id) const {
    return std::any_of(uses_.users(id).begin(), uses_.users(id).end(),
                       [&](int user) { return is_view(p_.body[at(user)]); });
  }

  // The sizes of dims other than one, and their strides.
  static std::vector<std::pair<std::int64_t, std::int64_t>> steps_through(const Shape& shape,
                                                                          const std::vector<std::int64_t>& strides) {
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (shape[i].size != 1) steps.emplace_back(shape[i].size, strides[i]);
    return steps;
  }

  // Views that only name the value's dims anew, or add some of one element, lie as the value does: with y they become
  // dense. False, and nothing done, if there are others.
  bool lay_views_of(ValueId y) {
    const auto lies = steps_through(p_.values[y].shape, strides_.of(y));
    std::vector<Instr*> views;
    for (int user : uses_.users(y)) {
      Instr& instr = p_.body[at(user)];
      if (!is_view(instr)) continue;
      const auto* view = instr.as<View>();
      if (!view || view->offset != 0 || is_viewed(instr.outputs[0])) return false;
      if (steps_through(p_.values[instr.outputs[0]].shape, view->strides) != lies) return false;
      views.push_back(&instr);
    }
    for (Instr* view : views)
      std::get<View>(view->operation).strides = dense_strides(p_.values[view->outputs[0]].shape);
    return true;
  }

  void replace(std::size_t i, const std::vector<Operation>& steps, ValueId y) {
    const Instr old = p_.body[i];
    ValueId x = old.inputs[0];
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const bool last = step + 1 == steps.size();
      const ValueType type = result_of(steps[step], type_of(p_, x), p_.mesh);
      const ValueId out = last ? y : add_value(p_, p_.values[y].name, type);
      instead_[i].push_back({steps[step], {x}, {out}, old.origin});
      x = out;
    }
  }

  void rewrite() {
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      std::move(instead_[i].begin(), instead_[i].end(), std::back_inserter(body));
      if (!removed_[i]) body.push_back(std::move(p_.body[i]));
    }
    p_.body = std::move(body);
  }

  Program& p_;
  Uses uses_;
  ValueStrides strides_;
  std::vector<std::vector<Instr>> instead_;
  std::vector<bool> removed_;
};

// The names that a view gives to what an all_reduce gives, if it does no more and a shard follows: the view can as well
// come before. Null if not.
const Instr* rename_after(const Program& p, const Uses& uses, const Instr& reduce) {
  if (!reduce.is<AllReduce>() || reduce.inputs.size() != 1) return nullptr;
  const int user = uses.only_user(reduce.outputs[0]);
  const Instr* view = user < 0 ? nullptr : &p.body[at(user)];
  const auto* operation = view ? view->as<View>() : nullptr;
  if (!operation || operation->offset != 0) return nullptr;
  const int next = uses.only_user(view->outputs[0]);
  if (next < 0 || !p.body[at(next)].is<Shard>()) return nullptr;
  const Value &from = p.values[reduce.outputs[0]], &to = p.values[view->outputs[0]];
  bool alike = from.shape.rank() == to.shape.rank() && from.sharding == to.sharding &&
               operation->strides == dense_strides(from.shape);
  for (std::size_t i = 0; alike && i < from.shape.rank(); ++i) alike = from.shape[i].size == to.shape[i].size;
  return alike ? view : nullptr;
}

void rename_first(Program& p) {
  const Uses uses(p);
  const ValueStrides strides(p);
  std::vector<Instr> body;
  body.reserve(p.body.size());
  std::vector<bool> moved(p.body.size());
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    if (moved[i]) continue;
    Instr& instr = p.body[i];
    const Instr* view = rename_after(p, uses, instr);
    if (!view) {
      body.push_back(std::move(instr));
      continue;
    }
    moved[at(view - p.body.data())] = true;
    const ValueId x = instr.inputs[0], y = view->outputs[0];
    const ValueId renamed =
        add_value(p, p.values[y].name, {p.values[x].dtype, p.values[y].shape, p.values[x].sharding});
    body.push_back({View{0, strides.of(x)}, {x}, {renamed}, view->origin});
    body.push_back({std::move(instr.operation), {renamed}, {y}, std::move(instr.origin)});
  }
  p.body = std::move(body);
}

}  // namespace

Program reduce_then_scatter(Program p, const PassOptions&) {
  if (std::ranges::none_of(p.body, [](const Instr& instr) { return instr.is<AllReduce>(); })) return p;
  rename_first(p);
  // What is left to reduce after a scatter may meet a shard of its own.
  while (Scattering(p).run()) {
  }
  return p;
}

}  // namespace weft
