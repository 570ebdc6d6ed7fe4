#include <algorithm>
#include <tuple>

#include "language/shape_math.h"
#include "program/attend.h"
#include "program/matrix_form.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

// What an order costs: contractions that must be packed, products of matrices, sweeps that read across memory.
struct Cost {
  std::int64_t packed = 0, products = 0, across = 0;
  bool operator<(const Cost& other) const {
    return std::tie(packed, products, across) < std::tie(other.packed, other.products, other.across);
  }
};

// The dims of `a` that `b` has too.
Shape common(const Shape& a, const Shape& b) { return a.minus(a.minus(b)); }

class Chooser {
 public:
  Chooser(Program& program, std::int64_t panel_lanes)
      : p_(program), panel_lanes_(panel_lanes), uses_(program), strides_(strides_of(program)), moved_(program.values.size()) {}

  void run() {
    for (const Instr& instr : p_.body)
      if (instr.is<Contract>() || instr.is<Map>() || instr.is<ReduceDims>() || attend_rules(instr))
        for (ValueId id : instr.outputs) choose(instr, id);
  }

 private:
  const Shape& shape(ValueId id) const { return p_.values[id].shape; }
  Strided lying(ValueId id) const { return {shape(id), strides_[id]}; }

  // The dims of a value as they lie in memory, the outermost first.
  Shape in_memory(ValueId id) const {
    std::vector<std::size_t> places(shape(id).rank());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::ranges::stable_sort(places, [&](std::size_t a, std::size_t b) { return strides_[id][a] > strides_[id][b]; });
    std::vector<Dim> dims;
    for (std::size_t place : places) dims.push_back(shape(id)[place]);
    return dims;
  }

  void choose(const Instr& maker, ValueId id) {
    if (shape(id).rank() < 2 || !lies_freely(p_, uses_, id)) return;
    const Shape declared = shape(id);
    Shape best = declared;
    Cost least = cost(maker, id);
    for (const Shape& order : candidates(maker, id)) {
      if (!same_dims(order, declared)) continue;
      lay(id, order);
      const Cost now = cost(maker, id);
      if (now < least) least = now, best = order;
    }
    lay(id, best);
    moved_[id] = best != declared;
    each_view(id, [&](Instr& view) { moved_[view.outputs[0]] = moved_[id]; });
  }

  // The orders that suit the maker, and those that suit each contraction that reads the value.
  std::vector<Shape> candidates(const Instr& maker, ValueId id) const {
    std::vector<Shape> orders;
    if (maker.is<Contract>()) {
      const Shape x = in_memory(maker.inputs[0]), y = in_memory(maker.inputs[1]);
      const Shape both = common(common(x, y), shape(id)), of_x = x.minus(y), of_y = y.minus(x);
      orders.push_back(both.plus(of_x).plus(of_y));
      orders.push_back(both.plus(of_y).plus(of_x));
    } else {
      for (ValueId input : maker.inputs)
        if (moved_[input]) orders.push_back(followed(maker, id, input));
    }
    each_contraction(id, [&](const Instr& reader, std::size_t operand) {
      if (reader.inputs[operand] != id) return;
      const Shape other = in_memory(reader.inputs[1 - operand]), out = in_memory(reader.outputs[0]), all = shape(id);
      const Shape own = common(out, all).minus(other), summed = common(other, all).minus(out);
      const Shape both = common(out, all).minus(own);
      orders.push_back(both.plus(own).plus(summed));
      orders.push_back(both.plus(summed).plus(own));
    });
    return orders;
  }

  // The order of what an operand with all its dims has; attention gives `value` where q has `key`.
  Shape followed(const Instr& maker, ValueId id, ValueId input) const {
    Shape order = in_memory(input);
    const AttendRules* rules = attend_rules(maker);
    if (maker.is<Attend>() && input == maker.inputs[0] && shape(id).has(rules->value))
      order = order.replaced(rules->key, {shape(id).dim(rules->value)});
    return common(order, shape(id));
  }

  Cost cost(const Instr& maker, ValueId id) const {
    Cost sum;
    const auto add = [&](const Instr& contract) {
      const MatrixForm form =
          matrix_form(lying(contract.inputs[0]), lying(contract.inputs[1]), lying(contract.outputs[0]));
      const bool in_panels =
          panel_lanes_ > 0 &&
          lies_in_panels(form, panel_lanes_, numbers_of_word(p_.values[contract.inputs[1]].dtype));
      sum.packed += !form.is_plain();
      sum.products += in_panels ? 1 : form.products();
    };
    if (maker.is<Contract>()) add(maker);
    for (ValueId input : maker.inputs) {
      if (maker.is<Contract>() || !moved_[input]) continue;
      const Shape order = followed(maker, id, input);
      sum.across += order != shape(id) && same_dims(order, shape(id));
    }
    each_contraction(id, [&](const Instr& reader, std::size_t) { add(reader); });
    return sum;
  }

  // Calls visit(contraction, which operand) for all that read the value or a view of it.
  template <class Visit>
  void each_contraction(ValueId id, const Visit& visit) const {
    for (int position : uses_.users(id)) {
      const Instr& user = p_.body[at(position)];
      if (user.is<View>()) each_contraction(user.outputs[0], visit);
      if (!user.is<Contract>()) continue;
      for (std::size_t operand : {0u, 1u})
        if (user.inputs[operand] == id) visit(user, operand);
    }
  }

  template <class Visit>
  void each_view(ValueId id, const Visit& visit) {
    for (int position : uses_.users(id))
      if (Instr& user = p_.body[at(position)]; user.is<View>()) visit(user);
  }

  void lay(ValueId id, const Shape& order) {
    Value& value = p_.values[id];
    if (value.shape == order) return;
    std::vector<Axes> axes;
    std::vector<std::int64_t> strides(order.rank());
    const std::vector<std::int64_t> dense = dense_strides(order);
    for (const Dim& dim : order) axes.push_back(value.sharding.dims[value.shape.position(dim.name)]);
    for (std::size_t i = 0; i < strides.size(); ++i) strides[i] = dense[order.position(value.shape[i].name)];
    each_view(id, [&](Instr& user) {
      View& view = std::get<View>(user.operation);
      view = *restrided(view, shape(user.outputs[0]), shape(id), strides);
      strides_[user.outputs[0]] = view.strides;
    });
    value.shape = order;
    value.sharding.dims = std::move(axes);
    strides_[id] = dense;
  }

  Program& p_;
  const std::int64_t panel_lanes_;  // of the engine's products with panels; 0: it has none
  Uses uses_;
  ByValue<std::vector<std::int64_t>> strides_;
  ByValue<bool> moved_;  // it, or what it is a view of, has another order than at first
};

}  // namespace

Program choose_dim_orders(Program program, const PassOptions& options) {
  Chooser(program, options.target.panel_lanes).run();
  return program;
}

}  // namespace weft
