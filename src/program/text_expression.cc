// Map expressions as text: select(equal(index(vocab), $0), 1:f32, 0:f32). `$i` is operand i, `number:dtype` a literal,
// `name<dtype>(…)` a function whose dtype is not the usual one. A node that is used twice is bound where it first
// occurs and named after: multiply(#0=exp($0), #0).
#include <map>

#include "base/index.h"
#include "base/str.h"
#include "kernels/pointwise.h"
#include "program/text_detail.h"

namespace weft::text {

namespace {

constexpr int kDeepest = 1000;

// What a function gives if nothing is written: bool for questions, else the dtype of its first value.
DType usual_dtype(const std::string& op, const std::vector<DType>& args) {
  if (const Pointwise* function = find_pointwise(op); function && function->gives_truth()) return DType::kBool;
  if (op == "index" || args.empty()) return DType::kI32;
  return op == "select" && args.size() > 1 ? args[1] : args[0];
}

class ExpressionPrinter {
 public:
  explicit ExpressionPrinter(const std::vector<MapNode>& nodes) : nodes_(nodes), uses_(nodes.size(), 0) {
    // Nodes come after their arguments, so one sweep from the result counts the uses that are printed.
    if (!nodes.empty()) uses_.back() = 1;
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (uses_[i] > 0)
        for (int arg : nodes[i].args)
          if (is_earlier(arg, i)) ++uses_[at(arg)];
  }

  std::string print() { return nodes_.empty() ? "?" : node(nodes_.size() - 1); }

 private:
  static bool is_earlier(int arg, std::size_t of) { return arg >= 0 && at(arg) < of; }

  std::string node(std::size_t index) {
    const MapNode& n = nodes_[index];
    if (n.op == "input") return "$" + std::to_string(n.input);
    if (n.op == "literal") return number_text(n.literal) + ":" + std::string(name_of(n.dtype));
    if (const auto bound = bound_.find(index); bound != bound_.end()) return str("#", bound->second);
    const std::string dtype = is_usual(index) ? "" : str("<", n.dtype, ">");
    if (n.op == "index") return str("index", dtype, "(", n.dim, ")");
    std::string out;
    if (uses_[index] > 1) {
      const int label = static_cast<int>(bound_.size());
      bound_[index] = label;
      out = str("#", label, "=");
    }
    out += n.op + dtype + "(";
    for (std::size_t i = 0; i < n.args.size(); ++i) {
      if (i > 0) out += ", ";
      out += is_earlier(n.args[i], index) ? node(at(n.args[i])) : "?";
    }
    return out + ")";
  }

  bool is_usual(std::size_t index) const {
    const MapNode& n = nodes_[index];
    if (n.op == "cast") return false;
    std::vector<DType> dtypes;
    for (int arg : n.args)
      if (is_earlier(arg, index)) dtypes.push_back(nodes_[at(arg)].dtype);
    return n.dtype == usual_dtype(n.op, dtypes);
  }

  const std::vector<MapNode>& nodes_;
  std::vector<int> uses_;
  std::map<std::size_t, int> bound_;  // node -> label
};

class ExpressionReader {
 public:
  ExpressionReader(Cursor& cursor, const std::vector<DType>& inputs) : cursor_(cursor), inputs_(inputs) {}

  std::vector<MapNode> read() {
    node(0);
    return std::move(nodes_);
  }

 private:
  int node(int depth) {
    if (depth > kDeepest)
      cursor_.fail("program.expression-too-deep", "an expression is nested too deeply",
                   str("at most ", kDeepest, " deep"));
    if (cursor_.accept('$')) return operand();
    if (cursor_.accept('#')) return labelled(depth);
    const std::string token(cursor_.number_token());
    if (cursor_.accept(':')) return literal(cursor_.number_of(token));
    return function(token, depth);
  }

  int operand() {
    const auto input = static_cast<int>(cursor_.integer("the number of an operand", 0, 1 << 20));
    if (at(input) >= inputs_.size())
      cursor_.fail("program.unknown-operand", str("$", input, " names no operand"),
                   str("the instruction has ", inputs_.size(), " operands"));
    const DType dtype = inputs_[at(input)];
    return leaf({.op = "input", .args = {}, .dtype = dtype, .input = input, .dim = {}});
  }

  int labelled(int depth) {
    const std::int64_t label = cursor_.integer("a label", 0, 1 << 20);
    if (!cursor_.accept('=')) {
      const auto found = labels_.find(label);
      if (found == labels_.end())
        cursor_.fail("program.label-not-bound", str("label #", label, " is not bound yet"),
                     str("bind it: #", label, "=…"));
      return found->second;
    }
    const int bound = node(depth + 1);
    if (!labels_.emplace(label, bound).second)
      cursor_.fail("program.label-bound-twice", str("label #", label, " is bound twice"), "use another number");
    return bound;
  }

  int literal(const Number& number) {
    const DType dtype = this->dtype();
    return leaf({.op = "literal", .args = {}, .dtype = dtype, .literal = number, .dim = {}});
  }

  int function(const std::string& op, int depth) {
    if (op.empty() || op == "input" || op == "literal")
      cursor_.fail("program.not-a-function", str("expected a function, found '", op, "'"),
                   "write $0, 1:f32, index(dim) or name(…)");
    const bool stated = cursor_.accept('<');
    MapNode n{.op = op, .args = {}, .dtype = stated ? dtype() : DType::kF32, .dim = {}};
    if (stated) cursor_.expect('>');
    if (op == "cast" && !stated)
      cursor_.fail("program.cast-without-dtype", "a cast lacks its dtype", "write cast<f32>(…)");
    cursor_.expect('(');
    if (op == "index") {
      n.dim = cursor_.word("a dim");
    } else if (!cursor_.next_is(')')) {
      do n.args.push_back(node(depth + 1));
      while (cursor_.accept(','));
    }
    cursor_.expect(')');
    if (!stated) {
      std::vector<DType> dtypes;
      for (int arg : n.args) dtypes.push_back(nodes_[at(arg)].dtype);
      n.dtype = usual_dtype(op, dtypes);
    }
    return op == "index" ? leaf(std::move(n)) : add(std::move(n));
  }

  DType dtype() {
    const std::string name = cursor_.word("a dtype");
    return cursor_.located([&] { return dtype_of(name); });
  }

  // Equal leaves are one node. A literal's key is its text, so that nan equals nan and -0 differs from 0.
  int leaf(MapNode n) {
    const std::string key = str(n.op, " ", n.input, " ", number_text(n.literal), " ", n.dtype, " ", n.dim);
    const auto [found, is_new] = leaves_.emplace(key, 0);
    if (is_new) found->second = add(std::move(n));
    return found->second;
  }

  int add(MapNode n) {
    nodes_.push_back(std::move(n));
    return static_cast<int>(nodes_.size()) - 1;
  }

  Cursor& cursor_;
  const std::vector<DType>& inputs_;
  std::vector<MapNode> nodes_;
  std::map<std::int64_t, int> labels_;
  std::map<std::string, int> leaves_;
};

}  // namespace

std::string expression_text(const std::vector<MapNode>& nodes) { return ExpressionPrinter(nodes).print(); }

std::vector<MapNode> read_expression(Cursor& cursor, const std::vector<DType>& inputs) {
  return ExpressionReader(cursor, inputs).read();
}

}  // namespace weft::text
