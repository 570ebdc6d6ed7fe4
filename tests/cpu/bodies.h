// Small bodies of maps and reductions, and running them on memory of the test's own: by the CPU engine in one sweep, and
// by the reference's kernels one after another.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "base/dispatch.h"
#include "base/str.h"
#include "program/fusible.h"
#include "runtime/cpu/kernels.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/workers.h"

namespace weft::test {

inline Kernel cpu_kernel(const KernelArgs& args) { return cpu::kernels().make(args); }
inline Kernel reference_kernel(const KernelArgs& args) { return reference::kernels().make(args); }

// A body under construction.
struct BodyMaker {
  Program program;

  ValueId value(const Shape& shape, DType dtype = DType::kF32) {
    return program.values.add(
        {str("v", program.values.size()), dtype, shape, Sharding{std::vector<Axes>(shape.rank()), {}}});
  }
  const Value& of(ValueId id) const { return program.values[id]; }
  ValueId input(const Shape& shape, DType dtype = DType::kF32) {
    const ValueId id = value(shape, dtype);
    program.inputs.push_back({str("i", id), id});
    return id;
  }
  // A map of `nodes`, whose first ones are the inputs.
  ValueId map(const std::vector<ValueId>& inputs, const std::vector<MapNode>& nodes, const Shape& shape) {
    Map operation;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      operation.nodes.push_back({.op = "input", .dtype = of(inputs[i]).dtype, .input = static_cast<int>(i)});
    operation.nodes.insert(operation.nodes.end(), nodes.begin(), nodes.end());
    const ValueId out = value(shape, operation.nodes.back().dtype);
    program.body.push_back({operation, inputs, {out}, {}});
    return out;
  }
  ValueId apply(const std::string& op, const std::vector<ValueId>& inputs, const Shape& shape,
                std::optional<DType> dtype = {}) {
    std::vector<int> args;
    for (std::size_t i = 0; i < inputs.size(); ++i) args.push_back(static_cast<int>(i));
    return map(inputs, {{.op = op, .args = args, .dtype = dtype.value_or(of(inputs.back()).dtype)}}, shape);
  }
  ValueId reduce(ValueId x, const Shape& shape, Reduce how = Reduce::kSum) {
    const ValueId out = value(shape, of(x).dtype);
    program.body.push_back({ReduceDims{how}, {x}, {out}, {}});
    return out;
  }
  void output(ValueId id) { program.outputs.push_back({str("o", id), id}); }
};

// Memory with room around it, filled with a pattern that a stray write would break.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes), data_(bytes + 2 * kRoom, std::byte{0x5a}) {}
  std::byte* data() { return data_.data() + kRoom; }
  bool untouched_around() const {
    for (std::size_t i = 0; i < kRoom; ++i)
      if (data_[i] != std::byte{0x5a} || data_[kRoom + bytes_ + i] != std::byte{0x5a}) return false;
    return true;
  }

 private:
  static constexpr std::size_t kRoom = 128;
  std::size_t bytes_;
  std::vector<std::byte> data_;
};

struct Held {
  std::shared_ptr<Memory> memory;
  TensorView view;
};

// Of the shape, with its dims in the order of `order` in memory and `pad` unused elements behind each row of them.
inline Held held(const Shape& shape, DType dtype, const Shape& order, std::int64_t pad = 0) {
  std::vector<std::int64_t> strides(order.rank());
  std::int64_t stride = 1;
  for (std::size_t d = order.rank(); d-- > 0; stride *= order[d].size + (d + 1 == order.rank() ? pad : 0))
    strides[d] = stride;
  Held out{std::make_shared<Memory>(static_cast<std::size_t>(stride + 1) * size_of(dtype)), {}};
  out.view = dense_view(out.memory->data(), dtype, shape);
  for (std::size_t d = 0; d < shape.rank(); ++d) out.view.strides[d] = strides[order.position(shape[d].name)];
  return out;
}
inline Held held(const Value& value) { return held(value.shape, value.dtype, value.shape); }

inline std::int64_t offset_of(const TensorView& view, std::int64_t element) {
  std::int64_t offset = 0;
  for (std::size_t d = view.shape.rank(); d-- > 0; element /= view.shape[d].size)
    offset += element % view.shape[d].size * view.strides[d];
  return offset;
}
inline double number(const TensorView& view, std::int64_t element) {
  return visit_dtype(view.dtype,
                     [&]<class T>() { return to_double(static_cast<const T*>(view.data)[offset_of(view, element)]); });
}
inline void set_number(const TensorView& view, std::int64_t element, double x) {
  visit_dtype(view.dtype, [&]<class T>() { static_cast<T*>(view.data)[offset_of(view, element)] = from_double<T>(x); });
}

// Their workspace lives as long as the args.
inline KernelArgs kernel_args(const Program& program, const Instr& instr, Workers& workers,
                              std::vector<TensorView> inputs, std::vector<TensorView> outputs) {
  auto memory = std::make_shared<std::deque<std::vector<std::max_align_t>>>();
  return {.program = program,
          .instr = instr,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .processor = ProcessorId(0),
          .label = {},
          .group = {},
          .workers = &workers,
          .workspace = [memory](std::size_t bytes) -> void* {
            return memory->emplace_back(bytes / sizeof(std::max_align_t) + 1).data();
          }};
}

// Every value of the body, by the reference's kernels.
inline ByValue<Held> run_reference(const Program& body, const std::vector<Held>& inputs) {
  Workers workers(1);
  ByValue<Held> values(body.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[body.inputs[i].value] = inputs[i];
  for (const Instr& instr : body.body) {
    const ValueId out = instr.outputs[0];
    values[out] = held(body.values[out]);
    std::vector<TensorView> operands;
    for (ValueId id : instr.inputs) operands.push_back(values[id].view);
    const KernelArgs args = kernel_args(body, instr, workers, operands, {values[out].view});
    reference_kernel(args)({});
  }
  return values;
}

// The outputs, in one sweep. Output k lies over input over[k], if that is not negative.
inline std::vector<Held> run_fused(const Program& body, const std::vector<Held>& inputs, int workers,
                                   const std::vector<int>& over = {}) {
  Workers team(workers);
  Program around;
  around.mesh = body.mesh;
  const Instr instr{Fused{Body(body)}, {}, {}, {}};
  std::vector<Held> outputs;
  std::vector<TensorView> in, out;
  for (const Held& input : inputs) in.push_back(input.view);
  for (std::size_t k = 0; k < body.outputs.size(); ++k) {
    const bool in_place = k < over.size() && over[k] >= 0;
    outputs.push_back(in_place ? inputs[static_cast<std::size_t>(over[k])] : held(body.values[body.outputs[k].value]));
    outputs.back().view.dtype = body.values[body.outputs[k].value].dtype;
    out.push_back(outputs.back().view);
  }
  const Kernel kernel = cpu_kernel(kernel_args(around, instr, team, in, out));
  kernel({});
  return outputs;
}

// `tolerance` is relative to the larger of 1 and the wanted number; 0 demands the same bits.
inline testing::AssertionResult same(const TensorView& got, const TensorView& want, double tolerance = 0) {
  for (std::int64_t i = 0; i < want.shape.elements(); ++i) {
    const double x = number(got, i), y = number(want, i);
    const bool both_nan = x != x && y != y;
    if (both_nan || x == y || std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y))) continue;
    return testing::AssertionFailure() << "element " << i << " of " << want.shape << " is " << x << ", not " << y;
  }
  return testing::AssertionSuccess();
}

}  // namespace weft::test
