// The golden transformers: training loss, its derivatives, logits and scores, on one processor and on meshes; with
// WEFT_TEST_WIRE=mpi on the ranks of mpirun.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/transformers.h"

namespace weft::test::transformer_test {
namespace {

constexpr double kLoss = 1e-5, kLogits = 1e-5, kGradient = 2e-5;

const GoldenFolder& folder() {
  static const GoldenFolder kFolder("transformer");
  return kFolder;
}

const std::vector<Where> kPlaces = {
    {"OneProcessor", "", ""},
    {"Data2", "data:2", "batch:data"},
    {"Data4", "data:4", "batch:data"},
    {"Model2", "model:2", "heads,d_ff,vocab:model"},
    {"Hidden2", "m:2", "d_model:m"},
    {"Length2", "seq:2", "length:seq inputs_length:seq?"},
    {"Data2Model2", "data:2 model:2", "batch:data heads,d_ff,vocab:model"},
    {"Rows2Cols2", "rows:2 cols:2", "heads,d_ff:rows vocab:cols"},
    {"Length2Model2", "seq:2 model:2", "length:seq inputs_length:seq? heads,d_ff,vocab:model"},
};

class GoldenTransformers : public GoldenCaseTest {
 protected:
  const GoldenTransformer golden_{folder(), name_};
};

TEST_P(GoldenTransformers, Train) {
  const models::SequenceGraph made = models::training_graph(golden_.options(), golden_.sizes());
  const Tensors weights = made.graph.variables(), derivatives = gradients({made.loss}, weights);
  Tensors fetch = derivatives;
  fetch.push_back(made.loss);
  Session session = open();
  Executable step = session.compile(made.graph, layout_, {.fetch = fetch});
  golden_.set_weights(session);
  const Values got = step.run(golden_.feeds(made));

  const double want = folder().about.at("results").at(name_).at("loss_train");
  EXPECT_NEAR(got.scalar(made.loss), want, kLoss * want);
  std::map<std::string, Tensor> by_name;
  for (std::size_t i = 0; i < weights.size(); ++i) by_name[variable_name(weights[i])] = derivatives[i];
  std::set<std::string> checked;
  for (const std::string& weight : golden_.weights()) {
    const auto [variable, part] = golden_.ours(weight);
    ASSERT_TRUE(by_name.contains(variable)) << variable << " for " << weight;
    checked.insert(variable);
    const std::vector<double> ours = GoldenTransformer::part_of(got[by_name[variable]], part);
    EXPECT_LE(relative_difference(ours, golden_.numbers("grad", weight)), kGradient) << weight;
  }
  EXPECT_EQ(checked.size(), weights.size());
}

TEST_P(GoldenTransformers, Score) {
  const models::SequenceGraph made = models::scoring_graph(golden_.options(), golden_.sizes());
  Session session = open();
  const Tensor nll = made.negative_log_likelihood;
  Executable step = session.compile(made.graph, layout_, {.fetch = {made.logits, nll, made.tokens, made.correct}});
  golden_.set_weights(session);
  const Values got = step.run(golden_.feeds(made));

  const Array want = golden_.read("logits", made.logits.shape().names());
  EXPECT_LE(relative_difference(got[made.logits], want), kLogits);
  // What the logits of the data make of the targets.
  const Array targets = golden_.read("targets", {"batch", "length"});
  const std::int64_t length = golden_.size("length"), vocab = want.shape()[2].size;
  for (std::int64_t b = 0; b < golden_.size("batch"); ++b) {
    double loss = 0, tokens = 0, right = 0;
    int ends = 0;
    for (std::int64_t l = 0; l < length; ++l) {
      const auto target = static_cast<std::int64_t>(targets.at(b * length + l));
      const bool counts = target > 0 && !(golden_.options().prefix && ends % 2 == 0);
      ends += target == 1;
      if (!counts) continue;
      double sum = 0;
      std::int64_t best = 0;
      const auto logit = [&](std::int64_t v) { return want.at((b * length + l) * vocab + v); };
      for (std::int64_t v = 0; v < vocab; ++v) {
        sum += std::exp(logit(v));
        if (logit(v) > logit(best)) best = v;
      }
      loss += std::log(sum) - logit(target);
      tokens += 1;
      right += best == target;
    }
    EXPECT_NEAR(got[nll].at(b), loss, kLoss * loss);
    EXPECT_EQ(got[made.tokens].at(b), tokens);
    EXPECT_EQ(got[made.correct].at(b), right);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTransformers,
                         ::testing::Combine(::testing::ValuesIn(folder().names("models")),
                                            ::testing::ValuesIn(kPlaces)),
                         case_name);

}  // namespace
}  // namespace weft::test::transformer_test
