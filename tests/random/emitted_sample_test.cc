// Graph 42 of tests/random, cut down. Found: nothing.
//   a sample
//   of what is written
// To run it again, copy it to tests/random/<name>_test.cc, or link it with weft::weft and gtest_main.
// clang-format off
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

using namespace weft;

[[maybe_unused]] std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

[[maybe_unused]] Array filled(const Shape& shape, DType dtype, double low, double high, bool whole, std::uint64_t stream) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double unit = static_cast<double>(mixed(mixed(stream) + static_cast<std::uint64_t>(i)) >> 11) * 0x1p-53;
    const double value = low + unit * (high - low);
    array.set(i, whole ? std::floor(value) : value);
  }
  return array;
}

struct Built {
  Graph graph;
  Tensors fetch;
  Updates update;
  Feeds feeds;
};

Built build() {
  Built built;
  Graph& g = built.graph;
  const Tensor v0 = g.input("x0", Shape{Dim{"a", 12}, Dim{"d", 4}}, DType::kF32);
  const Tensor v1 = g.input("x1", Shape{Dim{"a", 12}}, DType::kI32);
  const Tensor v2 = g.variable("w2", Shape{Dim{"d", 4}}, init::uniform(-1.0, 1.0));
  const Tensor v3 = g.variable("w3", Shape{Dim{"a", 12}}, init::constant(2.0), {.stored = DType::kI32, .trainable = false});
  const Tensor v4 = einsum(Tensors{v0, v2}, Shape{Dim{"a", 12}});
  const Tensor v5 = custom_gradient( {v4}, [](const Tensors& t) { return Tensors{square(t[0])}; }, [](const Tensors& in, const Tensors&, const Tensors& dy) { return Tensors{dy[0] * tanh(in[0])}; })[0];
  const Tensor v6 = with_layout(v5, "a:-");
  const Tensor v7 = gather(v0, v1, Dim{"d", 4});
  const Tensor v8 = cumsum(v7, Dim{"a", 12}, true, false);
  const Tensor v9 = split(v8, Dim{"a", 12}, 2)[static_cast<std::size_t>(1)];
  const Tensor v10 = constant(g, filled(Shape{Dim{"a", 12}}, DType::kF32, -1.0, 1.0, false, 5));
  const Tensor v11 = multiply(v6, v10);
  const Tensor v12 = mean(v11);
  built.fetch = Tensors{v6, v9};
  for (const Tensor& d : gradients({v12}, Tensors{v0, v2}))
    if (d) built.fetch.push_back(d);
  built.update = optim::sgd(v12, Tensors{v2}, 0.125);
  built.update.push_back(assign_add(v3, v1));
  scalar_metric("m0", v12);
  built.feeds = {{v0, filled(Shape{Dim{"a", 12}, Dim{"d", 4}}, DType::kF32, -1.5, 1.5, false, 11)},
                 {v1, filled(Shape{Dim{"a", 12}}, DType::kI32, -1.0, 4.0, true, 12)}};
  return built;
}

// What two runs fetch, then the variables.
std::vector<Array> run(const std::string& mesh, const std::string& layout) {
  const Built built = build();
  Session session(Mesh::parse(mesh), wire::threads(), runtime::reference(), {.seed = 7});
  Executable step = session.compile(built.graph, Layout::parse(layout),
                                    {.fetch = built.fetch, .update = built.update, .metrics = true, .compute_as = DType::kF64});
  std::vector<Array> arrays;
  for (int i = 0; i < 2; ++i) {
    const Values values = step.run(built.feeds);
    for (const Tensor& x : built.fetch) arrays.push_back(values[x]);
    for (const auto& [name, value] : values.metrics()) arrays.push_back(Array::scalar(value, DType::kF64));
  }
  for (const std::string& name : session.variables()) arrays.push_back(session.value(name));
  return arrays;
}

TEST(FailingGraph, Seed42) {
  const std::vector<Array> want = run("", ""), got = run("p:2 q:2", "a:p d:q");
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LE(relative_difference(got[i], want[i]), 1e-9) << "result " << i;
}

}  // namespace
