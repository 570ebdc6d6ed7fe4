// Ten steps of Adam and of SGD: losses, weights and slots, on one processor and under the layouts of the data.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "golden/lm.h"
#include "weft/optim.h"

namespace weft::test {
namespace {

const std::string kFolder = str(WEFT_TEST_DATA, "/golden/optimizers/");

const nlohmann::json& about() {
  static const auto json = nlohmann::json::parse(std::ifstream(kFolder + "case.json"));
  return json;
}

const Safetensors& data() {
  static const Safetensors tensors(kFolder + "optimizers.safetensors");
  return tensors;
}

LmSizes sizes() {
  const auto& c = about().at("config").at("sizes").at("small");
  return {.vocab = c.at("vocab"), .d_model = c.at("d_model"), .heads = c.at("heads"), .d_kv = c.at("d_head"),
          .d_ff = c.at("d_ff"), .layers = c.at("layers"), .length = c.at("seq"), .batch = c.at("batch")};
}

// One processor, then the layouts of the data.
std::vector<Deployment> deployments() {
  std::vector<Deployment> all{{"OneProcessor", "", ""}};
  for (const auto& pair : about().at("config").at("layouts"))
    all.push_back({str("Layout", all.size()), pair.at(0), pair.at(1)});
  return all;
}

class GoldenOptimizer : public ::testing::TestWithParam<Deployment> {
 protected:
  const nlohmann::json& options(const std::string& variant) { return about().at("config").at("variants").at(variant); }

  // Runs the steps of a variant; compares the losses, and weights and slots where the data has them.
  void train(const std::string& variant, const Updates& updates, const std::function<Feeds(int step)>& more,
             double weight_tolerance) {
    Session session(Mesh::parse(GetParam().mesh));
    Executable step =
        session.compile(lm_.graph, Layout::parse(GetParam().layout), {.fetch = {lm_.loss}, .update = updates});
    const std::vector<double> losses = about().at("results").at(variant).at("losses");
    for (int t = 1; t <= static_cast<int>(losses.size()); ++t) {
      Feeds feeds = more(t);
      for (const auto& feed : lm_.feeds("small/")) feeds.push_back(feed);
      const double want = losses[static_cast<std::size_t>(t - 1)];
      EXPECT_NEAR(step.run(feeds).scalar(lm_.loss), want, 1e-5 * want) << "step " << t;
      compare(session, str(variant, "/after", t, "/"), weight_tolerance);
    }
    EXPECT_EQ(compared_, 2 * session.variables().size()) << "after steps 1 and 10, all that the session holds";
  }

  Lm lm_{sizes(), data(), "small/param/"};

 private:
  void compare(const Session& session, const std::string& snapshot, double weight_tolerance) {
    for (const std::string& name : data().names(snapshot)) {
      const bool is_slot = name.ends_with(".m") || name.ends_with(".v");
      const std::string weight = is_slot ? name.substr(0, name.size() - 2) : name;
      EXPECT_LE(relative_difference(session.value(name), lm_.like(weight, snapshot + name)),
                is_slot ? 5e-5 : weight_tolerance)
          << snapshot << name;
      ++compared_;
    }
  }

  std::size_t compared_ = 0;
};

TEST_P(GoldenOptimizer, Adam) {
  const auto& o = options("adam_plain");
  const optim::Adam adam(lm_.loss, lm_.graph.variables(),
                         {.beta1 = o.at("beta_1"), .beta2 = o.at("beta_2"), .epsilon = o.at("epsilon"),
                          .bias_correction = false});
  train("adam_plain", adam.updates(), [&](int t) { return adam.feeds(t, o.at("learning_rate")); }, 5e-5);
}

TEST_P(GoldenOptimizer, Sgd) {
  const double rate = options("sgd").at("learning_rate");
  train("sgd", optim::sgd(lm_.loss, lm_.graph.variables(), rate), [](int) { return Feeds(); }, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Layouts, GoldenOptimizer, ::testing::ValuesIn(deployments()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::test
