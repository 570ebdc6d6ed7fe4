// Decoding with copies of the weights: as they are, in bf16 and in i8.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "errors/lines.h"
#include "support/processes.h"
#include "weft/decode.h"

namespace weft::test::decode_weights_test {
namespace {

using decode::Decoder;
using decode::Weights;
using models::Kind;
using Ids = std::vector<std::int32_t>;

models::TransformerOptions model_of(Kind kind, bool tied) {
  models::TransformerOptions o;
  o.kind = kind;
  o.vocab = 24;
  o.vocab_divisor = 4;
  o.d_model = 16;
  o.heads = 4;
  o.d_kv = 4;
  o.d_ff = 24;
  o.layers = 2;
  o.max_length = 16;
  o.activation = {"silu", "linear"};
  o.ff_bias = true;
  o.tied = tied;
  o.init = init::normal(0.4);
  return o;
}

const std::vector<Ids> kPrompts = {{3, 4, 5}, {7}, {2, 9, 8, 6, 5}, {10, 3}};
const std::vector<Ids> kInputs = {{3, 4, 5, 6, 7, 1}, {9, 1}, {2, 2, 8, 1}, {10, 9, 1}};

struct Case {
  std::string mesh, layout;
};

// A decoder with few rows, whose steps read copies.
std::vector<std::vector<decode::Hypothesis>> decoded(Session& session, const models::TransformerOptions& model,
                                                     const std::string& layout, Weights weights, std::int64_t beams,
                                                     std::int64_t batch = 2) {
  const bool two = model.kind == Kind::kEncoderDecoder;
  Decoder decoder(session, model, Layout::parse(layout), batch, two ? 6 : 0, 3,
                  {.max_length = 10, .beams = beams, .weights = weights});
  return decoder.run(kPrompts, two ? kInputs : std::vector<Ids>{});
}

TEST(DecodeWeights, LayoutsAgree) {
  for (const Kind kind : {Kind::kLanguageModel, Kind::kEncoderDecoder})
    for (const Weights weights : {Weights::kF32, Weights::kBF16, Weights::kI8})
      for (const std::int64_t beams : {1, 2}) {
        const models::TransformerOptions model = model_of(kind, beams == 2);
        Session alone = open_session(Mesh::parse(""), {.seed = 3});
        const auto want = decoded(alone, model, "", weights, beams);
        for (const Case& at : {Case{"a:2", "vocab,heads,d_ff:a"}, Case{"a:2 b:2", "batch:a vocab,d_ff:b heads:b"}}) {
          Session session = open_session(Mesh::parse(at.mesh), {.seed = 3});
          const auto got = decoded(session, model, at.layout, weights, beams);
          int same = 0;
          for (std::size_t r = 0; r < want.size(); ++r) {
            same += got[r][0].ids == want[r][0].ids;
            if (got[r][0].ids != want[r][0].ids) continue;
            const double error = weights == Weights::kBF16 ? 0.01 * std::abs(want[r][0].score) : 1e-3;
            EXPECT_NEAR(got[r][0].score, want[r][0].score, error) << at.layout;
          }
          // Activations in bf16 are rounded from sums in another order, which may turn a choice between near tokens.
          EXPECT_GE(same, weights == Weights::kBF16 ? 3 : 4) << at.layout << " " << static_cast<int>(weights);
        }
      }
}

// Sizes that lie in panels of 16 outputs.
models::TransformerOptions wide_model(Kind kind) {
  models::TransformerOptions o = model_of(kind, false);
  o.vocab = 48;
  o.vocab_divisor = 16;
  o.d_model = 32;
  o.d_kv = 16;
  o.heads = 2;
  o.d_ff = 64;
  o.init = init::normal(0.3);
  return o;
}

// The scores of rounded weights are near those of the weights: of models whose copies lie in panels and of others.
TEST(DecodeWeights, RoundingChangesScoresLittle) {
  for (const Kind kind : {Kind::kLanguageModel, Kind::kEncoderDecoder})
    for (const auto& [model, batch] : {std::pair(model_of(kind, false), 2), std::pair(wide_model(kind), 10)}) {
      Session session = open_session(Mesh::parse(""), {.seed = 5});
      const auto exact = decoded(session, model, "", Weights::kF32, 1, batch);
      for (const Weights weights : {Weights::kBF16, Weights::kI8}) {
        const auto rounded = decoded(session, model, "", weights, 1, batch);
        int same = 0, differ = 0;
        for (std::size_t r = 0; r < exact.size(); ++r) {
          if (rounded[r][0].ids != exact[r][0].ids) continue;
          ++same;
          differ += rounded[r][0].score != exact[r][0].score;
          EXPECT_NEAR(rounded[r][0].score, exact[r][0].score, 0.05 * std::abs(exact[r][0].score) + 0.1) << r;
        }
        EXPECT_GE(same, 2) << "width " << model.d_model << ", weights " << static_cast<int>(weights);
        EXPECT_GT(differ, 0) << "no row shows that weights are rounded";
      }
    }
}

// Copies in panels give the tokens of the reference engine, which multiplies with the weights, under every layout.
TEST(DecodeWeights, PanelsAgreeWithTheReference) {
  for (const Kind kind : {Kind::kLanguageModel, Kind::kEncoderDecoder})
    for (const std::int64_t beams : {1, 3}) {
      const models::TransformerOptions model = wide_model(kind);
      Session reference(Mesh::parse(""), wire::threads(), device::reference(), {.seed = 3});
      const auto want = decoded(reference, model, "", Weights::kF32, beams);
      for (const Case& at : {Case{"", ""}, Case{"a:2", "vocab,heads,d_ff:a"}, Case{"a:4", "d_ff,vocab:a"},
                             Case{"a:2 b:2", "batch:a vocab,d_ff:b heads:b"}}) {
        Session session = open_session(Mesh::parse(at.mesh), {.seed = 3});
        const auto got = decoded(session, model, at.layout, Weights::kF32, beams);
        for (std::size_t r = 0; r < want.size(); ++r) {
          EXPECT_EQ(got[r][0].ids, want[r][0].ids) << at.layout << ", row " << r;
          EXPECT_NEAR(got[r][0].score, want[r][0].score, 1e-3) << at.layout << ", row " << r;
        }
      }
    }
}

class CopiedWeights : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Activations, CopiedWeights, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// With bf16 activations a layer multiplies with a cast of its kernel.
TEST_P(CopiedWeights, FollowTheWeights) {
  models::TransformerOptions model = model_of(Kind::kLanguageModel, false);
  model.activations = GetParam();
  const std::string kernel = "layer_0/feed_forward/out/kernel";
  for (const Weights weights : {Weights::kF32, Weights::kBF16, Weights::kI8}) {
    Session session = open_session(Mesh::parse(""), {.seed = 5});
    const decode::Options options{.max_length = 10, .weights = weights};
    Decoder decoder(session, model, Layout::parse(""), 2, 0, 3, options);
    const auto before = decoder.run(kPrompts);
    Array changed = session.value(kernel);
    for (std::int64_t i = 0; i < changed.shape().elements(); ++i) changed.set(i, 2 * changed.at(i) + 0.5);
    session.set_value(kernel, changed);
    const auto after = decoder.run(kPrompts);
    Decoder fresh(session, model, Layout::parse(""), 2, 0, 3, options);
    const auto want = fresh.run(kPrompts);
    for (std::size_t r = 0; r < want.size(); ++r) EXPECT_EQ(after[r][0].score, want[r][0].score) << r;
    EXPECT_NE(after[0][0].score, before[0][0].score);
  }
}

TEST(DecodeWeightsErrors, KernelsThatAreNotFinite) {
  const models::TransformerOptions model = model_of(Kind::kLanguageModel, false);
  Session session = open_session(Mesh::parse(""), {.seed = 5});
  Decoder decoder(session, model, Layout::parse(""), 2, 0, 3, {.max_length = 10, .weights = Weights::kI8});
  Array broken = session.value("layer_1/attention/o/kernel");
  broken.set(7, std::numeric_limits<double>::infinity());
  session.set_value("layer_1/attention/o/kernel", broken);
  EXPECT_USER_ERROR(decoder.run(kPrompts),
                    "the kernel 'layer_1/attention/o/kernel' holds NaN or infinity, so no copy of it can be made",
                    "load a checkpoint from before its training diverged");
}

}  // namespace
}  // namespace weft::test::decode_weights_test
