// The golden Transformer: logits, gradients, ten Adam losses and the weights after them, on one processor and on
// meshes; with WEFT_TEST_WIRE=mpi on the ranks of mpirun.
#include <gtest/gtest.h>

#include <set>

#include "golden/lm.h"
#include "weft/optim.h"

namespace weft::test::lm_tiny_test {
namespace {

constexpr double kLossTolerance = 1e-5, kValueTolerance = 1e-5, kWeightTolerance = 5e-5;

const GoldenFolder& folder() {
  static const GoldenFolder kFolder("lm_tiny");
  return kFolder;
}
const Safetensors& data() { return folder().data; }

LmSizes sizes() { return lm_sizes(folder().about.at("config")); }

class GoldenLmTiny : public GoldenPlaceTest {
 protected:
  const Lm lm_{sizes(), data(), "param."};
  const double rate_ = folder().about.at("config").at("lr");
  const std::vector<double> losses_ = folder().about.at("losses_float64");
};

TEST(GoldenLm, HasTheWeightsOfTheData) {
  const Lm lm(sizes(), data(), "param.");
  std::set<std::string> names;
  for (const auto& [name, w] : lm.weights) names.insert(name);
  EXPECT_EQ(names, folder().about.at("param_order").get<std::set<std::string>>());
}

TEST_P(GoldenLmTiny, FirstStep) {
  Tensors weights, fetch{lm_.logits, lm_.loss};
  for (const auto& [name, w] : lm_.weights) weights.push_back(w);
  const Tensors derivatives = gradients({lm_.loss}, weights);
  fetch.insert(fetch.end(), derivatives.begin(), derivatives.end());
  Session session = open();
  const Values got = session.compile(lm_.graph, layout_, {.fetch = fetch}).run(lm_.feeds(""));

  EXPECT_NEAR(got.scalar(lm_.loss), losses_[0], kLossTolerance * losses_[0]);
  EXPECT_LE(relative_difference(got[lm_.logits], data().read("logits1", lm_.logits.shape().names())), kValueTolerance);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string name = variable_name(weights[i]);
    EXPECT_LE(relative_difference(got[derivatives[i]], lm_.like(name, "grad1." + name)), kValueTolerance) << name;
  }
}

TEST_P(GoldenLmTiny, TenAdamSteps) {
  const optim::Adam adam(lm_.loss, lm_.graph.variables());
  Session session = open();
  Executable step = session.compile(lm_.graph, layout_, {.fetch = {lm_.loss}, .update = adam.updates()});
  for (int t = 1; t <= 10; ++t) {
    Feeds feeds = adam.feeds(t, rate_);
    for (const auto& feed : lm_.feeds("")) feeds.push_back(feed);
    const double want = losses_[static_cast<std::size_t>(t - 1)];
    EXPECT_NEAR(step.run(feeds).scalar(lm_.loss), want, kLossTolerance * want) << "step " << t;
  }
  for (const auto& [name, w] : lm_.weights)
    EXPECT_LE(relative_difference(session.value(name), lm_.like(name, "after10." + name)), kWeightTolerance) << name;
}

INSTANTIATE_TEST_SUITE_P(Meshes, GoldenLmTiny, ::testing::ValuesIn(lm_places("heads,d_ff,vocab")), place_name);

}  // namespace
}  // namespace weft::test::lm_tiny_test
