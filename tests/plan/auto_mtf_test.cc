// The layouts that auto_mtf of mesh-tensorflow chose for the least memory, tests/golden/counters: with the objective of
// memory the search reproduces them or needs less. peak_memory is in bytes of f32.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "weft/ops.h"
#include "weft/plan.h"

namespace weft::auto_mtf_test {
namespace {

using Json = nlohmann::json;

// Sizes as in case.json of the goldens.
const Dim kA{"a", 16}, kB{"b", 8}, kC{"c", 32};
const Dim kBatch{"batch", 64}, kIo{"io", 32}, kHidden{"hidden", 128};

// auto_mtf counts a tensor from the op that makes it, in the order of its schedule: x and w, then v, then dy. Inputs of a
// program live from its begin, so the graphs draw their tensors, each where it is used first.
StepGraph graph_of(const std::string& name) {
  Graph g;
  const auto drawn = [&](const Shape& shape) { return random_uniform(g, shape); };
  if (name == "matmul") return {g, {einsum({drawn({kA, kB}), drawn({kB, kC})}, {kA, kC})}};
  if (name == "unstack") return {g, unstack(drawn({kA, kB}), "a")};
  const Tensor x = drawn({kBatch, kIo}), w = drawn({kIo, kHidden});
  const Tensor h = relu(einsum({x, w}, {kBatch, kHidden}));
  const Tensor v = drawn({kHidden, kIo}), y = einsum({h, v}, {kBatch, kIo});
  if (name == "mlp") return {g, {y}};
  Tensors all = gradients({y}, {w, v}, {drawn({kBatch, kIo})});
  all.insert(all.begin(), y);
  return {g, all};
}

// "m1:m2;c:m1" as rules of a layout; auto_mtf's names of axes are those of the golden's mesh.
std::string rules_of(std::string layout) {
  std::ranges::replace(layout, ';', ' ');
  return layout;
}

Json golden() {
  return Json::parse(std::ifstream(str(WEFT_TEST_DATA, "/golden/counters/counters.json"))).at("auto_mtf");
}

TEST(AutoMtf, LayoutsOfTheLeastMemoryAreReproducedOrBeaten) {
  const Machine machine = Machine::parse(
      "processors = 8\nmemory = \"1GB\"\nbytes_per_second = 1e10\n[peak]\nf32 = 1e11\n[[rates]]\npointwise = 1e10\n"
      "random = 1e8\n[[link]]\nname = \"box\"\ntopology = \"switch\"\nsides = [8]\nlatency = 1e-6\nbandwidth = 1e9\n",
      "test");
  const Json all = golden();
  ASSERT_EQ(all.size(), 12u);
  for (const auto& [key, chosen] : all.items()) {
    SCOPED_TRACE(key);
    const std::string name = key.substr(0, key.find(" on "));
    const bool chose_mesh = chosen.contains("mesh_shape");
    const StepGraph step = graph_of(name);
    PlanOptions options;
    options.objective = Objective::kMemory;
    options.most_axes = 2;
    options.allow_store = false;
    const Mesh mesh = Mesh::parse(chose_mesh ? chosen["mesh_shape"].get<std::string>() : key.substr(key.find("m1")));
    if (!chose_mesh) options.mesh = mesh;
    const Plan made = plan(step, machine, 8, options);
    EXPECT_EQ(made.gap, 0);
    PlanChoice published;
    published.mesh = mesh;
    published.layout = Layout::parse(rules_of(chosen["layout"]));
    StepFamily family;
    family.build = [&](const std::vector<std::int64_t>&, std::int64_t, bool) { return step; };
    const Prediction theirs = predict(family, machine, published);
    EXPECT_LE(made.predicted.bytes(), theirs.bytes()) << made.text();
    if (!chose_mesh) {
      EXPECT_LE(static_cast<double>(made.predicted.bytes()), chosen["peak_memory"].get<double>()) << made.text();
      EXPECT_LE(static_cast<double>(theirs.bytes()), chosen["peak_memory"].get<double>());
    }
  }
}

}  // namespace
}  // namespace weft::auto_mtf_test
