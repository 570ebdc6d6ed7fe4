// input, variable, assign: values that enter a run, values that persist between runs, and their changes.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

const OpDef& kInput = define_op({
    .name = "input",
    .doc = "A value given at every run.",
    .shape = shape_rule::stated_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {}; },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {l.builder.input(l.call.attr<std::string>("name"), l.out())};
    },
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}}, [](Graph&, const Tensors& x) { return x; }}},
    .is_state = true,
});

const OpDef& kVariable = define_op({
    .name = "variable",
    .doc = "State that outlives a run, in its slice dtype.",
    .shape = shape_rule::stated_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {}; },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {l.builder.variable(l.call.attr<std::string>("name"), l.out(),
                                 l.call.attr<VariableOptions>("options").trainable)};
    },
    .flops = flops_rule::none(),
    .samples = {{{},
                 [](Graph& g, const Tensors&) {
                   return Tensors{g.variable("w", {{"a", 6}, {"b", 4}}, init::normal(1))};
                 }}},
    .is_state = true,
});

std::vector<TensorType> assign_type(const OpCall& call) {
  if (!same_dims(call.in(0), call.in(1)) || call.inputs[0].dtype != call.inputs[1].dtype)
    throw UserError({.code = "assign.type-mismatch",
                     .what = str("assign of ", call.inputs[1].dtype, " ", call.in(1), " to variable '",
                                 call.attr<std::string>("name"), "', which is ", call.inputs[0].dtype, " ", call.in(0)),
                     .where = call.where(),
                     .fix = "give a value with the dims and the slice dtype of the variable"});
  return {call.inputs[0]};
}

// The update may work on smaller shards than the variable's.
std::vector<ValueId> lower_assign(Lowering& l) {
  const ValueId updated = l.context.reshard(l.builder.dense(l.inputs[1], l.out().shape), l.wanted[0]);
  const ValueId contents = l.builder.dense(updated, l.builder.value(updated).shape);
  l.builder.update(l.call.attr<std::string>("name"), contents);
  return {contents};
}

const OpDef& kAssign = define_op({
    .name = "assign",
    .doc = "Gives a variable new contents, seen from the next run on.",
    .shape = assign_type,
    .sharding = sharding_rule::pointwise(),
    .no_gradient = "it changes state",
    .lower = lower_assign,
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph& g, const Tensors& x) {
                   const Tensor w = g.variable("w", {{"a", 6}, {"b", 4}}, init::normal(1));
                   return Tensors{assign(w, x[0]) + 0.0};
                 }}},
});

// The variable's node: the value that the optimizer reads and writes, in slice dtype.
Tensor slice_of(const Tensor& variable, Site site) {
  const NodeId node = variable ? variable_of(*variable.graph(), variable.id()) : NodeId();
  if (!node)
    throw UserError({.code = "assign.not-a-variable",
                     .what = str(variable ? str("'", variable.name(), "'") : "an empty tensor", " is not a variable"),
                     .where = site,
                     .fix = "give a tensor that Graph::variable() made"});
  return {variable.graph(), TensorId{node, 0}};
}

}  // namespace

Tensor Graph::input(const std::string& name, const Shape& shape, DType dtype, Site site) {
  const std::string full = data_->scoped(name);
  if (data_->inputs.contains(full))
    throw UserError({.code = "input.duplicate-name",
                     .what = str("there is an input '", full, "' already"),
                     .where = site,
                     .fix = "give the input another name, or make it in another scope"});
  const Tensor x = apply_all(*this, kInput, {}, {{"type", TensorType{shape, dtype}}, {"name", full}}, site)[0];
  data_->inputs[full] = x.id().node;
  return x.named(full);
}

Tensor Graph::variable(const std::string& name, const Shape& shape, const Init& init, const VariableOptions& options,
                       Site site) {
  const std::string full = name.starts_with('/') ? name.substr(1) : data_->scoped(name);
  if (data_->variable_nodes.contains(full))
    throw UserError({.code = "variable.duplicate-name",
                     .what = str("there is a variable '", full, "' already"),
                     .where = site,
                     .fix = "give it another name or scope; to share weights, pass the first Tensor on"});
  if (init.kind == Init::Kind::kValues && init.parts.empty() && !same_dims(init.values->shape(), shape))
    throw UserError(
        {.code = "variable.initial-shape-mismatch",
         .what = str("variable '", full, "' ", shape, " cannot start from values of shape ", init.values->shape()),
         .where = site,
         .fix = "give values with the variable's dims"});
  if (!init.parts.empty() && !shape.has(Dim{init.stacked, static_cast<std::int64_t>(init.parts.size())}))
    throw UserError({.code = "variable.stacked-parts-mismatch",
                     .what = str("variable '", full, "' ", shape, " cannot be stacked of ", init.parts.size(),
                                 " parts along '", init.stacked, "'"),
                     .where = site,
                     .fix = "give it a dim of that name with one index for each part"});
  const DType slice = options.slice.value_or(options.stored);
  const auto why = init.kind == Init::Kind::kConstant ? why_not_held(init.a, slice) : std::nullopt;
  if (why)
    throw UserError({.code = "variable.initial-number-not-held",
                     .what = str("variable '", full, "' of ", slice, " ", shape, " cannot start from the number ",
                                 init.a, ", ", *why),
                     .where = site,
                     .fix = str("give a number that ", slice, " holds, or store the variable in another dtype")});
  Tensor x =
      apply_all(*this, kVariable, {},
                {{"type", TensorType{shape, slice}}, {"name", full}, {"init", init}, {"options", options}}, site)[0]
          .named(full);
  data_->variable_nodes[full] = x.id().node;
  const DType activation = options.activation.value_or(options.stored);
  if (activation != slice) {
    x = cast(x, activation, site);
    data_->nodes[x.id().node].loop = -1;  // in no loop's body, like the variable
  }
  data_->variables.push_back(x.id());
  return x;
}

std::string variable_name(const Tensor& x) {
  const Tensor slice = slice_of(x, x ? x.site() : Site::current());
  return slice.graph()->node(slice.id()).attrs.get<std::string>("name");
}

Tensors Graph::variables() const {
  Tensors trainable;
  for (const Tensor& x : all_variables()) {
    const Node& node = data_->nodes[variable_of(*data_, x.id())];
    if (node.attrs.get<VariableOptions>("options").trainable) trainable.push_back(x);
  }
  return trainable;
}

Tensor assign(const Tensor& variable, const Tensor& value, Site site) {
  const Tensor slice = slice_of(variable, site);
  if (variable.graph()->loop >= 0)
    throw UserError({.code = "assign.inside-loop",
                     .what = str("variable '", variable_name(variable), "' is assigned inside the body of a loop"),
                     .where = site,
                     .fix = "carry the value through the loop and assign the result of loop()"});
  return apply(kAssign, {slice, cast(value, slice.dtype(), site)}, {{"name", variable_name(variable)}}, site);
}

Tensor assign_add(const Tensor& variable, const Tensor& value, Site site) {
  const Tensor slice = slice_of(variable, site);
  return assign(variable, add(slice, cast(value, slice.dtype(), site), site), site);
}

Tensor assign_sub(const Tensor& variable, const Tensor& value, Site site) {
  const Tensor slice = slice_of(variable, site);
  return assign(variable, subtract(slice, cast(value, slice.dtype(), site), site), site);
}

}  // namespace weft
