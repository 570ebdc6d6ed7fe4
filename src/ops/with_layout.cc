// with_layout: sets the layout of one value. Ops with one operand keep it; if it meets operands with other shardings,
// it is resharded to the global layout.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

// Checks only the dims: the axes are known when there is a mesh.
std::vector<TensorType> with_layout_type(const OpCall& call) {
  for (const LayoutRule& rule : call.attr<Layout>("layout").rules())
    if (!rule.optional && !call.in().has(rule.dim))
      throw UserError({.code = "with-layout.unknown-dim",
                       .what = str("with_layout lays dim '", rule.dim, "', which ", call.in(), " does not have"),
                       .where = call.where(),
                       .fix = str("name its dims: ", join(call.in().names(), ", "),
                                  "; end the rule with '?' if the dim or axis may be absent")});
  return {call.inputs[0]};
}

// An error names the user's line, not only the text.
Layout parsed(std::string_view layout, Site site) {
  try {
    return Layout::parse(layout);
  } catch (const UserError& error) {
    throw UserError({.code = error.text().code,
                     .what = error.text().what,
                     .where = str("with_layout at ", to_string(site), ", ", error.text().where.text),
                     .fix = error.text().fix});
  }
}

const OpDef& kWithLayout = define_op({
    .name = "with_layout",
    .doc = "The same value in another layout.",
    .shape = with_layout_type,
    .sharding = sharding_rule::relayout(),
    .gradient = [](const Grad& g) -> Tensors { return {g.dy()}; },
    .lower = [](Lowering& l) -> std::vector<ValueId> { return {l.context.reshard(l.inputs[0], l.wanted[0])}; },
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 12}, {"b", 12}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) { return Tensors{exp(with_layout(x[0], "a:- b:p?")) + x[0]}; }}},
});

}  // namespace

Tensor with_layout(const Tensor& x, std::string_view layout, Site site) {
  return apply(kWithLayout, {x}, {{"layout", parsed(layout, site)}}, site);
}

}  // namespace weft
