// What a user reads from optimizers.
#include <limits>

#include "errors/lines.h"
#include "weft/optim.h"

namespace weft::test::optim_errors_test {
namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

class OptimErrors : public ::testing::Test {
 protected:
  Graph g;
  Tensor w = g.variable("layer.w", {{"x", 4}}, init::ones());
  Tensor loss = reduce_sum(square(w));
  const Tensors variables = g.variables();
};

TEST_F(OptimErrors, OptionsOutOfRange) {
  EXPECT_USER_ERROR(optim::Adam(loss, variables, {.beta1 = 1}),
                    lines("beta1 of Adam cannot be 1", here(), "give a number from 0 on and below 1"),
                    "code:  adam.bad-beta1");
  EXPECT_USER_ERROR(optim::Adam(loss, variables, {.beta2 = -0.5}), "beta2 of Adam cannot be -0.5",
                    "from 0 on and below 1", "code:  adam.bad-beta2");
  EXPECT_USER_ERROR(optim::Adam(loss, variables, {.epsilon = kNaN}),
                    lines("epsilon of Adam cannot be nan", here(), "give a finite number from 0 on"),
                    "code:  adam.bad-epsilon");
  EXPECT_USER_ERROR(optim::Adam(loss, variables, {.weight_decay = -1}), "weight_decay of Adam cannot be -1",
                    "from 0 on", "code:  optimizer.bad-weight-decay");
  EXPECT_USER_ERROR(optim::Momentum(loss, variables, {.momentum = 1.5}), "momentum cannot be 1.5",
                    "from 0 on and below 1", "code:  momentum.bad-momentum");
}

TEST_F(OptimErrors, OptionsOfAdafactorOutOfRange) {
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.min_dim_size_to_factor = 0}),
                    lines("min_dim_size_to_factor of Adafactor cannot be 0", here(), "give a finite number from 1 on"),
                    "code:  adafactor.bad-min-dim-size-to-factor");
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.clipping_threshold = 0}),
                    lines("clipping_threshold of Adafactor cannot be 0", here(), "give a finite number from 1e-37 on"),
                    "code:  adafactor.bad-clipping-threshold");
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.beta1 = 2}), "beta1 of Adafactor cannot be 2", "below 1",
                    "code:  adafactor.bad-beta1");
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.decay_exponent = kInfinity}),
                    "decay_exponent of Adafactor cannot be inf", "give a finite number",
                    "code:  adafactor.bad-decay-exponent");
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.decay_beta2 = 1}), "decay_beta2 of Adafactor cannot be 1",
                    "below 1", "code:  adafactor.bad-decay-beta2");
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.epsilon1 = 0}), "epsilon1 of Adafactor cannot be 0",
                    "from 1e-37 on", "code:  adafactor.bad-epsilon1");
  EXPECT_USER_ERROR(optim::Adafactor(loss, variables, {.epsilon2 = -1}), "epsilon2 of Adafactor cannot be -1",
                    "from 0 on", "code:  adafactor.bad-epsilon2");
}

TEST_F(OptimErrors, NoRegularExpression) {
  EXPECT_USER_ERROR(optim::matching(variables, "w("),
                    lines("'w(' is not a regular expression", here(),
                          "check its brackets, and escape special characters by a backslash"));
  EXPECT_USER_ERROR(optim::Adam(loss, variables, {.weight_decay = 1, .exclude_from_weight_decay = {"[ln"}}),
                    "'[ln' is not a regular expression");
}

TEST_F(OptimErrors, NothingMatches) {
  EXPECT_USER_ERROR(optim::matching(variables, "layer\\.w"),
                    lines("no variable has a name in which 'layer\\.w' is found", here(),
                          "names are written with '_' for '.': layer_w"));
  EXPECT_USER_ERROR(optim::matching({}, "w"), "names are written with '_' for '.': there are none");
}

TEST_F(OptimErrors, BadFeeds) {
  const optim::Momentum momentum(loss, variables);
  EXPECT_USER_ERROR(momentum.feeds(0, 0.1), lines("an optimizer is fed for step 0", here(), "count the steps from 1"));
  EXPECT_USER_ERROR(momentum.feeds(3, kNaN), lines("the rate of step 3 is nan", here(),
                                                   "give a finite learning rate; the schedule may divide by zero"));
}

TEST_F(OptimErrors, AStepBeforeTheOffset) {
  const optim::Adafactor adafactor(loss, variables, {.step_offset = 100});
  EXPECT_USER_ERROR(adafactor.feeds(100, 0.1),
                    lines("Adafactor is fed for step 100, not after its step_offset 100", here(),
                          "give the number of steps done before as step_offset, and feed later steps"));
}

}  // namespace
}  // namespace weft::test::optim_errors_test
