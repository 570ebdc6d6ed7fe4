#include <algorithm>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

bool contains(const Axes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// The shard's axes in runs, in their order: those that the all_reduce joins are reduced while they are scattered, the
// others are only split. The axes of a run become minor to those before it, as they are in the shard.
std::vector<Work> steps_of(const AllReduce& reduce, const Shard& shard) {
  std::vector<Work> steps;
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
      : p_(program),
        uses_(program),
        strides_(strides_of(program)),
        instead_(program.body.size()),
        removed_(program.body.size()) {}

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
    const std::vector<Work> steps = steps_of(*reduce, *shard);
    if (is_viewed(y) && !(is_dense(y) && !std::holds_alternative<Shard>(steps.back()))) return false;
    replace(i, steps, y);
    removed_[i] = removed_[at(user)] = true;
    return true;
  }

  bool is_dense(ValueId id) const { return strides_[at(id)] == dense_strides(p_.values[at(id)].shape); }

  // Views of a value count on its strides.
  bool is_viewed(ValueId id) const {
    return std::any_of(uses_.users[at(id)].begin(), uses_.users[at(id)].end(),
                       [&](int user) { return is_view(p_.body[at(user)]); });
  }

  void replace(std::size_t i, const std::vector<Work>& steps, ValueId y) {
    const Instr old = p_.body[i];
    ValueId x = old.inputs[0];
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const bool last = step + 1 == steps.size();
      const ValueType type = result_of(steps[step], type_of(p_, x), p_.mesh);
      const ValueId out = last ? y : add_value(p_, p_.values[at(y)].name, type);
      instead_[i].push_back({steps[step], {x}, {out}, old.origin});
      x = out;
    }
  }

  void rewrite() {
    std::vector<Instr> body;
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      std::move(instead_[i].begin(), instead_[i].end(), std::back_inserter(body));
      if (!removed_[i]) body.push_back(std::move(p_.body[i]));
    }
    p_.body = std::move(body);
  }

  Program& p_;
  Uses uses_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<std::vector<Instr>> instead_;
  std::vector<bool> removed_;
};

}  // namespace

Program reduce_then_scatter(Program p, const PassOptions&) {
  // What is left to reduce after a scatter may meet a shard of its own.
  while (Scattering(p).run()) {
  }
  return p;
}

}  // namespace weft
