// Ten steps of Adam, with weight decay and without, of momentum and of SGD, on one processor and on meshes; with
// WEFT_TEST_WIRE=mpi on the ranks of mpirun.
#include "golden/optimizers/training.h"

namespace weft::test::optimizers_test {
namespace {

const GoldenFolder& golden() {
  static const GoldenFolder golden("optimizers");
  return golden;
}

class GoldenOptimizer : public GoldenPlaceTest {
 protected:
  void train(GoldenTraining& training, const Updates& updates, const std::function<Feeds(int step)>& more,
             double weight_tolerance) {
    training.train(open(), layout_, updates, more,
                   {.loss = 1e-5, .weight = [=](int) { return weight_tolerance; }, .slot = [](int) { return 5e-5; }});
  }

  // The class and its options on a variant, at the variant's rate.
  template <class Optimizer, class Options>
  void train(const std::string& variant, const std::function<Options(const nlohmann::json&)>& read,
             double weight_tolerance) {
    GoldenTraining training(golden(), variant);
    const Optimizer optimizer(training.lm.loss, training.lm.graph.variables(), read(training.options));
    const double rate = training.options.at("learning_rate");
    train(
        training, optimizer.updates(), [&](int t) { return optimizer.feeds(t, rate); }, weight_tolerance);
  }
};

optim::AdamOptions adam_options(const nlohmann::json& o) {
  return {.beta1 = o.value("beta_1", 0.9),
          .beta2 = o.value("beta_2", 0.999),
          .epsilon = o.value("epsilon", 1e-6),
          .weight_decay = o.value("weight_decay_rate", 0.0),
          .bias_correction = false,
          .exclude_from_weight_decay = o.value("exclude_from_weight_decay", std::vector<std::string>())};
}

TEST_P(GoldenOptimizer, Adam) { train<optim::Adam, optim::AdamOptions>("adam_plain", adam_options, 5e-5); }

TEST_P(GoldenOptimizer, AdamWithWeightDecay) { train<optim::Adam, optim::AdamOptions>("adamw", adam_options, 5e-5); }

TEST_P(GoldenOptimizer, Momentum) {
  train<optim::Momentum, optim::MomentumOptions>(
      "momentum", [](const nlohmann::json& o) { return optim::MomentumOptions{.momentum = o.at("momentum")}; }, 1e-5);
}

TEST_P(GoldenOptimizer, Sgd) {
  GoldenTraining training(golden(), "sgd");
  const double rate = training.options.at("learning_rate");
  const Updates updates = optim::sgd(training.lm.loss, training.lm.graph.variables(), rate);
  train(
      training, updates, [](int) { return Feeds(); }, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Meshes, GoldenOptimizer, ::testing::ValuesIn(lm_places("d_ff,vocab")), place_name);

}  // namespace
}  // namespace weft::test::optimizers_test
