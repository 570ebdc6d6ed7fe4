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
  Folder(const std::vector<MapNode>& old, const std::vector<std::optional<Number>>& known) : old_(old), known_(known) {}

  std::vector<MapNode> run() {
    std::vector<int> number;  // old node -> new node
    for (const MapNode& node : old_) {
      MapNode n = node;
      for (int& arg : n.args) arg = number[at(arg)];
      number.push_back(place(std::move(n)));
    }
    std::vector<MapNode> used;
    std::vector<int> moved(nodes_.size(), -1);
    keep(number.back(), used, moved);
    return used;
  }

 private:
  int place(MapNode n) {
    if (n.op == "input" && known_[at(n.input)])
      n = {.op = "literal", .args = {}, .dtype = n.dtype, .literal = *known_[at(n.input)], .dim = {}};
    std::vector<const MapNode*> args;
    for (int arg : n.args) args.push_back(&nodes_[at(arg)]);
    if (const int same = idle(n, args); same >= 0) return same;
    const bool literals =
        !args.empty() && std::all_of(args.begin(), args.end(), [](const MapNode* a) { return a->op == "literal"; });
    if (const auto y = literals ? computed(n, args) : std::nullopt)
      n = {.op = "literal", .args = {}, .dtype = n.dtype, .literal = *y, .dim = {}};
    // Leaves once each; a nan equals nothing and so stays apart.
    const auto twin = n.args.empty() ? std::find(nodes_.begin(), nodes_.end(), n) : nodes_.end();
    if (twin != nodes_.end() && std::signbit(twin->literal.real()) == std::signbit(n.literal.real()))
      return static_cast<int>(twin - nodes_.begin());
    nodes_.push_back(std::move(n));
    return static_cast<int>(nodes_.size()) - 1;
  }

  // The node that n equals by itself, or -1.
  static int idle(const MapNode& n, const std::vector<const MapNode*>& args) {
    const auto is = [&](std::size_t i, double number) {
      return args[i]->op == "literal" && rounded(args[i]->literal.real(), args[i]->dtype) == number;
    };
    if (n.op == "cast") return args[0]->dtype == n.dtype ? n.args[0] : -1;
    const Pointwise* f = find_pointwise(n.op);
    if (!f) return -1;
    if (f->is(pointwise::kIdentity)) return n.args[0];
    if (f->is(pointwise::kUndoesItself) && args[0]->op == n.op) return args[0]->args[0];
    if ((f->is(pointwise::kZeroFirst) && is(0, 0)) || (f->is(pointwise::kOneFirst) && is(0, 1))) return n.args[1];
    if ((f->is(pointwise::kZeroSecond) && is(1, 0)) || (f->is(pointwise::kOneSecond) && is(1, 1))) return n.args[0];
    return -1;
  }

  int keep(int node, std::vector<MapNode>& used, std::vector<int>& moved) const {
    if (moved[at(node)] >= 0) return moved[at(node)];
    MapNode n = nodes_[at(node)];
    for (int& arg : n.args) arg = keep(arg, used, moved);
    used.push_back(std::move(n));
    return moved[at(node)] = static_cast<int>(used.size()) - 1;
  }

  const std::vector<MapNode>& old_;
  const std::vector<std::optional<Number>>& known_;
  std::vector<MapNode> nodes_;
};

}  // namespace

std::vector<MapNode> folded(const std::vector<MapNode>& nodes, const std::vector<std::optional<Number>>& known) {
  return Folder(nodes, known).run();
}

}  // namespace weft
