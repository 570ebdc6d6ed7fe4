#include "runtime/cuda/epilogue.h"

#include <algorithm>
#include <map>

#include "base/str.h"
#include "language/shape_math.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"

namespace weft::cuda {

namespace {

class EpilogueText {
 public:
  EpilogueText(const Work& product, const Work& then, const Program& body)
      : product_(product), then_(then), body_(body), shape_(product.outputs[0].shape) {}

  bool fits() const {
    const auto within = [&](const Shape& shape) {
      return std::ranges::all_of(shape, [&](const Dim& dim) { return shape_.has(dim.name); });
    };
    if (product_.outputs[0].strides != dense_strides(shape_)) return false;
    for (const Instr& instr : body_.body)
      if (!instr.is<Map>() || !within(body_.values[instr.outputs[0]].shape)) return false;
    for (const TensorView& operand : then_.inputs)
      if (!within(operand.shape)) return false;
    for (const TensorView& result : then_.outputs) {
      if (!within(result.shape) || result.shape.elements() != shape_.elements()) return false;
      for (const TensorView& read : product_.inputs)
        if (share_memory(result, read)) return false;
    }
    return true;
  }

  Epilogue text() {
    std::vector<TensorView> views = then_.inputs;
    views.insert(views.end(), then_.outputs.begin(), then_.outputs.end());
    std::vector<std::vector<std::int64_t>> strides;
    for (const TensorView& view : views) strides.push_back(strides_along(view, shape_));
    const std::vector<Run> runs = joined_runs({shape_.begin(), shape_.end()}, strides);
    Epilogue made;
    std::map<ValueId, std::string> known;
    for (std::size_t k = 0; k < then_.inputs.size(); ++k) {
      const TensorView& view = then_.inputs[k];
      std::string& name = known[body_.inputs[k].value];
      name = "a";
      if (then_.instr.inputs[k] == product_.instr.outputs[0]) continue;
      name = str("e", k);
      made.params.push_back(in(view.dtype, str("then", k), view.data));
      made.text += str("const ", register_type(view.dtype), " ", name, " = get(then", k, "[", offset_text(runs, k, "i"),
                       "]);\n");
    }
    for (const Instr& instr : body_.body) {
      std::vector<std::string> args;
      for (const ValueId arg : instr.inputs) args.push_back(known.at(arg));
      const ValueId id = instr.outputs[0];
      const MapText map = map_text(instr.as<Map>()->nodes, args, str("n", id),
                                   [&](const std::string& dim) { return index_of(body_.values[id], dim); });
      made.text += map.statements;
      known[id] = map.result;
    }
    for (std::size_t o = 0; o < then_.outputs.size(); ++o) {
      const TensorView& view = then_.outputs[o];
      made.params.push_back(out(view.dtype, str("made", o), view.data));
      made.text += str("made", o, "[", offset_text(runs, then_.inputs.size() + o, "i"), "] = put<",
                       stored_type(view.dtype), ">(", known.at(body_.outputs[o].value), ");\n");
    }
    return made;
  }

 private:
  // The global index of element i along a dim.
  std::string index_of(const Value& value, const std::string& dim) const {
    const std::size_t at = shape_.position(dim);
    const auto begin = shard_begin(value.shape, value.sharding, then_.program.mesh, then_.processor);
    return str("(", begin[value.shape.position(dim)], "ll + i / ", dense_strides(shape_)[at], "ll % ", shape_[at].size,
               "ll)");
  }

  const Work &product_, &then_;
  const Program& body_;
  const Shape& shape_;
};

}  // namespace

std::optional<Epilogue> epilogue_of(const Work& product, const Work& then) {
  const auto* fused = then.instr.as<Fused>();
  if (!fused && !then.instr.is<Map>()) return std::nullopt;
  const Program body = fused ? *fused->body : body_of_one(then.program, then.instr);
  EpilogueText text(product, then, body);
  if (!text.fits()) return std::nullopt;
  return text.text();
}

}  // namespace weft::cuda
