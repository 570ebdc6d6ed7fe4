// A program outside of the tree of Weft: it sees the installed headers and library, nothing else. Trains a line on two
// threads and leaves with 0 if it was found.
#include <cmath>
#include <iostream>

#include "weft/weft.h"
using namespace weft;

int main() {
  const Dim batch{"batch", 8}, in{"in", 1};
  Graph g;
  const Tensor x = g.input("x", {batch, in}), y = g.input("y", {batch});
  const Tensor slope = g.variable("slope", {in});
  const Tensor loss = mean(square(einsum({x, slope}, {batch}) - y));
  Session session(Mesh::parse("data:2"));
  Executable step = session.compile(g, Layout::parse("batch:data"),
                                    {.fetch = {loss}, .update = optim::sgd(loss, g.variables(), 0.02)});
  const Array xs({batch, in}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  const Array ys({batch}, std::vector<float>{0, 3, 6, 9, 12, 15, 18, 21});
  for (int i = 0; i < 50; ++i) step.run({{x, xs}, {y, ys}});
  const double found = session.value("slope").item();
  std::cout << "slope " << found << '\n';
  return std::fabs(found - 3) < 1e-3 ? 0 : 1;
}
