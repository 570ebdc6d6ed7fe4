#include "program/passes/fold_map.h"

#include <algorithm>
#include <cmath>

#include "base/dispatch.h"

namespace weft {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// A sum, difference or product of integers, or a cast of one to another, which wrap as on every runtime.
std::optional<Number> whole_result(const MapNode& n, const std::vector<const MapNode*>& args) {
  std::vector<std::uint64_t> x;
  for (const MapNode* arg : args) {
    if (is_float(arg->dtype) || !arg->literal.is_whole()) return std::nullopt;
    x.push_back(static_cast<std::uint64_t>(arg->literal.whole()));
  }
  std::uint64_t y = 0;
  if (n.op == "add") y = x[0] + x[1];
  else if (n.op == "subtract") y = x[0] - x[1];
  else if (n.op == "multiply") y = x[0] * x[1];
  else if (n.op == "negative") y = -x[0];
  else if (n.op == "cast") y = x[0];
  else return std::nullopt;
  return visit_dtype(n.dtype,
                     [&]<class T>() -> Number { return to_int64(from_int64<T>(static_cast<std::int64_t>(y))); });
}

// One function of literals, if its result is the same on every runtime: floats round once, integers are exact.
std::optional<Number> computed(const MapNode& n, const std::vector<const MapNode*>& args) {
  if (is_integer(n.dtype)) return whole_result(n, args);
  if (!is_float(n.dtype)) return std::nullopt;
  std::vector<double> x;
  for (const MapNode* arg : args) {
    x.push_back(rounded(arg->literal.real(), arg->dtype));
    if (!is_float(arg->dtype) && std::abs(x.back()) >= 0x1p53) return std::nullopt;  // might round twice
  }
  std::optional<double> y;
  if (n.op == "add") y = x[0] + x[1];
  else if (n.op == "subtract") y = x[0] - x[1];
  else if (n.op == "multiply") y = x[0] * x[1];
  else if (n.op == "divide") y = x[0] / x[1];
  else if (n.op == "negative") y = -x[0];
  else if (n.op == "cast") y = x[0];
  if (!y) return std::nullopt;
  return rounded(*y, n.dtype);
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
    if (n.op == "identity" || (n.op == "cast" && args[0]->dtype == n.dtype)) return n.args[0];
    if (n.op == "negative" && args[0]->op == "negative") return args[0]->args[0];
    if (n.op == "add" && is(0, 0)) return n.args[1];
    if ((n.op == "add" || n.op == "subtract") && is(1, 0)) return n.args[0];
    if (n.op == "multiply" && is(0, 1)) return n.args[1];
    if ((n.op == "multiply" || (n.op == "divide" && is_float(n.dtype))) && is(1, 1)) return n.args[0];
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
