#include "plan/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "language/op_def.h"
#include "plan/menu.h"
#include "weft/error.h"

namespace weft {

namespace {

// Programs for each worker. Workers that are done wait for the last one, so more is better; but what is compiled now may
// not be needed after the next price.
constexpr std::size_t kCompiledAtOnce = 8;
constexpr std::size_t kPricedAtOnce = 64;  // in all

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

bool has_loops(const WantedGraph& graph) {
  return std::ranges::any_of(nodes_for(graph.data(), graph.wanted()),
                             [&](NodeId n) { return graph.data().nodes[n].op->name == "loop"; });
}

// Whether the rate of a table falls as the size of its first axis grows.
bool falls(const Table& table) {
  if (table.axes.empty()) return false;
  const std::size_t rows = table.axes[0].size(), columns = table.values.size() / rows;
  for (std::size_t i = columns; i < table.values.size(); ++i)
    if (table.values[i] < table.values[i - columns]) return true;
  return false;
}

// Whether two halves of the work may take less time than the whole: what caches hold, and products that are slower for
// more rows.
bool less_may_be_faster(const Rates& rates) {
  return !rates.sweep.axes.empty() ||
         std::ranges::any_of(rates.products, [](const ProductRates& one) { return falls(one.rate); });
}

double value_of(const Prediction& prediction, const Demands& demands) {
  return demands.objective == Objective::kTime ? prediction.seconds : static_cast<double>(prediction.bytes());
}

}  // namespace

bool fits(const Prediction& prediction, const Demands& demands) {
  return demands.memory_bytes == 0 || prediction.bytes() <= demands.memory_bytes;
}

struct Search::Node {
  enum class Kind : std::uint8_t { kAxes, kLayout, kCandidate };
  Kind kind = Kind::kAxes;
  double bound = 0;
  std::int64_t order = 0;      // of two equal bounds, the later node is opened first: it is closer to a candidate
  Choice choice = {};          // of kAxes: the axes that have a role
  std::vector<int> rest = {};  // of kAxes: the sizes of the axes that have none yet
  bool has_update = false;     // of kLayout: the bound includes the update

  bool operator<(const Node& other) const { return bound != other.bound ? bound > other.bound : order < other.order; }
};

Search::Search(const Facts& facts)
    : facts_(facts), patterns_({facts.rules, facts.graphs, facts.machine, facts.target}) {}

double Search::bound_of(const Choice& choice, bool ignores_update) {
  return facts_.bound.seconds(choice, patterns_.groups(sizes_of(choice.axes)), ignores_update);
}

PlanChoice Search::named(const Priced& priced) const {
  PlanChoice choice = weft::named(priced.choice, facts_.rules, facts_.graphs.family().batch);
  choice.predicted = priced.predicted;
  return choice;
}

std::optional<Priced> Search::price(const Choice& choice, const Demands& demands) {
  std::optional<Prediction> prediction;
  if (choice.recompute != Recompute::kCompiler) {
    if (const std::optional<Price> price = patterns_.price(choice)) prediction = price->predicted;
  } else {
    // The compiler repeats what the limit demands, which depends on every size.
    const PlanChoice by_name = weft::named(choice, facts_.rules, facts_.graphs.family().batch);
    const std::string key = str(by_name.text(), "|", demands.memory_bytes);
    const auto known = [&] {
      const std::lock_guard lock(mutex_);
      const auto found = recomputed_.find(key);
      if (found != recomputed_.end()) prediction = found->second;
      return found != recomputed_.end();
    };
    if (!known()) {
      try {
        prediction = facts_.predictor.folded(by_name, demands.memory_bytes);
      } catch (const UserError&) {
        // Not a candidate: the compiler cannot meet the limit.
      } catch (const InternalError& error) {
        const std::lock_guard lock(mutex_);
        failures_.push_back(str(by_name.text(), ": ", error.text().what));
      }
      const std::lock_guard lock(mutex_);
      recomputed_[key] = prediction;
    }
  }
  if (!prediction) return std::nullopt;
  return Priced{choice, *prediction, value_of(*prediction, demands)};
}

// One search.
class Search::Run {
 public:
  Run(Search& search, const Demands& demands, std::size_t keep)
      : search_(search),
        facts_(search.facts_),
        patterns_(search.patterns_),
        demands_(demands),
        keep_(keep),
        by_time_(demands.objective == Objective::kTime),
        has_loops_(has_loops(*facts_.graphs.parts(1, false)->front().graph)),
        halves_may_pay_(less_may_be_faster(facts_.machine.rates_of(processors_of(demands)))) {}

  Found run(const std::function<bool()>& stop) {
    const std::vector<Priced> menu = price_menu();
    for (const MeshShape& mesh : demands_.meshes) {
      Node root{.rest = mesh.sizes};
      root.choice.names = mesh.names;
      if (mesh.sizes.empty()) add_layout(root);
      else push(std::move(root));
    }
    while (true) {
      if (stop && stop()) {
        found_.stopped = true;
        break;
      }
      if (queue_.empty() || queue_.top().bound >= limit()) {
        if (!ready_.empty()) price_ready();
        else if (!waiting_.empty()) compile_waiting();
        else break;
        continue;
      }
      Node node = queue_.top();
      queue_.pop();
      visit(std::move(node));
      if (keys_.size() >= kCompiledAtOnce * search_.workers_.count()) compile_waiting();
    }
    price_ready();
    double least = queue_.empty() ? limit() : queue_.top().bound;
    for (const Node& node : waiting_) least = std::min(least, node.bound);
    found_.bound = std::min(limit(), least);
    if (!found_.best.empty()) add_menu(menu);
    found_.bounded = count_;
    found_.compiled = patterns_.compiled();
    found_.failures = search_.failures_;
    found_.failures.insert(found_.failures.end(), patterns_.failures().begin(), patterns_.failures().end());
    return std::move(found_);
  }

 private:
  static int processors_of(const Demands& demands) {
    int product = 1;
    for (const int size : demands.meshes.front().sizes) product *= size;
    return product;
  }

  double limit() const {
    return found_.best.empty() ? std::numeric_limits<double>::infinity() : found_.best.front().value;
  }

  void push(Node node) {
    node.order = count_++;
    if (node.bound < limit()) queue_.push(std::move(node));
  }

  void visit(Node node) {
    if (node.kind == Node::Kind::kAxes) open_axes(node);
    else if (node.kind == Node::Kind::kLayout) open_layout(std::move(node));
    else open_candidate(std::move(node));
  }

  // Puts the node aside until the programs for this choice are there. False: they are.
  bool waits_for(const Node& node, const Choice& choice) {
    std::string key = choice.recompute == Recompute::kCompiler ? str("compiler ", count_++) : patterns_.needs(choice);
    if (key.empty()) return false;
    keys_.insert(std::move(key));
    waiting_.push_back(node);
    needed_.push_back(choice);
    return true;
  }

  void compile_waiting() {
    std::vector<Node> nodes = std::exchange(waiting_, {});
    std::vector<Choice> needed = std::exchange(needed_, {});
    keys_.clear();
    std::vector<Choice> patterns;
    std::vector<Node> by_compiler;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].bound >= limit()) continue;
      if (nodes[i].choice.recompute == Recompute::kCompiler && nodes[i].choice == needed[i]) {
        by_compiler.push_back(std::move(nodes[i]));
        continue;
      }
      patterns.push_back(std::move(needed[i]));
      queue_.push(std::move(nodes[i]));
    }
    patterns_.prepare(patterns, search_.workers_);
    std::vector<std::optional<Priced>> prices(by_compiler.size());
    if (!prices.empty())
      search_.workers_.run(prices.size(),
                           [&](std::size_t i) { prices[i] = search_.price(by_compiler[i].choice, demands_); });
    for (const std::optional<Priced>& priced : prices)
      if (priced) take(*priced);
  }

  // Candidates whose programs are there, by all workers.
  void price_ready() {
    if (ready_.empty()) return;
    std::vector<Node> nodes = std::exchange(ready_, {});
    std::erase_if(nodes, [&](const Node& node) { return node.bound >= limit(); });
    std::vector<std::optional<Priced>> prices(nodes.size());
    const std::size_t parts = search_.workers_.count();
    search_.workers_.run(parts, [&](std::size_t part) {
      for (std::size_t i = part; i < nodes.size(); i += parts) prices[i] = search_.price(nodes[i].choice, demands_);
    });
    for (const std::optional<Priced>& priced : prices)
      if (priced) take(*priced);
  }

  // The choices of the menu that fit, the best first: the first limit of the search.
  std::vector<Priced> price_menu() {
    std::vector<Priced> fitting;
    std::vector<Choice> open;
    for (const MeshShape& mesh : demands_.meshes)
      for (Choice& choice : menu_of({facts_.rules, facts_.graphs.family().batch, facts_.bound.heavy_dims()}, mesh.sizes,
                                    demands_.allowed, demands_.allow_store)) {
        choice.names = mesh.names;
        if (respects_pins(choice) && !(demands_.merges_equal_axes && is_repeated(choice, demands_)))
          open.push_back(std::move(choice));
      }
    const int batch = facts_.rules.find(facts_.graphs.family().batch);
    for (const std::int64_t microbatches : facts_.graphs.family().microbatches) {
      for (Choice& choice : open) choice.microbatches = microbatches;
      std::erase_if(open, [&](const Choice& c) { return microbatches > 1 && !divides_batch(c, batch, microbatches); });
      patterns_.prepare(open, search_.workers_);
      std::vector<Choice> still_open;  // more microbatches may be worth it
      for (const Choice& choice : open) {
        const std::optional<Priced> priced = search_.price(choice, demands_);
        if (!priced) continue;
        menu_.push_back(choice);
        take(*priced);
        if (fits(priced->predicted, demands_)) fitting.push_back(*priced);
        if (has_loops_ || halves_may_pay_ || !by_time_ || !fits(priced->predicted, demands_))
          still_open.push_back(choice);
      }
      open = std::move(still_open);
    }
    std::ranges::stable_sort(fitting, {}, &Priced::value);
    return fitting;
  }

  // The whole programs decide among the best candidates and the best of the menu: its first one, and others that are near
  // the best candidate by the model.
  void add_menu(const std::vector<Priced>& menu) {
    constexpr double kNear = 1.05;
    const double near = kNear * found_.best.front().value;
    const std::size_t most = found_.best.size() + keep_;
    for (const Priced& priced : menu) {
      if ((&priced != &menu.front() && priced.value > near) || found_.best.size() == most) break;
      if (std::ranges::find(found_.best, priced.choice, &Priced::choice) == found_.best.end())
        found_.best.push_back(priced);
    }
  }

  bool respects_pins(const Choice& choice) const {
    for (std::size_t i = 0; i < choice.axes.size(); ++i)
      if (!weft::respects_pins(choice.axes[i].dims, i < choice.names.size() ? choice.names[i] : "", demands_))
        return false;
    return true;
  }

  // The next axis takes each role that it may have.
  void open_axes(const Node& node) {
    const std::size_t axis = node.choice.axes.size();
    const int size = node.rest.front();
    double after = 1;
    for (std::size_t i = 1; i < node.rest.size(); ++i) after *= node.rest[i];
    for (const DimSet role : facts_.rules.roles(size, demands_.allowed)) {
      if (!weft::respects_pins(role, axis < node.choice.names.size() ? node.choice.names[axis] : "", demands_))
        continue;
      Node next{.kind = Node::Kind::kAxes, .choice = node.choice, .rest = {node.rest.begin() + 1, node.rest.end()}};
      next.choice.axes.push_back({size, role});
      if (!divides(facts_.rules, next.choice.axes)) continue;
      if (next.rest.empty()) {
        add_layout(next);
      } else {
        if (by_time_ && !has_loops_) next.bound = facts_.bound.of_prefix(next.choice.axes, after);
        push(std::move(next));
      }
    }
  }

  void add_layout(const Node& node) {
    Node layout = node;
    layout.kind = Node::Kind::kLayout;
    if (by_time_ && !has_loops_) layout.bound = search_.bound_of(layout.choice, true);
    push(std::move(layout));
  }

  void open_layout(Node node) {
    if (!by_time_) return add_variants(node, {});
    if (!has_loops_ && !std::exchange(node.has_update, true)) {
      const MeshGroups& groups = patterns_.groups(sizes_of(node.choice.axes));
      node.bound += facts_.bound.update_seconds(node.choice, groups, demands_.allow_store);
      if (node.bound >= limit()) return;
      if (!queue_.empty() && queue_.top().bound < node.bound) return queue_.push(std::move(node));
    }
    if (waits_for(node, node.choice)) return;
    const std::optional<Price> price = patterns_.price(node.choice);
    if (!price) return;
    Least least;
    if (has_loops_) return add_variants(node, least);
    least.floor = price->floor;
    if (!halves_may_pay_) least.update = patterns_.update_seconds(node.choice);
    add_variants(node, least);
  }

  // What remains of a layout under every storage layout.
  struct Least {
    double floor = 0;
    std::vector<double> update = {};  // by set of stored axes
  };

  // All candidates of a layout, or those without microbatches and repeated work: the others follow if these do not fit.
  void add_variants(const Node& node, const Least& least) {
    const StepFamily& family = facts_.graphs.family();
    const int batch = facts_.rules.find(family.batch);
    for (const std::int64_t microbatches : family.microbatches) {
      if (microbatches > 1 && !divides_batch(node.choice, batch, microbatches)) continue;
      for (const Recompute recompute : {Recompute::kNone, Recompute::kLayers}) {
        if (recompute == Recompute::kLayers && !family.can_recompute) continue;
        const bool is_first = microbatches == 1 && recompute == Recompute::kNone;
        if (by_time_ && !halves_may_pay_ && !has_loops_ && !is_first) continue;
        Choice choice = node.choice;
        choice.microbatches = microbatches;
        choice.recompute = recompute;
        const double bound =
            !by_time_
                ? 0
                : std::max({node.bound, least.floor, is_first || has_loops_ ? 0 : search_.bound_of(choice, true)});
        add_stores(choice, bound, least);
      }
    }
  }

  bool divides_batch(const Choice& choice, int batch, std::int64_t microbatches) const {
    return batch >= 0 && divides(facts_.rules, choice.axes, batch, microbatches);
  }

  // Level 2 differs from level 1 only where a loop accumulates gradients.
  void add_stores(const Choice& choice, double bound, const Least& least) {
    const std::size_t axes = choice.axes.size();
    for (AxisSet stored = 0; stored < AxisSet{1} << axes; ++stored) {
      if (stored && !demands_.allow_store) continue;
      const double least_seconds = least.floor + (least.update.empty() ? 0 : least.update[stored]);
      for (int level = stored ? 1 : 0; level <= (stored ? 3 : 0); ++level) {
        if (level == 2 && choice.microbatches == 1 && !has_loops_) continue;
        Choice next = choice;
        next.stored = stored;
        next.level = level;
        const double gathers =
            by_time_ && !has_loops_ ? facts_.bound.gather_seconds(next, patterns_.groups(sizes_of(next.axes))) : 0;
        add_candidate(next, std::max(bound, least_seconds + gathers));
      }
    }
  }

  void add_candidate(const Choice& choice, double bound) {
    if (demands_.merges_equal_axes && is_repeated(choice, demands_)) return;
    const double bytes = facts_.bound.variable_bytes(choice);
    if (demands_.memory_bytes > 0 && bytes > static_cast<double>(demands_.memory_bytes)) return;
    if (by_time_ && halves_may_pay_ && !has_loops_) bound = std::max(bound, search_.bound_of(choice, false));
    push({.kind = Node::Kind::kCandidate, .bound = by_time_ ? bound : bytes, .choice = choice});
  }

  void open_candidate(Node node) {
    if (std::ranges::find(menu_, node.choice) != menu_.end()) return;
    if (waits_for(node, node.choice)) return;
    ready_.push_back(std::move(node));
    if (ready_.size() >= kPricedAtOnce) price_ready();
  }

  void take(const Priced& priced) {
    found_.priced.push_back(priced);
    if (fits(priced.predicted, demands_)) keep_best(priced);
    else add_smaller(priced);
  }

  // Of candidates that cost nearly the same, the best one is kept, so that the others differ from it.
  void keep_best(const Priced& priced) {
    const auto is_twin = [&](const Priced& other) {
      constexpr double kNear = 1e-3;
      const auto near = [](double a, double b) { return std::abs(a - b) <= kNear * b; };
      return near(priced.predicted.seconds, other.predicted.seconds) &&
             near(static_cast<double>(priced.predicted.bytes()), static_cast<double>(other.predicted.bytes()));
    };
    if (std::ranges::any_of(found_.best,
                            [&](const Priced& other) { return is_twin(other) && other.value <= priced.value; }))
      return;
    std::erase_if(found_.best, is_twin);
    found_.best.insert(std::ranges::upper_bound(found_.best, priced.value, {}, &Priced::value), priced);
    if (found_.best.size() > keep_) found_.best.pop_back();
  }

  // Candidates that need less memory than one that does not fit, and no less time.
  void add_smaller(const Priced& priced) {
    const Choice& choice = priced.choice;
    if (choice.recompute == Recompute::kCompiler) return;
    if (by_time_ && !halves_may_pay_ && !has_loops_ && choice.recompute == Recompute::kNone) {
      const StepFamily& family = facts_.graphs.family();
      const int batch = facts_.rules.find(family.batch);
      for (const std::int64_t microbatches : family.microbatches) {
        if (microbatches == 1 || choice.microbatches > 1 || !divides_batch(choice, batch, microbatches)) continue;
        Choice next = choice;
        next.microbatches = microbatches;
        add_candidate(next, priced.value);
        if (std::exchange(next.level, 2) == 1) add_candidate(next, priced.value);
      }
      if (facts_.graphs.family().can_recompute) {
        Choice next = choice;
        next.recompute = Recompute::kLayers;
        add_candidate(next, priced.value);
      }
    }
    if (choice.recompute != Recompute::kNone) return;
    Node smaller{.kind = Node::Kind::kCandidate, .bound = priced.value, .choice = choice};
    if (halves_may_pay_) smaller.bound = search_.bound_of(choice, false);
    if (has_loops_) smaller.bound = 0;
    if (!by_time_) smaller.bound = facts_.bound.variable_bytes(choice);
    smaller.choice.recompute = Recompute::kCompiler;
    push(std::move(smaller));
  }

  Search& search_;
  const Facts& facts_;
  Patterns& patterns_;
  const Demands& demands_;
  std::size_t keep_;
  bool by_time_, has_loops_;  // a storage layout of level 2 or 3 may speed a loop up, whatever the bounds say
  bool halves_may_pay_;
  std::priority_queue<Node> queue_;
  std::int64_t count_ = 0;
  std::vector<Choice> menu_;    // that has a price
  std::vector<Node> waiting_;   // for programs
  std::vector<Node> ready_;     // candidates that have theirs
  std::vector<Choice> needed_;  // by node that waits
  std::set<std::string> keys_;  // of the programs
  Found found_;
};

Found Search::run(const Demands& demands, std::size_t keep, const std::function<bool()>& stop) {
  return Run(*this, demands, keep).run(stop);
}

}  // namespace weft
