#include "plan/search.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/index.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft {

namespace {

bool respects_pins(DimSet role, const std::string& axis, const Demands& demands) {
  return std::ranges::all_of(demands.pinned, [&](const PinnedDim& pin) {
    const bool is_pinned = std::ranges::find(pin.axes, axis) != pin.axes.end();
    return static_cast<bool>(role >> pin.dim & 1) == is_pinned;
  });
}

// Whether another mesh of the list has a candidate with the same program: two axes that split and store the same as one
// axis, or two axes of one size in the other order.
bool is_repeated(const Choice& choice, const Demands& demands) {
  const auto is_named = [&](std::size_t i) { return i < choice.names.size() && !choice.names[i].empty(); };
  for (std::size_t i = 0; i < choice.axes.size(); ++i)
    for (std::size_t k = i + 1; k < choice.axes.size(); ++k) {
      if (demands.order_matters && k > i + 1) break;
      const AxisRole &a = choice.axes[i], &b = choice.axes[k];
      const bool a_stored = choice.stored >> i & 1, b_stored = choice.stored >> k & 1;
      if (is_named(i) || is_named(k)) continue;
      if (a.dims == b.dims && a_stored == b_stored) return true;
      if (demands.order_matters || a.size != b.size) continue;
      if (std::pair(a.dims, a_stored) > std::pair(b.dims, b_stored)) return true;
    }
  return false;
}

bool divides(const SplitRules& rules, const std::vector<AxisRole>& axes, std::size_t dim, std::int64_t more = 1) {
  std::int64_t parts = more;
  for (const AxisRole& axis : axes)
    if (axis.dims >> dim & 1) parts *= axis.size;
  return rules.divisor(dim) % parts == 0;
}

bool divides(const SplitRules& rules, const std::vector<AxisRole>& axes) {
  for (std::size_t dim = 0; dim < rules.dims().size(); ++dim)
    if (!divides(rules, axes, dim)) return false;
  return true;
}

std::vector<int> sizes_of(const std::vector<AxisRole>& axes) {
  std::vector<int> sizes;
  for (const AxisRole& axis : axes) sizes.push_back(axis.size);
  return sizes;
}

std::string key_of(const PlanChoice& choice, const Demands& demands) {
  const bool by_limit = choice.recompute == Recompute::kCompiler;
  return str(choice.mesh, "|", choice.layout.text(), "|", choice.store.text(), "|", choice.store.level(), "|",
             choice.microbatches, "|", static_cast<int>(choice.recompute), "|", by_limit ? demands.memory_bytes : 0);
}

double value_of(const Prediction& prediction, const Demands& demands) {
  return demands.objective == Objective::kTime ? prediction.seconds : static_cast<double>(prediction.bytes());
}

}  // namespace

bool fits(const Prediction& prediction, const Demands& demands) {
  return demands.memory_bytes == 0 || prediction.bytes() <= demands.memory_bytes;
}

struct Search::Node {
  enum class Kind : std::uint8_t { kAxes, kLayout, kVariant, kCandidate };
  Kind kind = Kind::kAxes;
  double bound = 0;
  std::int64_t order = 0;      // of two equal bounds, the later node is opened first: it is closer to a candidate
  Choice choice = {};          // of kAxes: the axes that have a role
  std::vector<int> rest = {};  // of kAxes: the sizes of the axes that have none yet

  bool operator<(const Node& other) const { return bound != other.bound ? bound > other.bound : order < other.order; }
};

struct Search::Queue {
  std::priority_queue<Node> nodes;
  std::int64_t count = 0;

  void push(Node node) {
    node.order = count++;
    nodes.push(std::move(node));
  }
};

const MeshGroups& Search::groups(const std::vector<int>& sizes) {
  return groups_.try_emplace(sizes, facts_.machine, sizes).first->second;
}

double Search::bound_of(const Choice& choice, bool ignores_update) {
  const WorkBound& bound = choice.recompute == Recompute::kLayers ? *facts_.recomputed : facts_.bound;
  return bound.seconds(choice, groups(sizes_of(choice.axes)), ignores_update);
}

// The next axis takes each role that it may have.
void Search::open(const Node& node, const Demands& demands, Queue& queue) {
  const std::size_t axis = node.choice.axes.size();
  const int size = node.rest.front();
  double after = 1;
  for (std::size_t i = 1; i < node.rest.size(); ++i) after *= node.rest[i];
  for (const DimSet role : facts_.rules.roles(size, demands.allowed)) {
    if (!respects_pins(role, axis < node.choice.names.size() ? node.choice.names[axis] : "", demands)) continue;
    Node next{.kind = Node::Kind::kAxes, .choice = node.choice, .rest = {node.rest.begin() + 1, node.rest.end()}};
    next.choice.axes.push_back({size, role});
    if (!divides(facts_.rules, next.choice.axes)) continue;
    if (next.rest.empty()) {
      add_layout(next, demands, queue);
    } else {
      if (demands.objective == Objective::kTime) next.bound = facts_.bound.of_prefix(next.choice.axes, after);
      queue.push(std::move(next));
    }
  }
}

void Search::add_layout(const Node& node, const Demands& demands, Queue& queue) {
  Node layout = node;
  layout.kind = Node::Kind::kLayout;
  if (demands.objective == Objective::kTime) layout.bound = bound_of(layout.choice, true);
  queue.push(std::move(layout));
}

// Numbers of microbatches that divide what a processor has of the batch.
void Search::add_variants(const Node& node, double floor, const Demands& demands, Queue& queue) {
  const StepFamily& family = facts_.graphs.family();
  const int batch = facts_.rules.find(family.batch);
  for (const std::int64_t microbatches : family.microbatches) {
    if (microbatches > 1 && (batch < 0 || !divides(facts_.rules, node.choice.axes, at(batch), microbatches))) continue;
    for (const Recompute recompute : {Recompute::kNone, Recompute::kLayers}) {
      if (recompute == Recompute::kLayers && !facts_.recomputed) continue;
      Node next = node;
      next.kind = Node::Kind::kVariant;
      next.choice.microbatches = microbatches;
      next.choice.recompute = recompute;
      if (demands.objective == Objective::kTime) next.bound = std::max(floor, bound_of(next.choice, true));
      queue.push(std::move(next));
    }
  }
}

// Level 2 differs from level 1 only where microbatches are accumulated.
void Search::add_stores(const Node& node, const Demands& demands, Queue& queue) {
  const std::size_t axes = node.choice.axes.size();
  for (AxisSet stored = 0; stored < AxisSet{1} << axes; ++stored) {
    for (int level = stored ? 1 : 0; level <= (stored ? 3 : 0); ++level) {
      if (stored && !demands.allow_store) continue;
      if (level == 2 && node.choice.microbatches == 1) continue;
      Node next = node;
      next.kind = Node::Kind::kCandidate;
      next.choice.stored = stored;
      next.choice.level = level;
      if (demands.merges_equal_axes && is_repeated(next.choice, demands)) continue;
      const auto bytes = facts_.bound.variable_bytes(next.choice);
      if (demands.memory_bytes > 0 && bytes > static_cast<double>(demands.memory_bytes)) continue;
      next.bound = demands.objective == Objective::kTime ? std::max(node.bound, bound_of(next.choice, false)) : bytes;
      queue.push(std::move(next));
    }
  }
}

std::optional<Priced> Search::price(const Choice& choice, const Demands& demands) {
  Priced priced{choice, named(choice, facts_.rules, facts_.graphs.family().batch), 0};
  const std::string key = key_of(priced.named, demands);
  std::optional<FoldedPrediction> prediction;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = prices_.find(key); found != prices_.end()) {
      prediction = found->second;
      if (!prediction) return std::nullopt;
    }
  }
  if (!prediction) {
    try {
      prediction = facts_.predictor.folded(priced.named, demands.memory_bytes);
    } catch (const UserError&) {
      // Not a candidate: the partitioner refuses the layout, or the compiler cannot meet the limit.
    } catch (const InternalError& error) {
      const std::lock_guard lock(mutex_);
      failures_.push_back(str(priced.named.text(), ": ", error.text().what));
    }
    const std::lock_guard lock(mutex_);
    prices_[key] = prediction;
  }
  if (!prediction) return std::nullopt;
  priced.named.predicted = prediction->predicted;
  priced.value = value_of(prediction->predicted, demands);
  priced.floor = prediction->floor;
  return priced;
}

std::vector<std::optional<Priced>> Search::price_all(const std::vector<Node>& nodes, const Demands& demands) {
  std::vector<std::optional<Priced>> all(nodes.size());
  workers_.run(nodes.size(), [&](std::size_t i) { all[i] = price(nodes[i].choice, demands); });
  return all;
}

Found Search::run(const Demands& demands, std::size_t keep, const std::function<bool()>& stop) {
  Queue queue;
  Found found;
  for (const MeshShape& mesh : demands.meshes) {
    Node root{.rest = mesh.sizes};
    root.choice.names = mesh.names;
    if (mesh.sizes.empty()) add_layout(root, demands, queue);
    else queue.push(std::move(root));
  }
  const auto add = [&](const Priced& priced) {
    found.priced.push_back(priced);
    if (!fits(priced.named.predicted, demands)) return;
    const auto place = std::ranges::upper_bound(found.best, priced.value, {}, &Priced::value);
    found.best.insert(place, priced);
    if (found.best.size() > keep) found.best.pop_back();
  };
  const auto take = [&](const Priced& priced) {
    add(priced);
    if (fits(priced.named.predicted, demands) || priced.choice.recompute != Recompute::kNone) return;
    // Repeating work to save memory can only take longer.
    Node smaller{.kind = Node::Kind::kCandidate, .bound = priced.named.predicted.seconds, .choice = priced.choice};
    if (demands.objective == Objective::kMemory) smaller.bound = facts_.bound.variable_bytes(priced.choice);
    smaller.choice.recompute = Recompute::kCompiler;
    queue.push(std::move(smaller));
  };
  const auto limit = [&] {
    return found.best.empty() ? std::numeric_limits<double>::infinity() : found.best.front().value;
  };
  while (!queue.nodes.empty() && queue.nodes.top().bound < limit()) {
    if (stop && stop()) {
      found.stopped = true;
      break;
    }
    std::vector<Node> reached;
    while (!queue.nodes.empty() && reached.size() < workers_.count() && queue.nodes.top().bound < limit()) {
      Node node = queue.nodes.top();
      queue.nodes.pop();
      if (node.kind == Node::Kind::kAxes) open(node, demands, queue);
      else if (node.kind == Node::Kind::kVariant) add_stores(node, demands, queue);
      else reached.push_back(std::move(node));
    }
    if (reached.empty()) break;
    const std::vector<std::optional<Priced>> prices = price_all(reached, demands);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (!prices[i]) continue;
      if (reached[i].kind == Node::Kind::kLayout) add_variants(reached[i], prices[i]->floor, demands, queue);
      else take(*prices[i]);
    }
  }
  found.bound = std::min(limit(), queue.nodes.empty() ? limit() : queue.nodes.top().bound);
  found.bounded = queue.count;
  found.failures = failures_;
  return found;
}

}  // namespace weft
