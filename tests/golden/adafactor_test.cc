// Ten steps of Adafactor under five sets of options, on one processor and on meshes; with WEFT_TEST_WIRE=mpi on
// the ranks of mpirun.
#include "golden/optimizers/training.h"

namespace weft::test::adafactor_test {
namespace {

const GoldenFolder& golden() {
  static const GoldenFolder golden("adafactor");
  return golden;
}

optim::AdafactorOptions read_options(const nlohmann::json& o) {
  optim::AdafactorOptions options{
      .multiply_by_parameter_scale = o.value("multiply_by_parameter_scale", true),
      .min_dim_size_to_factor = o.value("min_dim_size_to_factor", std::int64_t{128}),
      .beta1 = o.value("beta1", 0.0),
      .exclude_from_parameter_scale = o.value("exclude_from_parameter_scale", std::vector<std::string>())};
  if (o.contains("clipping_threshold")) {
    EXPECT_TRUE(o.at("clipping_threshold").is_null());
    options.clipping_threshold.reset();
  }
  if (o.contains("decay_adam_beta2")) options.decay_beta2 = o.at("decay_adam_beta2");
  return options;
}

class GoldenAdafactor : public GoldenCaseTest {};

TEST_P(GoldenAdafactor, TenSteps) {
  GoldenTraining training(golden(), name_);
  const nlohmann::json& o = training.options;
  const optim::Adafactor adafactor(training.lm.loss, training.lm.graph.variables(), read_options(o));
  const auto feeds = [&](int t) { return adafactor.feeds(t, o.value("learning_rate", adafactor.default_rate(t))); };
  training.train(open(), layout_, adafactor.updates(), feeds,
                 {.loss = name_ == "adam_decay_no_clip" ? 3e-5 : 1e-5,
                  .weight = [](int step) { return step == 1 ? 2e-5 : 1e-4; },
                  .slot = [](int step) { return step == 1 ? 5e-5 : 3e-4; }});
}

INSTANTIATE_TEST_SUITE_P(Variants, GoldenAdafactor,
                         ::testing::Combine(::testing::ValuesIn(golden().names("variants")),
                                            ::testing::ValuesIn(lm_places("d_ff,vocab"))),
                         case_name);

}  // namespace
}  // namespace weft::test::adafactor_test
