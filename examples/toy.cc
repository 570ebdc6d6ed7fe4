// A deep stack whose hidden dims alternate between two names, one of them laid on an axis: every weight is split, every
// second product ends in a sum over the axis, and nothing is ever gathered.
#include <iostream>

#include "weft/weft.h"
using namespace weft;

int main() try {
  const Dim batch{"batch", 16}, io{"io", 8}, even{"hidden_even", 32}, odd{"hidden_odd", 32};
  Graph g;
  const Tensor x = g.input("x", {batch, io});
  Tensor h = x;
  Dim from = io;
  for (int layer = 0; layer < 4; ++layer) {
    const Dim to = layer % 2 == 0 ? even : odd;
    const auto scope = g.scope("layer_" + std::to_string(layer));
    const Tensor w = g.variable("w", {from, to}, init::fan_in(from));
    h = relu(einsum({h, w}, {batch, to}));
    from = to;
  }
  const Tensor out = einsum({h, g.variable("out", {from, io}, init::fan_in(from))}, {batch, io});
  const Tensor loss = mean(square(out - x));
  const optim::Adam adam(loss, g.variables());

  Session session(Mesh::parse("rows:2 cols:2"));
  const Layout layout = Layout::parse("batch:rows hidden_odd:cols");
  Executable step = session.compile(g, layout, {.fetch = {loss}, .update = adam.updates()});
  std::cout << step.report();
  Array inputs({batch, io}, DType::kF32);
  for (std::int64_t i = 0; i < inputs.elements(); ++i) inputs.set(i, static_cast<double>(i * 31 % 17) / 8 - 1);
  for (int t = 1; t <= 100; ++t) {
    Feeds feeds = adam.feeds(t, 0.01);
    feeds.emplace_back(x, inputs);
    const Values values = step.run(feeds);
    if (t % 20 == 0) std::cout << "step " << t << "  loss " << values.scalar(loss) << "\n";
  }
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
