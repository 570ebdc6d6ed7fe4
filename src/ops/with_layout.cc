// with_layout: this one value lies by its own rules. Ops of one operand follow it; where it meets operands that lie
// otherwise it goes back to the global layout.
#include "ops/rules.h"

namespace weft {

namespace {

const OpDef& kWithLayout = define_op({
    .name = "with_layout",
    .doc = "The same value laid out by its own rules.",
    .shape = shape_rule::same_as(0),
    .sharding = sharding_rule::relayout(),
    .gradient = [](const Grad& g) -> Tensors { return {g.dy()}; },
    .lower = [](Lowering& l) -> std::vector<ValueId> { return {l.resharder.reshard(l.inputs[0], l.wanted[0])}; },
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 12}, {"b", 12}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) { return Tensors{exp(with_layout(x[0], "a:- b:a?")) + x[0]}; }}},
});

}  // namespace

Tensor with_layout(const Tensor& x, std::string_view layout, Site site) {
  return apply(kWithLayout, {x}, {{"layout", Layout::parse(layout)}}, site);
}

}  // namespace weft
