// The digits example as a test: the mesh changes the speed, never the result, and the network learns.
#include <gtest/gtest.h>

#include <cmath>

#include "../examples/digits_data.h"
#include "base/str.h"

namespace weft::digits_test {
namespace {

constexpr std::int64_t kBatch = 60;

const Digits& data() {
  static const Digits kDigits(WEFT_TEST_DATA "/../examples/data/digits.csv");
  return kDigits;
}

// As in examples/digits.cc, with a hidden size that 2 and 3 divide.
struct Network {
  Dim batch, pixel{"pixel", 64}, hidden{"hidden", 96}, digit{"digit", 10};
  Graph g;
  Tensor image, label, loss, correct;

  explicit Network(std::int64_t size) : batch{"batch", size} {
    image = g.input("image", {batch, pixel});
    label = g.input("label", {batch}, DType::kI32);
    const Tensor w1 = g.variable("w1", {pixel, hidden}, init::fan_in(pixel));
    const Tensor w2 = g.variable("w2", {hidden, digit}, init::fan_in(hidden));
    const Tensor logits = einsum({relu(einsum({image, w1}, {batch, hidden})), w2}, {batch, digit});
    loss = mean(cross_entropy(logits, label, digit));
    correct = mean(cast(equal(argmax(logits, digit), label), DType::kF32));
  }

  Feeds feeds(std::size_t first) const {
    return {{image, data().images(batch, pixel, first)}, {label, data().labels(batch, first)}};
  }
};

struct Training {
  Network network{kBatch};
  optim::Adam adam{network.loss, network.g.variables()};
  Session session;
  Layout layout;
  Executable step;
  std::int64_t t = 0;

  Training(const std::string& mesh, const std::string& layout_text, std::optional<DType> as)
      : session(Mesh::parse(mesh)),
        layout(Layout::parse(layout_text)),
        step(session.compile(network.g, layout,
                             {.fetch = {network.loss}, .update = adam.updates(), .compute_as = as})) {}

  double next() {
    const std::size_t first = static_cast<std::size_t>(t) % (Digits::kTrain / kBatch) * kBatch;
    Feeds feeds = network.feeds(first);
    for (const auto& feed : adam.feeds(++t, 0.003)) feeds.push_back(feed);
    return step.run(feeds).scalar(network.loss);
  }

  std::vector<double> losses(int steps) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.push_back(next());
    return all;
  }
};

struct Placing {
  std::string name, mesh, layout;
};

std::ostream& operator<<(std::ostream& out, const Placing& p) { return out << p.mesh << ", " << p.layout; }

class FullDigits : public ::testing::TestWithParam<Placing> {};

TEST_P(FullDigits, HundredStepsInDoubleAreThoseOfOneProcessor) {
  static Training one("", "", DType::kF64);
  static const std::vector<double> want = one.losses(100);
  Training many(GetParam().mesh, GetParam().layout, DType::kF64);
  const std::vector<double> got = many.losses(100);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9 * want[i]) << "step " << i;
  for (const std::string& name : one.session.variables())
    EXPECT_LE(relative_difference(many.session.value(name), one.session.value(name)), 1e-9) << name;
  EXPECT_LT(want.back(), want.front() / 3) << "nothing was learnt, so nothing was compared";
}

TEST_P(FullDigits, TwentyStepsInFloatAreThoseOfOneProcessor) {
  static const std::vector<double> want = Training("", "", {}).losses(20);
  const std::vector<double> got = Training(GetParam().mesh, GetParam().layout, {}).losses(20);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << "step " << i;
}

INSTANTIATE_TEST_SUITE_P(Meshes, FullDigits,
                         ::testing::Values(Placing{"Data2", "data:2", "batch:data"},
                                           Placing{"Model2", "model:2", "hidden:model"},
                                           Placing{"Data2Model2", "data:2 model:2", "batch:data hidden:model"},
                                           Placing{"Data2Model3", "data:2 model:3", "batch:data hidden:model"},
                                           Placing{"Data4", "data:4", "batch:data"},
                                           Placing{"Pixels4", "model:4", "pixel:model"},
                                           Placing{"BothOnBatch", "pod:2 data:2", "batch:pod+data"}),
                         [](const auto& info) { return info.param.name; });

TEST(FullDigitsAccuracy, AtLeast95PercentOfTheTestImages) {
  Training training("data:2 model:2", "batch:data hidden:model", {});
  const Network test(Digits::kTest);
  Executable check = training.session.compile(test.g, training.layout, {.fetch = {test.loss, test.correct}});
  const double before = check.run(test.feeds(Digits::kTrain)).scalar(test.correct);
  training.losses(30 * static_cast<int>(Digits::kTrain / kBatch));
  const Values values = check.run(test.feeds(Digits::kTrain));
  EXPECT_LT(before, 0.5);
  EXPECT_GE(values.scalar(test.correct), 0.95);
  EXPECT_LT(values.scalar(test.loss), 0.2);
}

}  // namespace
}  // namespace weft::digits_test
