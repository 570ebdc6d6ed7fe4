// map: a tree of pointwise functions, one loop per node over a tile of a row. Every node is rounded to its dtype, so
// that fusing nodes into one map never changes a number.
#include <algorithm>
#include <array>
#include <memory>

#include "base/dispatch.h"
#include "base/index.h"
#include "base/str.h"
#include "kernels/pointwise.h"
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

constexpr std::int64_t kTile = 256;

// One node's numbers for a tile: floats in `f`, integers and bools in `i`.
struct Register {
  std::array<double, kTile> f;
  std::array<std::int64_t, kTile> i;
};

class MapKernel {
 public:
  explicit MapKernel(const KernelArgs& args)
      : nodes_(args.instr.as<Map>()->nodes),
        inputs_(args.inputs),
        out_(args.outputs[0]),
        registers_(nodes_.size()),
        strides_(all_strides(args)),
        rows_(out_.shape, strides_) {
    for (const MapNode& node : nodes_) {
      functions_.push_back(find_pointwise(node.op));
      check(node);
    }
  }

  void run() {
    const std::int64_t length = row_length(out_.shape);
    rows_.each([&](const std::int64_t* offsets, const std::int64_t* index) {
      for (std::int64_t begin = 0; begin < length; begin += kTile)
        tile(offsets, index, begin, std::min(kTile, length - begin));
    });
  }

 private:
  static std::vector<std::vector<std::int64_t>> all_strides(const KernelArgs& args) {
    std::vector<std::vector<std::int64_t>> strides;
    for (const TensorView& input : args.inputs) strides.push_back(strides_along(input, args.outputs[0].shape));
    strides.push_back(args.outputs[0].strides);
    return strides;
  }

  // Before the first step, not in the middle of it.
  void check(const MapNode& node) const {
    for (const char* own : {"input", "literal", "index", "cast", "select"})
      if (node.op == own) return;
    std::vector<DType> operands;
    for (int arg : node.args) operands.push_back(nodes_[at(arg)].dtype);
    const std::string misuse = pointwise_misuse(node.op, operands, node.dtype);
    if (!misuse.empty()) throw InternalError(misuse);
  }

  void tile(const std::int64_t* offsets, const std::int64_t* index, std::int64_t begin, std::int64_t count) {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const MapNode& node = nodes_[n];
      if (node.op == "input") load(n, offsets, begin, count);
      else if (node.op == "literal") literal(n, count);
      else if (node.op == "index") index_along(n, index, begin, count);
      else if (node.op == "cast") cast(n, count);
      else if (node.op == "select") select(n, count);
      else apply(n, count);
    }
    store(offsets, begin, count);
  }

  void load(std::size_t n, const std::int64_t* offsets, std::int64_t begin, std::int64_t count) {
    const std::size_t k = at(nodes_[n].input);
    const std::int64_t step = row_stride(strides_[k]);
    visit_dtype(inputs_[k].dtype, [&]<class T>() {
      const T* source = static_cast<const T*>(inputs_[k].data) + offsets[k] + begin * step;
      if (is_float(inputs_[k].dtype))
        for (std::int64_t e = 0; e < count; ++e) registers_[n].f[at(e)] = to_double(source[e * step]);
      else
        for (std::int64_t e = 0; e < count; ++e) registers_[n].i[at(e)] = to_int64(source[e * step]);
    });
  }

  void literal(std::size_t n, std::int64_t count) {
    const MapNode& node = nodes_[n];
    if (is_float(node.dtype)) std::fill_n(registers_[n].f.begin(), count, rounded(node.literal.real(), node.dtype));
    else std::fill_n(registers_[n].i.begin(), count, from_number<std::int64_t>(node.literal));
  }

  void index_along(std::size_t n, const std::int64_t* index, std::int64_t begin, std::int64_t count) {
    const std::size_t d = out_.shape.position(nodes_[n].dim);
    const bool innermost = d + 1 == out_.shape.rank();
    const std::int64_t first = out_.begin[d] + (innermost ? begin : index[d]);
    for (std::int64_t e = 0; e < count; ++e) {
      registers_[n].i[at(e)] = first + (innermost ? e : 0);
      registers_[n].f[at(e)] = rounded(static_cast<double>(registers_[n].i[at(e)]), nodes_[n].dtype);
    }
  }

  void cast(std::size_t n, std::int64_t count) {
    const std::size_t from = at(nodes_[n].args[0]);
    const DType source = nodes_[from].dtype, target = nodes_[n].dtype;
    visit_dtype(target, [&]<class T>() {
      for (std::int64_t e = 0; e < count; ++e) {
        const T value =
            is_float(source) ? from_double<T>(registers_[from].f[at(e)]) : from_int64<T>(registers_[from].i[at(e)]);
        if (is_float(target)) registers_[n].f[at(e)] = to_double(value);
        else registers_[n].i[at(e)] = std::is_same_v<T, Bool> ? to_int64(to_double(value)) : to_int64(value);
      }
    });
  }

  void select(std::size_t n, std::int64_t count) {
    const auto [c, a, b] = std::array{at(nodes_[n].args[0]), at(nodes_[n].args[1]), at(nodes_[n].args[2])};
    for (std::int64_t e = 0; e < count; ++e) {
      const Register& chosen = registers_[registers_[c].i[at(e)] != 0 ? a : b];
      if (is_float(nodes_[n].dtype)) registers_[n].f[at(e)] = chosen.f[at(e)];
      else registers_[n].i[at(e)] = chosen.i[at(e)];
    }
  }

  void apply(std::size_t n, std::int64_t count) {
    const MapNode& node = nodes_[n];
    const Pointwise* function = functions_[n];
    const std::size_t x = at(node.args[0]);
    const std::size_t y = at(node.args.back());
    const bool floats = is_float(nodes_[x].dtype), float_result = is_float(node.dtype);
    for (std::int64_t e = 0; e < count; ++e) {
      if (floats) {
        const double value = function->arity == 1 ? function->f1(registers_[x].f[at(e)])
                                                  : function->f2(registers_[x].f[at(e)], registers_[y].f[at(e)]);
        if (float_result) registers_[n].f[at(e)] = rounded(value, node.dtype);
        else registers_[n].i[at(e)] = from_double<std::int64_t>(value);
      } else {
        const std::int64_t value = function->arity == 1 ? function->i1(registers_[x].i[at(e)])
                                                        : function->i2(registers_[x].i[at(e)], registers_[y].i[at(e)]);
        registers_[n].i[at(e)] = wrapped(value, node.dtype);
      }
    }
  }

  // As the stored integer type would hold it.
  static std::int64_t wrapped(std::int64_t value, DType dtype) {
    switch (dtype) {
      case DType::kI32: return static_cast<std::int32_t>(value);
      case DType::kU32: return static_cast<std::uint32_t>(value);
      case DType::kU8: return static_cast<std::uint8_t>(value);
      case DType::kI8: return static_cast<std::int8_t>(value);
      default: return value;
    }
  }

  void store(const std::int64_t* offsets, std::int64_t begin, std::int64_t count) {
    const std::int64_t step = row_stride(out_.strides);
    const Register& result = registers_.back();
    visit_dtype(out_.dtype, [&]<class T>() {
      T* target = static_cast<T*>(out_.data) + offsets[inputs_.size()] + begin * step;
      if (is_float(out_.dtype))
        for (std::int64_t e = 0; e < count; ++e) target[e * step] = from_double<T>(result.f[at(e)]);
      else
        for (std::int64_t e = 0; e < count; ++e) target[e * step] = from_int64<T>(result.i[at(e)]);
    });
  }

  std::vector<MapNode> nodes_;
  std::vector<TensorView> inputs_;
  TensorView out_;
  std::vector<Register> registers_;
  std::vector<std::vector<std::int64_t>> strides_;
  Rows rows_;
  std::vector<const Pointwise*> functions_;
};

Kernel map(const KernelArgs& args) {
  return [kernel = std::make_shared<MapKernel>(args)](const StepState&) { kernel->run(); };
}

const AddKernel kMapKernel(kernels(), Map::kName, map);

}  // namespace

}  // namespace weft::reference
