#include <algorithm>

#include "base/index.h"
#include "program/passes/fold_map.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

class Folding {
 public:
  explicit Folding(Program program)
      : p_(std::move(program)),
        kept_(kept_values(p_)),
        strides_(p_),
        known_(p_.values.size()),
        defined_by_(p_.values.size(), -1),
        given_(p_.values.size(), true),
        by_(identity<ValueId>(p_.values.size())) {}

  // Operands are folded when an instruction is reached, so one sweep does it.
  Program run() {
    std::vector<Instr> old = std::move(p_.body);
    p_.body.clear();
    p_.body.reserve(old.size());
    for (Instr& instr : old) {
      for (ValueId& id : instr.inputs) id = resolved(by_, id);
      if (auto* map = std::get_if<Map>(&instr.operation)) fold_map(instr, *map);
      if (instr.is<Copy>() && stands_for(instr.outputs[0], instr.inputs[0])) continue;
      if (is_idle_collective(instr)) fold_collective(instr);
      if (auto* view = std::get_if<View>(&instr.operation); view && fold_view(instr, *view)) continue;
      append(std::move(instr));
    }
    replace_uses(p_, by_);
    return std::move(p_);
  }

 private:
  void append(Instr instr) {
    for (ValueId id : instr.outputs) {
      defined_by_[id] = static_cast<int>(p_.body.size());
      given_[id] = is_view(instr) && given_[instr.inputs[0]];
    }
    p_.body.push_back(std::move(instr));
  }

  // Uses x instead of y where that changes nothing: same type, x dense as y is. What the program keeps stays a value of
  // its own if x is an input's or a variable's storage.
  bool stands_for(ValueId y, ValueId x) {
    if (!same_type(p_.values[x], p_.values[y]) || !strides_.is_dense(x) || (kept_[y] && given_[x])) return false;
    by_[y] = x;
    return true;
  }

  void fold_map(Instr& instr, Map& map) {
    operands_.clear();
    for (ValueId id : instr.inputs) operands_.push_back(known_[id] ? &*known_[id] : nullptr);
    fold_nodes(map.nodes, operands_);
    drop_unused_operands(instr, map);
    const MapNode& result = map.nodes.back();
    const Value& out = p_.values[instr.outputs[0]];
    if (result.op == "literal" && !out.sharding.is_partial()) known_[instr.outputs[0]] = result.literal;
    if (result.op != "input") return;
    // The operand itself: a copy, if it gains no dims.
    const ValueId x = instr.inputs[0], y = instr.outputs[0];
    if (same_dims(p_.values[x].shape, p_.values[y].shape) && lies_alike(x, y)) instr.operation = Copy{};
  }

  bool lies_alike(ValueId x, ValueId y) const {
    const Value &a = p_.values[x], &b = p_.values[y];
    if (a.sharding.partial != b.sharding.partial || a.sharding.pending != b.sharding.pending) return false;
    for (std::size_t i = 0; i < b.shape.rank(); ++i)
      if (a.sharding.dims[a.shape.position(b.shape[i].name)] != b.sharding.dims[i]) return false;
    return true;
  }

  // The nodes name every operand, the first before the second and so on.
  static bool uses_operands_in_order(const Instr& instr, const Map& map) {
    int used = 0;
    for (const MapNode& node : map.nodes) {
      if (node.op != "input" || node.input < used) continue;
      if (node.input > used) return false;
      ++used;
    }
    return at(used) == instr.inputs.size();
  }

  static void drop_unused_operands(Instr& instr, Map& map) {
    if (uses_operands_in_order(instr, map)) return;
    std::vector<int> number(instr.inputs.size(), -1);
    std::vector<ValueId> inputs;
    for (MapNode& node : map.nodes) {
      if (node.op != "input") continue;
      int& n = number[at(node.input)];
      if (n < 0) {
        n = static_cast<int>(inputs.size());
        inputs.push_back(instr.inputs[at(node.input)]);
      }
      node.input = n;
    }
    instr.inputs = std::move(inputs);
  }

  // Along axes of size 1 nothing moves; only the sharding is told otherwise.
  bool is_idle_collective(const Instr& instr) const {
    if (const auto* shard = instr.as<Shard>()) return p_.mesh.size(shard->axes) == 1;
    if (const auto* permute = instr.as<Permute>(); permute && permute->to != std::vector<std::int64_t>{0}) return false;
    return is_collective(instr) && instr.inputs.size() == 1 && p_.mesh.size(axes_of(instr)) == 1;
  }

  void fold_collective(Instr& instr) {
    const ValueId x = instr.inputs[0], y = instr.outputs[0];
    // Views of y count on its strides.
    if (instr.is<Shard>() || strides_.is_dense(x)) {
      instr.operation = View{0, strides_.of(x)};
      return;
    }
    const ValueId relabelled = add_value(p_, p_.values[y].name, type_of(p_, y));
    strides_.set(relabelled, strides_.of(x));
    known_.emplace_back();
    defined_by_.push_back(-1);
    given_.push_back(false);
    kept_.push_back(false);
    by_.push_back(relabelled);
    Instr label{View{0, strides_.of(x)}, {x}, {relabelled}, instr.origin};
    if (!fold_view(label, std::get<View>(label.operation))) append(std::move(label));
    instr.operation = Copy{};
    instr.inputs = {resolved(by_, relabelled)};
  }

  // True if the view shows its operand as it is. A view of a view is made one of the first operand.
  bool fold_view(Instr& instr, View& view) {
    const ValueId y = instr.outputs[0];
    if (const int i = defined_by_[instr.inputs[0]]; i >= 0) {
      const Instr& earlier = p_.body[at(i)];
      if (const auto* first = earlier.as<View>()) {
        view.offset += first->offset;
        instr.inputs = earlier.inputs;
      }
    }
    const ValueId x = instr.inputs[0];
    strides_.set(y, view.strides);
    if (view.offset != 0 || view.strides != strides_.of(x) || !same_type(p_.values[x], p_.values[y])) return false;
    if (kept_[y] && given_[x]) return false;
    by_[y] = x;
    return true;
  }

  Program p_;
  ByValue<bool> kept_;
  ValueStrides strides_;
  ByValue<std::optional<Number>> known_;  // the one number that fills a value
  std::vector<const Number*> operands_;   // of the map being folded: what is known of each
  ByValue<int> defined_by_;               // position in the new body
  ByValue<bool> given_;                   // lies in the storage of an input or a variable
  ByValue<ValueId> by_;
};

}  // namespace

Program fold(Program p, const PassOptions&) { return Folding(std::move(p)).run(); }

}  // namespace weft
