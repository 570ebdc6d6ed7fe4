// Graph 42 of tests/random, cut down. Found: nothing.
//   a sample
//   of what is written
// To run it again, copy it to tests/random/<name>_test.cc.
// clang-format off
#include <gtest/gtest.h>

#include "random/check.h"

namespace weft::random_graphs::graph_42 {
namespace {

Built built_graph() {
  Built built;
  Graph& g = built.graph;
  [[maybe_unused]] const Tensor v0 = g.input("x0", Shape{Dim{"a", 12}, Dim{"d", 4}}, DType::kF32);
  [[maybe_unused]] const Tensor v1 = g.input("x1", Shape{Dim{"a", 12}}, DType::kI32);
  [[maybe_unused]] const Tensor v2 = g.variable("w2", Shape{Dim{"d", 4}}, init::uniform(-1.0, 1.0));
  [[maybe_unused]] const Tensor v3 = g.variable("w3", Shape{Dim{"a", 12}}, init::constant(2.0), {.stored = DType::kI32, .trainable = false});
  [[maybe_unused]] const Tensor v4 = einsum(Tensors{v0, v2}, Shape{Dim{"a", 12}});
  [[maybe_unused]] const Tensor v5 = custom_gradient( {v4}, [](const Tensors& t) { return Tensors{square(t[0])}; }, [](const Tensors& in, const Tensors&, const Tensors& dy) { return Tensors{dy[0] * tanh(in[0])}; })[0];
  [[maybe_unused]] const Tensor v6 = with_layout(v5, "a:-");
  [[maybe_unused]] const Tensor v7 = gather(v0, v1, Dim{"d", 4});
  [[maybe_unused]] const Tensor v8 = cumsum(v7, Dim{"a", 12}, true, false);
  [[maybe_unused]] const Tensor v9 = split(v8, Dim{"a", 12}, 2)[static_cast<std::size_t>(1)];
  [[maybe_unused]] const Tensor v10 = constant(g, filled(Shape{Dim{"a", 12}}, DType::kF32, -1.0, 1.0, false, 5));
  [[maybe_unused]] const Tensor v11 = multiply(v6, v10);
  [[maybe_unused]] const Tensor v12 = mean(v11);
  built.fetch = Tensors{v6, v9};
  differentiate(built, v12, Tensors{v0, v2});
  built.update = optim::sgd(v12, Tensors{v2}, 0.125);
  built.update.push_back(assign_add(v3, v1));
  scalar_metric("m0", v12);
  built.feeds = {{v0, filled(Shape{Dim{"a", 12}, Dim{"d", 4}}, DType::kF32, -1.5, 1.5, false, 11)},
                 {v1, filled(Shape{Dim{"a", 12}}, DType::kI32, -1.0, 4.0, true, 12)}};
  return built;
}

TEST(FailingGraph, Seed42) {
  const Verdict verdict = check(built_graph(), {.wide = true, .own_layouts = true, .own_derivatives = true, .mesh = "p:2 q:2", .layout = "a:p d:q"}, Passes::kAll);
  EXPECT_FALSE(verdict.failure) << verdict.failure->kind << "\n" << verdict.failure->detail;
}

}  // namespace
}  // namespace weft::random_graphs::graph_42
