// The paper's fully connected example: y = relu(x w) v, on the mesh and layout of your choice.
//   two_layer ["data:2 model:2" ["batch:data hidden:model"]]
//   mpirun -n 4 two_layer ["data:2 model:2" ["batch:data hidden:model"]]
#include <iostream>

#include "arguments.h"
using namespace weft;

int main(int argc, char** argv) try {
  const auto [wire, mesh, layout] = Arguments(argc, argv, "data:2 model:2", "batch:data hidden:model");
  const Dim batch{"batch", 32}, io{"io", 16}, hidden{"hidden", 64};

  Graph g;
  const Tensor x = g.input("x", {batch, io});
  const Tensor target = g.input("target", {batch, io});
  const Tensor w = g.variable("w", {io, hidden}, init::fan_in(io));
  const Tensor v = g.variable("v", {hidden, io}, init::fan_in(hidden));

  const Tensor h = relu(einsum({x, w}, {batch, hidden}));
  const Tensor y = einsum({h, v}, {batch, io});
  const Tensor loss = mean(square(y - target));
  const Updates updates = optim::sgd(loss, g.variables(), 0.5);

  Session session(mesh, wire);
  Executable step = session.compile(g, layout, {.fetch = {loss}, .update = updates});
  std::cout << step.report();

  Array inputs({batch, io}, DType::kF32), targets({batch, io}, DType::kF32);
  for (std::int64_t i = 0; i < inputs.elements(); ++i) {
    inputs.set(i, static_cast<double>(i * 37 % 101) / 50 - 1);
    targets.set(i, inputs.at(i) * inputs.at(i));
  }
  for (int i = 1; i <= 100; ++i) {
    const Values out = step.run({{x, inputs}, {target, targets}});
    if (i % 20 == 0) std::cout << "step " << i << "  loss " << out.scalar(loss) << "\n";
  }
} catch (const Error& error) {
  wire::report(error);
  return 2;
}
