// The golden Transformer: logits, gradients, ten Adam losses and the weights after them, on one processor and on
// meshes.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "golden/lm.h"
#include "weft/optim.h"

namespace weft::test {
namespace {

const std::string kFolder = str(WEFT_TEST_DATA, "/golden/lm_tiny/");
constexpr double kLossTolerance = 1e-5, kValueTolerance = 1e-5, kWeightTolerance = 5e-5;

const Safetensors& data() {
  static const Safetensors tensors(kFolder + "lm_tiny.safetensors");
  return tensors;
}

struct LmCase {
  nlohmann::json about = nlohmann::json::parse(std::ifstream(kFolder + "case.json"));

  LmSizes sizes() const {
    const auto& c = about.at("config");
    return {.vocab = c.at("vocab"), .d_model = c.at("d_model"), .heads = c.at("heads"), .d_kv = c.at("d_head"),
            .d_ff = c.at("d_ff"), .layers = c.at("layers"), .length = c.at("seq"), .batch = c.at("batch")};
  }
  double rate() const { return about.at("config").at("lr"); }
  std::vector<double> losses() const { return about.at("losses_float64"); }
};

class GoldenLmTiny : public ::testing::TestWithParam<Deployment> {
 protected:
  const LmCase case_;
  const Lm lm_{case_.sizes(), data(), "param."};
  const Layout layout_ = Layout::parse(GetParam().layout);
  Session session_{Mesh::parse(GetParam().mesh)};
};

TEST(GoldenLm, HasTheWeightsOfTheData) {
  const LmCase tiny;
  const Lm lm(tiny.sizes(), data(), "param.");
  std::set<std::string> names;
  for (const auto& [name, w] : lm.weights) names.insert(name);
  EXPECT_EQ(names, tiny.about.at("param_order").get<std::set<std::string>>());
}

TEST_P(GoldenLmTiny, FirstStep) {
  Tensors weights, fetch{lm_.logits, lm_.loss};
  for (const auto& [name, w] : lm_.weights) weights.push_back(w);
  const Tensors derivatives = gradients({lm_.loss}, weights);
  fetch.insert(fetch.end(), derivatives.begin(), derivatives.end());
  const Values got = session_.compile(lm_.graph, layout_, {.fetch = fetch}).run(lm_.feeds(""));

  EXPECT_NEAR(got.scalar(lm_.loss), case_.losses()[0], kLossTolerance * case_.losses()[0]);
  EXPECT_LE(relative_difference(got[lm_.logits], data().read("logits1", lm_.logits.shape().names())), kValueTolerance);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string name = variable_name(weights[i]);
    EXPECT_LE(relative_difference(got[derivatives[i]], lm_.like(name, "grad1." + name)), kValueTolerance) << name;
  }
}

TEST_P(GoldenLmTiny, TenAdamSteps) {
  const optim::Adam adam(lm_.loss, lm_.graph.variables());
  Executable step = session_.compile(lm_.graph, layout_, {.fetch = {lm_.loss}, .update = adam.updates()});
  for (int t = 1; t <= 10; ++t) {
    Feeds feeds = adam.feeds(t, case_.rate());
    for (const auto& feed : lm_.feeds("")) feeds.push_back(feed);
    const double want = case_.losses()[static_cast<std::size_t>(t - 1)];
    EXPECT_NEAR(step.run(feeds).scalar(lm_.loss), want, kLossTolerance * want) << "step " << t;
  }
  for (const auto& [name, w] : lm_.weights)
    EXPECT_LE(relative_difference(session_.value(name), lm_.like(name, "after10." + name)), kWeightTolerance) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, GoldenLmTiny,
    ::testing::Values(Deployment{"OneProcessor", "", ""}, Deployment{"Data2", "data:2", "batch:data"},
                      Deployment{"Model2", "model:2", "heads,d_ff,vocab:model"},
                      Deployment{"Data2Model2", "data:2 model:2", "batch:data heads,d_ff,vocab:model"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::test
