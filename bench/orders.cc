// orders/<how>: one self-attention layer, forward and backward, written in several dim orders and with q, k and v from one
// variable or from slices of it. Roof: the first line, in which every contraction is one product as it is written. Each
// line is the median of alternating rounds.
// weft_bench_orders [rounds]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/weft.h"

using namespace weft;

namespace {

const Dim kBatch{"batch", 8}, kLength{"length", 256}, kModel{"d_model", 512}, kQkv{"qkv", 3}, kHeads{"heads", 8},
    kKey{"d_kv", 64}, kMemory{"memory", 256};

enum class Weights { kStacked, kSlices };

struct Layer {
  std::string name;
  Session session;
  Executable step;
  Array x;
  Tensor input;
  std::vector<double> seconds = {};
};

Array waves(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  return {shape, values};
}

Layer layer(const std::string& name, const Shape& order, Weights weights) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kLength, kModel});
  const Tensor w = g.variable("w", {kModel, kQkv, kHeads, kKey}, init::fan_in(kModel));
  const Tensor o = g.variable("o", {kHeads, kKey, kModel}, init::fan_in(kModel));
  Tensors parts;
  if (weights == Weights::kStacked) {
    parts = unstack(einsum({x, w}, order.replaced(kHeads.name, {kQkv, kHeads})), kQkv);
  } else {
    for (const Tensor& slice : unstack(w, kQkv)) parts.push_back(einsum({x, slice}, order));
  }
  const auto memory = [](const Tensor& t) { return rename(t, kLength, kMemory.name); };
  const Tensor mixed =
      attend(parts[0], memory(parts[1]), memory(parts[2]), kMemory, kKey, {.causal = true, .length = kLength.name});
  const Tensor y = einsum({mixed, o}, {kBatch, kLength, kModel});
  const Tensors by = gradients({mean(multiply(y, y))}, {w, o});
  Session session(Mesh::parse("all:1"));
  Executable step =
      session.compile(g, Layout(), {.update = {assign(w, w - by[0] * 1e-3), assign(o, o - by[1] * 1e-3)}});
  return {name, std::move(session), std::move(step), waves(x.shape()), x};
}

double median(std::vector<double> xs) {
  std::nth_element(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(xs.size() / 2), xs.end());
  return xs[xs.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 41;
  std::vector<Layer> layers;
  layers.push_back(layer("stacked/batch.length.heads", {kBatch, kLength, kHeads, kKey}, Weights::kStacked));
  layers.push_back(layer("slices/batch.length.heads", {kBatch, kLength, kHeads, kKey}, Weights::kSlices));
  layers.push_back(layer("slices/batch.heads.length", {kBatch, kHeads, kLength, kKey}, Weights::kSlices));
  layers.push_back(layer("slices/heads.batch.length", {kHeads, kBatch, kLength, kKey}, Weights::kSlices));
  for (int round = -2; round < rounds; ++round)
    for (Layer& l : layers) {
      const auto begin = std::chrono::steady_clock::now();
      l.step.run({{l.input, l.x}});
      if (round >= 0)
        l.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  std::printf("%-40s %10s %12s\n", "", "ms", "of the roof");
  for (const Layer& l : layers)
    std::printf("%-40s %10.2f %11.0f%%\n", ("orders/" + l.name).c_str(), 1e3 * median(l.seconds),
                100 * median(layers[0].seconds) / median(l.seconds));
}
