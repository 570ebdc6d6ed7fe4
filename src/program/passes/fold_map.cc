#include "program/passes/fold_map.h"

#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "base/index.h"
#include "kernels/pointwise.h"

namespace weft {

namespace {

// A function of integers, which is exact and wraps as on every engine, or a cast of one to another.
std::optional<Number> whole_result(const MapNode& n, const Pointwise* function,
                                   const std::vector<const MapNode*>& args) {
  std::vector<std::int64_t> x;
  for (const MapNode* arg : args) {
    if (is_float(arg->dtype) || !arg->literal.is_whole()) return std::nullopt;
    x.push_back(arg->literal.whole());
  }
  const std::int64_t y = !function ? x[0] : function->arity == 1 ? function->i1(x[0]) : function->i2(x[0], x[1]);
  return visit_dtype(n.dtype, [&]<class T>() -> Number { return to_int64(from_int64<T>(y)); });
}

// One function of literals, if its result is the same on every engine: floats round once, integers are exact.
std::optional<Number> computed(const MapNode& n, const std::vector<const MapNode*>& args) {
  const Pointwise* function = find_pointwise(n.op);
  const bool folds = function ? function->is(pointwise::kRoundsOnce) && function->takes_dtype(n.dtype) : n.op == "cast";
  if (!folds) return std::nullopt;
  if (is_integer(n.dtype)) return whole_result(n, function, args);
  if (!is_float(n.dtype)) return std::nullopt;
  std::vector<double> x;
  for (const MapNode* arg : args) {
    x.push_back(rounded(arg->literal.real(), arg->dtype));
    if (!is_float(arg->dtype) && std::abs(x.back()) >= 0x1p53) return std::nullopt;  // might round twice
  }
  const double y = !function ? x[0] : function->arity == 1 ? function->f1(x[0]) : function->f2(x[0], x[1]);
  return rounded(y, n.dtype);
}

class Folder {
 public:
  Folder(std::vector<MapNode>& nodes, const std::vector<const Number*>& known)
      : nodes_(nodes), known_(known), number_(nodes.size()), moved_(nodes.size(), -1) {}

  void run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (int& arg : nodes_[i].args) arg = number_[at(arg)];
      number_[i] = place(nodes_[i]);
    }
    used_.reserve(placed_);
    keep(number_.back());
    bool in_order = used_.size() == placed_;
    for (std::size_t i = 0; i < used_.size(); ++i) in_order &= at(used_[i]) == i;
    nodes_.resize(placed_);
    if (in_order) return;
    std::vector<MapNode> used;
    used.reserve(used_.size());
    for (const int node : used_) {
      MapNode& n = used.emplace_back(std::move(nodes_[at(node)]));
      for (int& arg : n.args) arg = moved_[at(arg)];
    }
    nodes_ = std::move(used);
  }

 private:
  // The number of the placed node that n, a node behind the placed ones, becomes or equals.
  int place(MapNode& n) {
    if (n.op == "input" && known_[at(n.input)])
      n = {.op = "literal", .args = {}, .dtype = n.dtype, .literal = *known_[at(n.input)], .dim = {}};
    if (const int same = n.args.empty() ? -1 : idle(n); same >= 0) return same;
    const bool literals =
        !n.args.empty() && std::ranges::all_of(n.args, [&](int arg) { return nodes_[at(arg)].op == "literal"; });
    if (const auto y = literals ? computed(n, args_of(n)) : std::nullopt)
      n = {.op = "literal", .args = {}, .dtype = n.dtype, .literal = *y, .dim = {}};
    // Leaves once each; a nan equals nothing and so stays apart.
    const auto end = nodes_.begin() + static_cast<std::ptrdiff_t>(placed_);
    const auto twin = n.args.empty() ? std::find(nodes_.begin(), end, n) : end;
    if (twin != end && std::signbit(twin->literal.real()) == std::signbit(n.literal.real()))
      return static_cast<int>(twin - nodes_.begin());
    if (&nodes_[placed_] != &n) nodes_[placed_] = std::move(n);
    return static_cast<int>(placed_++);
  }

  std::vector<const MapNode*> args_of(const MapNode& n) const {
    std::vector<const MapNode*> args;
    for (int arg : n.args) args.push_back(&nodes_[at(arg)]);
    return args;
  }

  // The node that n, a function, equals by itself, or -1.
  int idle(const MapNode& n) const {
    const auto is = [&](std::size_t i, double number) {
      const MapNode& arg = nodes_[at(n.args[i])];
      return arg.op == "literal" && rounded(arg.literal.real(), arg.dtype) == number;
    };
    const MapNode& first = nodes_[at(n.args[0])];
    if (n.op == "cast") return first.dtype == n.dtype ? n.args[0] : -1;
    const Pointwise* f = find_pointwise(n.op);
    if (!f) return -1;
    if (f->is(pointwise::kIdentity)) return n.args[0];
    if (f->is(pointwise::kUndoesItself) && first.op == n.op) return first.args[0];
    if ((f->is(pointwise::kZeroFirst) && is(0, 0)) || (f->is(pointwise::kOneFirst) && is(0, 1))) return n.args[1];
    if ((f->is(pointwise::kZeroSecond) && is(1, 0)) || (f->is(pointwise::kOneSecond) && is(1, 1))) return n.args[0];
    return -1;
  }

  // Numbers the node and what it is made of, in post-order.
  void keep(int node) {
    if (moved_[at(node)] >= 0) return;
    for (int arg : nodes_[at(node)].args) keep(arg);
    moved_[at(node)] = static_cast<int>(used_.size());
    used_.push_back(node);
  }

  std::vector<MapNode>& nodes_;
  const std::vector<const Number*>& known_;
  std::size_t placed_ = 0;   // the first nodes: they have their new numbers
  std::vector<int> number_;  // old node -> placed node
  std::vector<int> used_;    // nodes that stay, in post-order
  std::vector<int> moved_;   // per node: its place among those that stay, or -1
};

}  // namespace

void fold_nodes(std::vector<MapNode>& nodes, const std::vector<const Number*>& known) { Folder(nodes, known).run(); }

}  // namespace weft
