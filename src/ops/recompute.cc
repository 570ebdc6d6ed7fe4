// recompute and reversible: functions whose intermediate values are recomputed for the backward pass instead of kept.
#include <algorithm>

#include "base/str.h"
#include "language/region.h"
#include "ops/rules.h"

namespace weft {

namespace {

// A function as the nodes that it made.
struct Recorded {
  Region region;
  std::vector<TensorId> results;
  std::vector<TensorId> captures;
};

Recorded recorded(const GraphData& graph, NodeId first, const Tensors& results) {
  Recorded made{{first, graph.nodes.end_id(), graph.loop}, {}, {}};
  for (const Tensor& x : results) made.results.push_back(x.id());
  made.captures = captures_of(graph, made.region, made.results);
  return made;
}

// Operands: the results, then the captures. The results pass through; their gradients become gradients of the captures.
const OpDef& kRecompute = define_op({
    .name = "recompute",
    .doc = "Results of a function whose inner values are computed again for the backward pass.",
    .shape =
        [](const OpCall& call) {
          const auto results = static_cast<std::ptrdiff_t>(call.attr<Recorded>("made").results.size());
          return std::vector<TensorType>(call.inputs.begin(), call.inputs.begin() + results);
        },
    .sharding = sharding_rule::relayout(),
    .gradient =
        [](const Grad& g) {
          const auto& made = g.attr<Recorded>("made");
          const std::size_t results = made.results.size();
          const std::shared_ptr<GraphData>& graph = g.x().graph();
          std::map<TensorId, Tensor> by;
          Tensors xs(g.xs().begin() + static_cast<std::ptrdiff_t>(results), g.xs().end());
          for (std::size_t i = 0; i < xs.size(); ++i) by[made.captures[i]] = xs[i];
          const NodeId first = graph->nodes.end_id();
          const Tensors again = clone_region(graph, made.region, by, made.results);
          Tensors ys, dys;
          for (std::size_t i = 0; i < results; ++i)
            if (is_float(again[i].dtype())) {
              ys.push_back(again[i]);
              dys.push_back(g.dy(i));
            }
          Tensors all(results);
          const Tensors dxs = gradients_from(first, ys, xs, dys, g.site());
          all.insert(all.end(), dxs.begin(), dxs.end());
          return all;
        },
    .lower =
        [](Lowering& l) {
          const auto results = static_cast<std::ptrdiff_t>(l.call.attr<Recorded>("made").results.size());
          return std::vector<ValueId>(l.inputs.begin(), l.inputs.begin() + results);
        },
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph& g, const Tensors& x) {
                   const Tensor w = g.variable("w", {{"b", 4}, {"c", 8}}, init::normal(1));
                   return recompute(g, [&] { return Tensors{tanh(einsum({x[0], w}))}; });
                 }}},
});

// A stack of half residual blocks as one op. Operands: the two results, the two inputs, the captures of all functions.
struct Stack {
  struct Layer {
    Recorded made;
    TensorId x;  // the input of the function
    std::vector<std::size_t>
        captures;  // for each capture of the function its position among the stack's captures; none for x
  };
  std::vector<Layer> layers;
};

constexpr std::size_t kNoCapture = static_cast<std::size_t>(-1);

// From the outputs down: computes each layer's inputs from its outputs, then runs its function again.
Tensors reversed_gradient(const Grad& g) {
  const auto& stack = g.attr<Stack>("stack");
  const std::shared_ptr<GraphData>& graph = g.x().graph();
  const Site site = g.site();
  Tensor y1 = g.x(0), y2 = g.x(1), dy1 = g.dy(0), dy2 = g.dy(1);
  Tensors all(g.xs().size());
  for (auto layer = stack.layers.rbegin(); layer != stack.layers.rend(); ++layer) {
    // y1 = x2, y2 = x1 + f(x2).
    const Tensor x2 = identity(y1, site);  // separates its gradient from the gradient of a capture, which may be y1
    std::map<TensorId, Tensor> by = {{layer->x, x2}};
    Tensors xs = {x2};
    std::vector<std::size_t> operand = {kNoCapture};
    for (std::size_t i = 0; i < layer->captures.size(); ++i) {
      if (layer->captures[i] == kNoCapture) continue;
      operand.push_back(4 + layer->captures[i]);
      xs.push_back(g.x(operand.back()));
      by[layer->made.captures[i]] = xs.back();
    }
    const NodeId first = graph->nodes.end_id();
    const Tensor f = clone_region(graph, layer->made.region, by, layer->made.results)[0];
    const Tensors dxs = gradients_from(first, {f}, xs, {dy2}, site);
    const Tensor x1 = subtract(y2, f, site);
    for (std::size_t i = 1; i < xs.size(); ++i)
      if (dxs[i]) all[operand[i]] = all[operand[i]] ? add(all[operand[i]], dxs[i], site) : dxs[i];
    const Tensor dx2 = dxs[0] ? add(dy1, dxs[0], site) : dy1;
    dy1 = dy2;
    dy2 = dx2;
    y2 = x2;
    y1 = x1;
  }
  all[2] = dy1;
  all[3] = dy2;
  return all;
}

const OpDef& kReversible = define_op({
    .name = "reversible",
    .doc = "A stack of half residual blocks whose inputs are made from their outputs in the backward pass.",
    .shape = [](const OpCall& call) { return std::vector<TensorType>(call.inputs.begin(), call.inputs.begin() + 2); },
    .sharding = sharding_rule::relayout(),
    .gradient = reversed_gradient,
    .lower = [](Lowering& l) { return std::vector<ValueId>(l.inputs.begin(), l.inputs.begin() + 2); },
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}, {{{"a", 6}, {"b", 4}}, uniform(-1, 1)}},
                 [](Graph& g, const Tensors& x) {
                   const Tensor w = g.variable("w", {{"b", 4}, {"c", 4}}, init::normal(1));
                   const auto f = [&](const Tensor& h) { return tanh(rename(einsum({h, w}), {"c", 4}, "b")); };
                   return reversible(x[0], x[1], {f, f, [](const Tensor& h) { return sin(h); }});
                 }}},
});

}  // namespace

Tensors recompute(const Graph& g, const std::function<Tensors()>& function, Site site) {
  const NodeId first = g.data()->nodes.end_id();
  const Tensors results = function();
  if (results.empty())
    throw UserError({.code = "recompute.no-result",
                     .what = "the function given to recompute() returned no tensor",
                     .where = str("recompute at ", to_string(site)),
                     .fix = "return the tensors that the rest of the model uses"});
  const Recorded made = recorded(*g.data(), first, results);
  Tensors operands = results;
  for (TensorId id : made.captures) operands.emplace_back(g.data(), id);
  return apply_all(kRecompute, operands, {{"made", made}}, site);
}

Tensors reversible(const Tensor& x1, const Tensor& x2, const std::vector<std::function<Tensor(const Tensor&)>>& layers,
                   Site site) {
  if (!x1 || !x2 || !same_dims(x1.shape(), x2.shape()) || x1.dtype() != x2.dtype())
    throw UserError({.code = "reversible.inputs-differ",
                     .what = str("reversible() of ", x1 ? str(x1.dtype(), " ", x1.shape()) : str("nothing"), " and ",
                                 x2 ? str(x2.dtype(), " ", x2.shape()) : str("nothing")),
                     .where = str("reversible at ", to_string(site)),
                     .fix = "give two tensors of the same dims and dtype"});
  const std::shared_ptr<GraphData>& graph = x1.graph();
  Stack stack;
  std::vector<TensorId> captures;
  Tensor a = x1, b = transpose(x2, x1.shape(), site);
  for (const auto& layer : layers) {
    const Tensor given = identity(b, site);  // separates the function's input from its captures
    const NodeId first = graph->nodes.end_id();
    const Tensor f = layer(given);
    if (!f || !same_dims(f.shape(), a.shape()) || f.dtype() != a.dtype())
      throw UserError({.code = "reversible.layer-mismatch",
                       .what = str("a layer of reversible() gave ", f ? str(f.dtype(), " ", f.shape()) : str("nothing"),
                                   " for ", a.dtype(), " ", a.shape()),
                       .where = str("reversible at ", to_string(site)),
                       .fix = "give a tensor like the layer's input"});
    Stack::Layer one{recorded(*graph, first, {f}), given.id(), {}};
    for (TensorId id : one.made.captures) {
      if (id == given.id()) {
        one.captures.push_back(kNoCapture);
        continue;
      }
      const auto found = std::find(captures.begin(), captures.end(), id);
      one.captures.push_back(static_cast<std::size_t>(found - captures.begin()));
      if (found == captures.end()) captures.push_back(id);
    }
    stack.layers.push_back(std::move(one));
    const Tensor sum = add(a, transpose(f, a.shape(), site), site);
    a = b;
    b = sum;
  }
  Tensors operands = {a, b, x1, x2};
  for (TensorId id : captures) operands.emplace_back(graph, id);
  return apply_all(kReversible, operands, {{"stack", stack}}, site);
}

}  // namespace weft
