#include <iostream>

#include "weft/weft.h"
using namespace weft;

int main() {
  const Dim batch{"batch", 64}, pixel{"pixel", 64}, hidden{"hidden", 1024}, digit{"digit", 10};

  Graph g;
  const Tensor image = g.input("image", {batch, pixel});
  const Tensor label = g.input("label", {batch}, DType::kI32);
  const Tensor w1 = g.variable("w1", {pixel, hidden}, init::fan_in(pixel));
  const Tensor w2 = g.variable("w2", {hidden, digit}, init::fan_in(hidden));

  const Tensor h = relu(einsum({image, w1}, {batch, hidden}));
  const Tensor logits = einsum({h, w2}, {batch, digit});
  const Tensor loss = mean(cross_entropy(logits, label, digit));
  const Updates updates = optim::sgd(loss, g.variables(), 0.5);

  const Mesh mesh = Mesh::parse("data:2 model:4");
  const Layout layout = Layout::parse("batch:data hidden:model");
  Session session(mesh);
  Executable step = session.compile(g, layout, {.fetch = {loss}, .update = updates});
  std::cout << step.report();  // bytes, flops and collectives per processor

  Array images({batch, pixel}, DType::kF32), labels({batch}, DType::kI32);
  for (int i = 0; i < 64; ++i) labels.set(i, i % 10);
  for (int i = 0; i < 64 * 64; ++i) images.set(i, i % 64 % 10 == i / 64 % 10);  // digit d: pixels d, d + 10, …
  for (int i = 0; i < 10; ++i) std::cout << step.run({{image, images}, {label, labels}}).scalar(loss) << '\n';
}
