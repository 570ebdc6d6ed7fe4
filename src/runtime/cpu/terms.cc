#include "runtime/cpu/terms.h"

#include "base/index.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft::cpu {

namespace {

Extent joined(Extent a, Extent b) { return static_cast<Extent>(static_cast<unsigned>(a) | static_cast<unsigned>(b)); }
static_assert(static_cast<unsigned>(Extent::kFull) ==
              (static_cast<unsigned>(Extent::kRow) | static_cast<unsigned>(Extent::kColumn)));

class Collector {
 public:
  Collector(const Program& body, const RowPlan& plan, ProcessorId processor)
      : body_(body), plan_(plan), processor_(processor), term_of_(body.values.size(), -1) {}

  Terms collect() {
    std::size_t most = body_.inputs.size() + 2 * body_.outputs.size();
    for (const Instr& instr : body_.body) most += instr.is<Map>() ? instr.as<Map>()->nodes.size() : 2;
    terms_.all.reserve(most);
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
      const ValueId id = body_.inputs[i].value;
      term_of_[id] = add({.kind = Term::Kind::kOperand,
                          .dtype = body_.values[id].dtype,
                          .extent = plan_.extents[id],
                          .operand = static_cast<int>(i)});
    }
    for (const Instr& instr : body_.body) term_of_[instr.outputs[0]] = instr.is<Map>() ? map(instr) : reduction(instr);
    for (const ProgramOutput& output : body_.outputs) terms_.outputs.push_back(result(output.value));
    return std::move(terms_);
  }

 private:
  int add(Term term) {
    terms_.all.push_back(std::move(term));
    return static_cast<int>(terms_.all.size()) - 1;
  }
  const Term& term(int t) const { return terms_.all[at(t)]; }

  int spread(int t, Extent extent) {
    if (term(t).extent == extent) return t;
    return add({.kind = Term::Kind::kSpread, .dtype = term(t).dtype, .extent = extent, .args = {t}});
  }

  int map(const Instr& instr) {
    const std::vector<MapNode>& nodes = instr.as<Map>()->nodes;
    std::vector<int> of_node;
    of_node.reserve(nodes.size());
    for (const MapNode& node : nodes) of_node.push_back(this->node(node, of_node, instr));
    return of_node.back();
  }

  int node(const MapNode& node, const std::vector<int>& of_node, const Instr& instr) {
    if (node.op == "input") return term_of_[instr.inputs[at(node.input)]];
    Term term{.dtype = node.dtype, .literal = node.literal, .dim = node.dim};
    term.args.reserve(node.args.size());
    for (int arg : node.args) {
      term.args.push_back(of_node[at(arg)]);
      term.extent = joined(term.extent, this->term(of_node[at(arg)]).extent);
    }
    if (node.op == "literal") term.kind = Term::Kind::kLiteral;
    else if (node.op == "index") index(term, instr);
    else if (node.op == "select") select(term);
    else if (node.op == "cast") term.kind = Term::Kind::kCast;
    else function(term, node);
    return add(std::move(term));
  }

  // The condition is a tile wherever the result is one.
  void select(Term& term) {
    term.kind = Term::Kind::kSelect;
    const bool is_tile = this->term(term.args[0]).extent == Extent::kColumn && term.extent == Extent::kFull;
    if (!is_tile) term.args[0] = spread(term.args[0], term.extent);
  }

  void index(Term& term, const Instr& instr) const {
    const Value& value = body_.values[instr.outputs[0]];
    term.kind = Term::Kind::kIndex;
    term.begin = shard_begin(value.shape, value.sharding, body_.mesh, processor_)[value.shape.position(term.dim)];
    term.extent = Extent::kColumn;
    for (const Dim& dim : plan_.rows)
      if (dim.name == term.dim) term.extent = Extent::kRow;
  }

  // Before the first step, not in the middle of it.
  void function(Term& term, const MapNode& node) const {
    term.kind = Term::Kind::kApply;
    term.function = find_pointwise(node.op);
    std::vector<DType> operands;
    for (int arg : term.args) operands.push_back(this->term(arg).dtype);
    const std::string misuse = pointwise_misuse(node.op, operands, node.dtype);
    if (!misuse.empty()) throw InternalError(misuse);
  }

  int reduction(const Instr& instr) {
    const ValueId from = instr.inputs[0], to = instr.outputs[0];
    const Extent extent = plan_.extents[to];
    const bool of_rows = plan_.extents[from] == Extent::kRow;
    const int arg = spread(term_of_[from], of_rows ? Extent::kRow : Extent::kFull);
    return add({.kind = extent == Extent::kRow      ? Term::Kind::kJoinColumns
                        : extent == Extent::kColumn ? Term::Kind::kJoinRows
                                                    : Term::Kind::kJoinAll,
                .dtype = body_.values[to].dtype,
                .extent = extent,
                .args = {arg},
                .how = instr.as<ReduceDims>()->how});
  }

  // An output is never the operand's own memory: what lies over the operand would be written before it is read.
  int result(ValueId id) {
    const int t = spread(term_of_[id], plan_.extents[id]);
    if (term(t).kind != Term::Kind::kOperand) return t;
    return add({.kind = Term::Kind::kSpread, .dtype = term(t).dtype, .extent = term(t).extent, .args = {t}});
  }

  const Program& body_;
  const RowPlan& plan_;
  const ProcessorId processor_;
  ByValue<int> term_of_;  // by value
  Terms terms_;
};

}  // namespace

Terms terms_of(const Program& body, const RowPlan& plan, ProcessorId processor) {
  return Collector(body, plan, processor).collect();
}

}  // namespace weft::cpu
