// stop_gradient and custom_gradient: values pass through, gradients are defined by the user.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

const SampleInput kMatrix{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32};

const OpDef& kStopGradient = define_op({
    .name = "stop_gradient",
    .doc = "x itself, with derivative 0.",
    .shape = shape_rule::same_as(0),
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {Tensor()}; },
    .lower = [](Lowering& l) { return l.inputs; },
    .flops = flops_rule::none(),
    .samples = {{{kMatrix}, {}}},
});

using Backward = std::function<Tensors(const Tensors&, const Tensors&, const Tensors&)>;

// Operands: the forward results, then the inputs. The results pass through; `backward` turns their gradients into
// gradients of the inputs.
const OpDef& kCustomGradient = define_op({
    .name = "custom_gradient",
    .doc = "Results of a function with a derivative given by hand.",
    .shape =
        [](const OpCall& call) {
          return std::vector<TensorType>(call.inputs.begin(), call.inputs.begin() + call.attr<int>("results"));
        },
    .sharding = sharding_rule::relayout(),
    .gradient =
        [](const Grad& g) {
          const auto results = g.attr<int>("results");
          const Tensors inputs(g.xs().begin() + results, g.xs().end());
          const OwnDimsGuard theirs(g.y().graph(), false);
          const Tensors dxs = g.attr<Backward>("backward")(inputs, g.ys(), g.dys());
          if (dxs.size() != inputs.size())
            throw UserError({.code = "custom-gradient.count-mismatch",
                             .what = str("custom_gradient's backward returned ", dxs.size(), " gradients for ",
                                         inputs.size(), " inputs"),
                             .where = str("custom_gradient at ", to_string(g.site())),
                             .fix = "return one gradient for each input; an empty Tensor if there is none"});
          for (std::size_t i = 0; i < dxs.size(); ++i)
            if (dxs[i] && !same_dims(dxs[i].shape(), inputs[i].shape()))
              throw UserError({.code = "custom-gradient.shape-mismatch",
                               .what = str("custom_gradient's backward returned a gradient ", dxs[i].shape(),
                                           " for input '", inputs[i].name(), "' ", inputs[i].shape()),
                               .where = str("custom_gradient at ", to_string(g.site())),
                               .fix = "return a gradient with the dims of its input"});
          Tensors all(static_cast<std::size_t>(results));
          all.insert(all.end(), dxs.begin(), dxs.end());
          return all;
        },
    .lower =
        [](Lowering& l) {
          return std::vector<ValueId>(l.inputs.begin(), l.inputs.begin() + l.call.attr<int>("results"));
        },
    .flops = flops_rule::none(),
    .samples = {{{kMatrix},
                 [](Graph&, const Tensors& x) {
                   return custom_gradient(
                       x, [](const Tensors& t) { return Tensors{square(t[0])}; },
                       [](const Tensors& in, const Tensors&, const Tensors& dy) {
                         return Tensors{dy[0] * in[0] * 2.0};
                       });
                 }}},
});

}  // namespace

Tensor stop_gradient(const Tensor& x, Site site) { return apply(kStopGradient, {x}, site); }

Tensor clip_activation_gradient(const Tensor& x, double rms, Site site) {
  if (!(rms > 0))
    throw UserError({.code = "clip-activation-gradient.bad-rms",
                     .what = str("clip_activation_gradient cannot clip to a root mean square of ", rms),
                     .where = str("clip_activation_gradient at ", to_string(site)),
                     .fix = "give a number above 0"});
  const auto clipped = [rms, site](const Tensors&, const Tensors&, const Tensors& dys) {
    const Tensor size = sqrt(mean(square(dys[0], site), site), site);
    return Tensors{divide(dys[0], maximum(multiply(size, 1 / rms, site), 1.0, site), site)};
  };
  return custom_gradient(
      {x}, [](const Tensors& in) { return in; }, clipped, site)[0];
}

Tensors custom_gradient(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& forward,
                        const Backward& backward, Site site) {
  Tensors operands = forward(inputs);
  const int results = static_cast<int>(operands.size());
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return apply_all(kCustomGradient, operands, {{"results", results}, {"backward", backward}}, site);
}

}  // namespace weft
