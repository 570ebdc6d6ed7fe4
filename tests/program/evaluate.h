// Runs a small program on all processors at once, in double, from the words of program/ir.h alone: slow and plain.
// Knows the instructions and functions that the random programs of these tests are made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>

#include "base/index.h"
#include "language/shape_math.h"
#include "program/builder.h"

namespace weft::test {

class Evaluation {
 public:
  // Inputs and variables are small whole numbers, alike on processors that only differ along axes they do not use.
  explicit Evaluation(const Program& program) : p_(program), held_(static_cast<std::size_t>(program.mesh.size())) {
    for (auto& values : held_) values.resize(p_.values.size());
    for (const ProgramInput& input : p_.inputs) fill(input.value, input.name);
    for (const ProgramVariable& variable : p_.variables) fill(variable.value, variable.name);
    run();
  }

  // What a processor holds of a value, row-major.
  std::vector<double> numbers(ProcessorId processor, ValueId id) const {
    std::vector<double> out;
    each(value(id).shape, [&](const std::vector<std::int64_t>& index) { out.push_back(read(processor, id, index)); });
    return out;
  }

 private:
  // The body of a fused instruction of `outside`.
  Evaluation(const Evaluation& outside, const Instr& instr) : p_(*body_of(instr)), held_(outside.held_.size()) {
    for (auto& values : held_) values.resize(p_.values.size());
    for (std::size_t i = 0; i < instr.inputs.size(); ++i)
      for (const ProcessorId processor : p_.mesh.processors())
        held(processor, p_.inputs[i].value) = outside.held(processor, instr.inputs[i]);
    run();
  }

  void run() {
    for (const Instr& instr : p_.body) {
      if (instr.is<Fused>()) {
        const Evaluation inside(*this, instr);
        for (std::size_t i = 0; i < instr.outputs.size(); ++i)
          for (const ProcessorId processor : p_.mesh.processors())
            held(processor, instr.outputs[i]) = inside.held(processor, inside.p_.outputs[i].value);
        continue;
      }
      for (std::size_t i = 0; i < instr.outputs.size(); ++i)
        for (const ProcessorId processor : p_.mesh.processors())
          held(processor, instr.outputs[i]) = result(instr, i, processor);
    }
  }

  using Index = std::vector<std::int64_t>;  // one per dim of some shape
  struct Held {
    std::shared_ptr<std::vector<double>> data;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;
  };

  const Value& value(ValueId id) const { return p_.values[id]; }
  Held& held(ProcessorId processor, ValueId id) { return held_[processor][id]; }
  const Held& held(ProcessorId processor, ValueId id) const { return held_[processor][id]; }

  static void each(const Shape& shape, const std::function<void(const Index&)>& visit) {
    Index index(shape.rank(), 0);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      std::int64_t rest = i;
      for (std::size_t d = shape.rank(); d-- > 0; rest /= shape[d].size) index[d] = rest % shape[d].size;
      visit(index);
    }
  }

  double read(ProcessorId processor, ValueId id, const Index& index) const {
    const Held& h = held(processor, id);
    std::int64_t place = h.offset;
    for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * h.strides[d];
    return h.data->at(static_cast<std::size_t>(place));
  }

  // At the index of another shape, dims matched by name.
  double read_named(ProcessorId processor, ValueId id, const Shape& of, const Index& index) const {
    Index own;
    for (const Dim& dim : value(id).shape) own.push_back(index[of.position(dim.name)]);
    return read(processor, id, own);
  }

  static Held computed(const Shape& shape, const std::function<double(const Index&)>& element) {
    Held out{std::make_shared<std::vector<double>>(), 0, dense_strides(shape)};
    each(shape, [&](const Index& index) { out.data->push_back(element(index)); });
    return out;
  }

  void fill(ValueId id, const std::string& name) {
    for (const ProcessorId processor : p_.mesh.processors()) {
      std::size_t seed = std::hash<std::string>()(name);
      const std::vector<int> coordinates = p_.mesh.coordinates(processor);
      for (std::size_t axis = 0; axis < coordinates.size(); ++axis)
        if (value(id).sharding.uses(static_cast<int>(axis)))
          seed = seed * 31 + static_cast<std::size_t>(coordinates[axis] + 1);
      std::mt19937_64 random(seed);
      held(processor, id) =
          computed(value(id).shape, [&](const Index&) { return static_cast<double>(random() % 5) - 2; });
    }
  }

  static double join(Reduce how, double a, double b) {
    switch (how) {
      case Reduce::kSum: return a + b;
      case Reduce::kMax: return std::max(a, b);
      case Reduce::kMin: return std::min(a, b);
      case Reduce::kProduct: return a * b;
    }
    return 0;
  }

  double reduced(ProcessorId processor, ValueId x, const Axes& axes, Reduce how, const Index& index) const {
    const std::vector<ProcessorId> group = p_.mesh.group(processor, axes);
    double sum = read(group[0], x, index);
    for (std::size_t i = 1; i < group.size(); ++i) sum = join(how, sum, read(group[i], x, index));
    return sum;
  }

  Held result(const Instr& instr, std::size_t output, ProcessorId processor) const {
    const Shape& shape = value(instr.outputs[output]).shape;
    const auto in = [&](std::size_t i) -> const Held& { return held(processor, instr.inputs[i]); };
    if (const auto* w = instr.as<View>()) return {in(0).data, in(0).offset + w->offset, w->strides};
    if (const auto* w = instr.as<Shard>()) {
      const std::size_t d = shape.position(w->dim);
      return {in(0).data, in(0).offset + p_.mesh.coordinate(processor, w->axes) * shape[d].size * in(0).strides[d],
              in(0).strides};
    }
    return computed(shape, [&](const Index& index) { return element(instr, output, processor, shape, index); });
  }

  double element(const Instr& instr, std::size_t output, ProcessorId processor, const Shape& shape, Index index) const {
    if (const auto* w = instr.as<Map>()) return mapped(*w, instr, processor, shape, index);
    if (const auto* w = instr.as<ReduceDims>()) return joined_dims(instr, w->how, processor, shape, index);
    if (instr.is<Contract>()) return joined_dims(instr, Reduce::kSum, processor, shape, index);
    if (instr.is<Copy>()) return read_named(processor, instr.inputs[0], shape, index);
    if (instr.is<AxisIndex>()) return p_.mesh.coordinate(processor, axes_of_index(instr));
    if (const auto* w = instr.as<AllReduce>()) return reduced(processor, instr.inputs[output], w->axes, w->how, index);
    if (const auto* w = instr.as<ReduceScatter>()) {
      const std::size_t d = shape.position(w->dim);
      index[d] += p_.mesh.coordinate(processor, w->axes) * shape[d].size;
      return reduced(processor, instr.inputs[output], w->axes, w->how, index);
    }
    if (const auto* w = instr.as<AllGather>()) {
      const std::size_t d = shape.position(w->dim);
      const std::int64_t size = value(instr.inputs[output]).shape[d].size;
      const ProcessorId from = p_.mesh.group(processor, w->axes)[static_cast<std::size_t>(index[d] / size)];
      index[d] %= size;
      return read(from, instr.inputs[output], index);
    }
    if (const auto* w = instr.as<Concat>()) {
      const std::size_t d = shape.position(w->dim);
      std::size_t i = 0;
      for (; index[d] >= value(instr.inputs[i]).shape.size_of(w->dim); ++i)
        index[d] -= value(instr.inputs[i]).shape.size_of(w->dim);
      return read_named(processor, instr.inputs[i], shape, index);
    }
    throw std::logic_error(std::string("no evaluation of ") + name_of(instr));
  }

  static Axes axes_of_index(const Instr& instr) { return instr.as<AxisIndex>()->axes; }

  // Over the dims that the output lacks, of the product of the operands.
  double joined_dims(const Instr& instr, Reduce how, ProcessorId processor, const Shape& shape,
                     const Index& index) const {
    Shape all = shape;
    for (ValueId id : instr.inputs) all = all.plus(value(id).shape);
    std::optional<double> sum;
    each(all.minus(shape), [&](const Index& inner) {
      Index whole = index;
      whole.insert(whole.end(), inner.begin(), inner.end());
      double product = 1;
      for (ValueId id : instr.inputs) product *= read_named(processor, id, all, whole);
      sum = sum ? join(how, *sum, product) : product;
    });
    return *sum;
  }

  double mapped(const Map& map, const Instr& instr, ProcessorId processor, const Shape& shape,
                const Index& index) const {
    std::vector<double> nodes;
    for (const MapNode& n : map.nodes) {
      const auto x = [&](std::size_t i) { return nodes[static_cast<std::size_t>(n.args[i])]; };
      double y = 0;
      if (n.op == "input") y = read_named(processor, instr.inputs[static_cast<std::size_t>(n.input)], shape, index);
      else if (n.op == "literal") y = n.literal.real();
      else if (n.op == "add") y = x(0) + x(1);
      else if (n.op == "subtract") y = x(0) - x(1);
      else if (n.op == "multiply") y = x(0) * x(1);
      else if (n.op == "maximum") y = std::max(x(0), x(1));
      else if (n.op == "less") y = x(0) < x(1);
      else if (n.op == "select") y = x(0) != 0 ? x(1) : x(2);
      else if (n.op == "negative") y = -x(0);
      else if (n.op == "relu") y = std::max(x(0), 0.0);
      else if (n.op == "identity" || n.op == "cast") y = x(0);
      else throw std::logic_error("no evaluation of " + n.op);
      nodes.push_back(y);
    }
    return nodes.back();
  }

  const Program& p_;
  Indexed<ProcessorId, ByValue<Held>> held_;
};

}  // namespace weft::test
