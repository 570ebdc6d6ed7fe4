// A layer of one's own, a gated unit, in a model that learns to swap the halves of its input. docs/writing-a-layer.md
// explains it.
#include <cmath>
#include <iostream>

#include "weft/weft.h"
using namespace weft;

struct GatedOptions {
  bool bias = true;
  std::string name = "gated";
};

// (x value) * sigmoid(x gate + bias): x with `made` in place of `from`. Variables: "value" and "gate" [from, made], "bias"
// [made]. UserError if x lacks `from` or already has `made`.
Tensor gated(const Tensor& x, const DimRef& from, const Dim& made, const GatedOptions& options = {},
             Site site = Site::current()) {
  const Dim reduced = from.in(x, site);
  if (!x.shape().has(reduced) || x.shape().has(made.name))
    throw UserError({.code = "gated.wrong-dims",
                     .what = options.name + " goes from dim " + reduced.name + " to dim " + made.name + ", but '" +
                             x.name() + "' has no " + reduced.name + " or has " + made.name + " already",
                     .where = site,
                     .fix = "name a dim of the tensor and a new one, or rename() one of its dims"});
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Shape out = x.shape().minus({reduced}).plus({made});
  const auto product = [&](const std::string& weight) {
    return einsum({x, g.variable(weight, {reduced, made}, init::fan_in(reduced), {}, site)}, out, site);
  };
  Tensor gate = product("gate");
  if (options.bias) gate = add(gate, g.variable("bias", {made}, init::zeros(), {}, site), site);
  return multiply(product("value"), sigmoid(gate, site), site);
}

int main(int argc, char** argv) try {
  const Dim batch{"batch", 32}, io{"io", 16}, hidden{"hidden", 64};
  Graph g;
  const Tensor x = g.input("x", {batch, io}), target = g.input("target", {batch, io});
  const Tensor h = gated(x, io, hidden, {.name = "in"});
  const Tensor y = gated(h, hidden, io, {.bias = false, .name = "out"});
  const Tensor loss = mean(square(y - target));
  const optim::Adam adam(loss, g.variables());

  Session session(Mesh::parse(argc > 1 ? argv[1] : "data:2 model:2"));
  const Layout layout = Layout::parse(argc > 2 ? argv[2] : "batch:data hidden:model");
  Executable step = session.compile(g, layout, {.fetch = {loss}, .update = adam.updates()});
  Array inputs({batch, io}, DType::kF32), targets({batch, io}, DType::kF32);
  for (std::int64_t i = 0; i < inputs.elements(); ++i) inputs.set(i, std::sin(static_cast<double>(i * i % 97)));
  for (std::int64_t i = 0; i < inputs.elements(); ++i) targets.set(i, inputs.at(i / 16 * 16 + (i + 8) % 16));
  for (int t = 1; t <= 200; ++t) {
    Feeds feeds = adam.feeds(t, 0.01);
    feeds.emplace_back(x, inputs);
    feeds.emplace_back(target, targets);
    const Values values = step.run(feeds);
    if (t % 50 == 0) std::cout << "step " << t << "  loss " << values.scalar(loss) << "\n";
  }
} catch (const Error& error) {
  wire::report(error);
  return 2;
}
