// A layer means the same in whatever order of dims it is written, and with weights that are slices of one variable.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/attend.h"
#include "weft/ops.h"
#include "weft/session.h"

namespace weft::test::orders_test {
namespace {

const Dim kBatch{"batch", 4}, kLength{"length", 6}, kModel{"d_model", 8}, kQkv{"qkv", 3}, kHeads{"heads", 2},
    kKey{"d_kv", 5}, kMemory{"memory", 6};

// The derivatives of a loss of self-attention by both weights and by x, with q, k and v made in the given order.
struct Attention {
  Graph g;
  Tensor x = g.input("x", {kBatch, kLength, kModel});
  Tensors derivatives;

  explicit Attention(const Shape& order) {
    const Tensor w = g.variable("w", {kModel, kQkv, kHeads, kKey}, init::uniform(-1, 1));
    const Tensor o = g.variable("o", {kHeads, kKey, kModel}, init::uniform(-1, 1));
    Tensors parts;
    for (const Tensor& slice : unstack(w, kQkv)) parts.push_back(einsum({x, slice}, order));
    const auto memory = [](const Tensor& t) { return rename(t, kLength, kMemory.name); };
    const Tensor mixed =
        attend(parts[0], memory(parts[1]), memory(parts[2]), kMemory, kKey, {.causal = true, .length = kLength.name});
    const Tensor y = einsum({tanh(mixed), o}, {kBatch, kLength, kModel});
    derivatives = gradients({mean(multiply(y, y))}, {w, o, x});
  }

  Values run(const std::string& mesh, const std::string& layout, const device::Choice& device) {
    Session session(Mesh::parse(mesh), wire::threads(), device);
    Executable step = session.compile(g, Layout::parse(layout), {.fetch = derivatives});
    text = step.text();
    Array in(x.shape(), DType::kF32);
    for (std::int64_t i = 0; i < in.elements(); ++i) in.set(i, std::sin(0.7 * static_cast<double>(i)));
    return step.run({{x, in}});
  }

  std::string text;  // of the last program
};

TEST(DimOrders, DoNotChangeWhatALayerMeans) {
  Attention plain({kBatch, kLength, kHeads, kKey});
  const Values want = plain.run("one:1", "", device::reference());
  const Shape orders[] = {{kBatch, kLength, kHeads, kKey},
                          {kBatch, kHeads, kLength, kKey},
                          {kHeads, kBatch, kLength, kKey},
                          {kKey, kLength, kHeads, kBatch},
                          {kLength, kKey, kBatch, kHeads}};
  const std::pair<std::string, std::string> places[] = {
      {"one:1", ""}, {"a:2", "heads:a"}, {"a:2", "length:a"}, {"data:2 model:2", "batch:data heads:model"}};
  for (const Shape& order : orders)
    for (const auto& [mesh, layout] : places) {
      Attention written(order);
      const Values got = written.run(mesh, layout, device::cpu());
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_LT(relative_difference(got[written.derivatives[i]], want[plain.derivatives[i]]), 5e-6)
            << "derivative " << i << " in order " << order << " on " << mesh << " under '" << layout << "'";
    }
}

TEST(DimOrders, SlicesOfOneVariableAreOneProduct) {
  Attention written({kBatch, kHeads, kLength, kKey});
  written.run("one:1", "", device::cpu());
  EXPECT_NE(written.text.find("[batch=4 length=6 siblings=3 heads=2 d_kv=5] {} = contract"), std::string::npos)
      << written.text;
}

}  // namespace
}  // namespace weft::test::orders_test
