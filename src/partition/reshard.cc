// Dijkstra's search over the shardings of one value. States are created when they are reached: their number grows with
// the factorial of the axes in use, but a path is rarely longer than three steps.
#include "partition/reshard.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "base/index.h"
#include "partition/reshard_moves.h"
#include "weft/error.h"

namespace weft {

namespace {

// The cost to minimise, in this order. Peak is a maximum along the path, the other fields are sums.
struct Cost {
  std::int64_t bytes = 0, collectives = 0, peak = 0, steps = 0;
  auto operator<=>(const Cost&) const = default;
};

Cost after(const Cost& cost, const Move& move, std::int64_t elements) {
  return {cost.bytes + move.bytes, cost.collectives + (std::holds_alternative<Shard>(move.operation) ? 0 : 1),
          std::max(cost.peak, elements), cost.steps + 1};
}

using StateId = Id<struct State>;

struct State {
  Move move;     // the move that reached it
  StateId from;  // the previous state
  Cost cost;
  bool settled = false;

  const Sharding& sharding() const { return move.to; }
};

class Search {
 public:
  Search(const Shape& global, DType dtype, const Mesh& mesh, Sharding have, Sharding want)
      : moves_(global, dtype, mesh, have, want), have_(std::move(have)), want_(std::move(want)) {}

  std::vector<ReshardStep> path() {
    reach({{}, 0, have_}, {}, {.peak = moves_.local_elements(have_)});
    while (!open_.empty()) {
      const StateId id = open_.top().second;
      open_.pop();
      if (states_[id].settled) continue;
      states_[id].settled = true;
      if (states_[id].sharding() == want_) return path_to(id);
      for (Move& move : moves_.from(states_[id].sharding())) {
        const Cost cost = after(states_[id].cost, move, moves_.local_elements(move.to));
        reach(std::move(move), id, cost);
      }
    }
    throw InternalError("there is no path between two shardings");
  }

 private:
  void reach(Move move, StateId from, const Cost& cost) {
    const auto [found, is_new] = ids_.try_emplace({move.to.dims, move.to.partial}, states_.end_id());
    const StateId id = found->second;
    if (is_new) states_.push_back({std::move(move), from, cost});
    else if (cost < states_[id].cost) states_[id] = {std::move(move), from, cost};
    else return;
    open_.push({cost, id});
  }

  std::vector<ReshardStep> path_to(StateId id) const {
    std::vector<ReshardStep> steps;
    while (states_[id].from) {
      const State& state = states_[id];
      const Sharding& before = states_[state.from].sharding();
      steps.push_back({moves_.completed(state.move, before), state.move.bytes, state.sharding()});
      id = state.from;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  using Entry = std::pair<Cost, StateId>;
  Moves moves_;
  Sharding have_, want_;
  Indexed<StateId, State> states_;
  std::map<std::pair<std::vector<Axes>, Axes>, StateId> ids_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

// Removes axes of size 1: they do not change where data is.
Sharding essential(const Sharding& sharding, const Mesh& mesh) {
  Sharding result = sharding;
  const auto trivial = [&](int axis) { return mesh.axes()[at(axis)].size == 1; };
  for (Axes& axes : result.dims) std::erase_if(axes, trivial);
  std::erase_if(result.partial, trivial);
  if (result.partial.empty()) result.pending = Reduce::kSum;
  return result;
}

std::vector<ReshardStep> find_path(const Shape& global, DType dtype, const Sharding& have, const Sharding& want,
                                   const Mesh& mesh) {
  const Sharding from = essential(have, mesh), to = essential(want, mesh);
  internal_check(std::includes(from.partial.begin(), from.partial.end(), to.partial.begin(), to.partial.end()) &&
                     (to.partial.empty() || from.pending == to.pending),
                 "a reshard to a pending reduction that the value does not have");
  std::vector<ReshardStep> steps = Search(global, dtype, mesh, from, to).path();
  const ReshardStep rename{Permute{{}, {0}}, 0, from};
  if (!(have == from) && !steps.empty()) steps.insert(steps.begin(), rename);
  const Sharding& last = steps.empty() ? have : steps.back().after;
  if (!(last == want)) steps.push_back({rename.operation, 0, want});
  return steps;
}

// What a path depends on.
struct Question {
  Shape global;
  DType dtype = DType::kF32;
  Sharding have, want;
  Mesh mesh;
  bool operator==(const Question&) const = default;
};

// The sizes and axes: enough to tell most questions apart.
struct QuestionHash {
  std::size_t operator()(const Question& q) const {
    std::size_t hash = static_cast<std::size_t>(q.dtype);
    const auto add = [&](std::int64_t number) { hash = hash * 1'000'003 + static_cast<std::size_t>(number) + 1; };
    for (const Dim& dim : q.global) add(dim.size);
    for (const Sharding* sharding : {&q.have, &q.want}) {
      for (const Axes& axes : sharding->dims) {
        add(-1);
        for (int axis : axes) add(axis);
      }
      for (int axis : sharding->partial) add(axis);
    }
    return hash;
  }
};

}  // namespace

std::vector<ReshardStep> reshard_path(const Shape& global, DType dtype, const Sharding& have, const Sharding& want,
                                      const Mesh& mesh) {
  if (have == want) return {};
  thread_local std::unordered_map<Question, std::vector<ReshardStep>, QuestionHash> known;
  constexpr std::size_t kMostKnown = 10'000;
  Question question{global, dtype, have, want, mesh};
  const auto found = known.find(question);
  if (found != known.end()) return found->second;
  if (known.size() >= kMostKnown) known.clear();
  return known[std::move(question)] = find_path(global, dtype, have, want, mesh);
}

ValueId reshard(Builder& builder, ValueId x, const Sharding& want) {
  if (builder.value(x).sharding == want) return x;
  const ValueType type = builder.type(x);
  const Shape global = global_shape(type.shape, type.sharding, builder.mesh());
  for (const ReshardStep& step : reshard_path(global, type.dtype, type.sharding, want, builder.mesh())) {
    if (const auto* w = std::get_if<Shard>(&step.operation)) x = builder.shard(x, w->dim, w->axes);
    if (const auto* w = std::get_if<AllReduce>(&step.operation)) x = builder.all_reduce(x, w->axes);
    if (const auto* w = std::get_if<ReduceScatter>(&step.operation)) x = builder.reduce_scatter(x, w->dim, w->axes);
    if (const auto* w = std::get_if<AllGather>(&step.operation)) x = builder.all_gather(x, w->dim, w->axes);
    if (const auto* w = std::get_if<AllToAll>(&step.operation)) x = builder.all_to_all(x, w->split, w->gather, w->axes);
    if (const auto* w = std::get_if<Permute>(&step.operation)) {
      if (!w->axes.empty()) x = builder.permute(x, w->axes, w->to);
      x = builder.relabel(x, step.after);
    }
  }
  internal_check(builder.value(x).sharding == want, "a reshard that ends elsewhere");
  return x;
}

}  // namespace weft
