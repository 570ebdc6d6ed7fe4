// Every option trains, to the same losses wherever it runs.
#include <gtest/gtest.h>

#include "models/tiny.h"
#include "program/cost.h"
#include "support/compile.h"
#include "weft/detail/models.h"
#include "weft/nn.h"

namespace weft::test::options_test {
namespace {

using models::Kind, models::Norm, models::Positions, models::TransformerOptions;

struct Variant {
  std::string name;
  std::function<void(TransformerOptions&)> change;
  bool packed = false;
  std::int64_t microbatches = 1;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> variants() {
  std::vector<Variant> all = {
      {"Plain", [](auto&) {}},
      {"PlainPacked", [](auto&) {}, true},
      {"LayerNorm", [](auto& o) { o.norm = Norm::kLayer; }},
      {"LayerNormNoBias", [](auto& o) { o.norm = Norm::kLayer, o.norm_bias = false; }},
      {"ScaleNorm", [](auto& o) { o.norm = Norm::kScale, o.norm_epsilon = 1e-3; }},
      {"NoPositions", [](auto& o) { o.positions = Positions::kNone; }},
      {"Sinusoid", [](auto& o) { o.positions = Positions::kSinusoid; }},
      {"SinusoidPacked", [](auto& o) { o.positions = Positions::kSinusoid; }, true},
      {"Rotary", [](auto& o) { o.positions = Positions::kRotary, o.rotary_base = 100; }},
      {"Relative", [](auto& o) { o.positions = Positions::kRelative; }},
      {"RelativeShared", [](auto& o) { o.positions = Positions::kRelativeShared; }},
      {"RelativeContextual", [](auto& o) { o.positions = Positions::kRelativeContextual; }},
      {"ContextualGrouped", [](auto& o) { o.positions = Positions::kRelativeContextual, o.memory_heads = 2; }},
      {"MultiQuery", [](auto& o) { o.memory_heads = 1; }},
      {"Grouped", [](auto& o) { o.memory_heads = 2; }},
      {"SharedKv", [](auto& o) { o.shared_kv = true; }},
      {"SharedKvRotary", [](auto& o) { o.shared_kv = true, o.positions = Positions::kRotary; }},
      {"FoldScaling", [](auto& o) { o.fold_scaling = true; }},
      {"ExtraLogit", [](auto& o) { o.extra_logit = 0.5; }},
      {"ExtraLogitPacked", [](auto& o) { o.extra_logit = 0.5; }, true},
      {"Prefix", [](auto& o) { o.prefix = true; }},
      {"PrefixTargetsOnly", [](auto& o) { o.prefix = o.loss_on_targets_only = true; }, true},
      {"Dropout", [](auto& o) { o.dropout = 0.3; }},
      {"DropoutAlongLength", [](auto& o) { o.dropout = 0.3, o.dropout_along_length = true; }},
      {"AttentionDropout", [](auto& o) { o.attention_dropout = 0.3; }},
      {"AttentionDropoutAlongLength", [](auto& o) { o.attention_dropout = 0.3, o.dropout_along_length = true; }},
      {"FeedForwardBias", [](auto& o) { o.ff_bias = true; }},
      {"AttentionBias", [](auto& o) { o.attention_bias = true; }},
      {"AttentionBiasGrouped", [](auto& o) { o.attention_bias = true, o.memory_heads = 2; }},
      {"AttentionBiasSharedKv", [](auto& o) { o.attention_bias = o.shared_kv = true; }},
      {"Tied", [](auto& o) { o.tied = true; }},
      {"TiedUnscaled", [](auto& o) { o.tied = true, o.tied_scale = false; }},
      {"Gpt2",
       [](auto& o) {
         o.norm = Norm::kLayer, o.norm_epsilon = 1e-5, o.activation = {"gelu"};
         o.attention_bias = o.ff_bias = o.tied = true, o.tied_scale = false;
       }},
      {"LabelSmoothing", [](auto& o) { o.label_smoothing = 0.1; }},
      {"ZLoss", [](auto& o) { o.z_loss = 0.1; }},
      {"Denominator", [](auto& o) { o.loss_denominator = 7; }},
      {"PerToken", [](auto& o) { o.loss_per_token = true; }},
      {"Chunks", [](auto& o) { o.loss_chunks = 2, o.loss_per_token = true, o.tied = true; }},
      {"Recompute", [](auto& o) { o.recompute = true, o.dropout = 0.3, o.positions = Positions::kRelativeShared; }},
      {"Microbatches", [](auto& o) { o.dropout = 0.3; }, false, 2},
      {"MicrobatchesPerToken", [](auto& o) { o.loss_per_token = true, o.recompute = true; }, true, 2},
      {"MicrobatchesOfChunks", [](auto& o) { o.loss_chunks = 2, o.loss_denominator = 9; }, false, 2},
      {"Init", [](auto& o) { o.init = init::uniform(-0.2, 0.2); }},
      {"Encoder", [](auto& o) { o.kind = Kind::kEncoder, o.positions = Positions::kRelative; }},
      {"EncoderPacked", [](auto& o) { o.kind = Kind::kEncoder, o.tied = true; }, true},
      {"EncoderDecoder", [](auto& o) { o.kind = Kind::kEncoderDecoder; }},
      {"EncoderDecoderPacked", [](auto& o) { o.kind = Kind::kEncoderDecoder, o.tied = true; }, true},
      {"EncoderDecoderApart",
       [](auto& o) { o.kind = Kind::kEncoderDecoder, o.shared_embedding = false, o.decoder_layers = 1; }},
      {"EncoderDecoderAll",
       [](auto& o) {
         o.kind = Kind::kEncoderDecoder, o.memory_heads = 2, o.positions = Positions::kRelativeShared;
         o.activation = {"gelu", "linear"}, o.dropout = 0.2, o.label_smoothing = 0.1, o.recompute = true;
         o.attention_bias = true;
       },
       true, 2},
  };
  for (const std::string& name : nn::activations())
    all.push_back({"Activation_" + name, [name](auto& o) { o.activation = {name}; }});
  all.push_back({"Activation_product", [](auto& o) { o.activation = {"swish", "linear", "tanh"}, o.ff_bias = true; }});
  return all;
}

class TransformerTrains : public ::testing::TestWithParam<Variant> {};

TEST_P(TransformerTrains, ToTheSameLossesEverywhere) {
  TransformerOptions o = tiny();
  GetParam().change(o);
  const std::int64_t parts = GetParam().microbatches, batch = parts == 1 ? 4 : 8;
  const models::SequenceGraph made = models::training_graph(o, batch_for(o, GetParam().packed, batch), parts);
  const std::vector<double> want = losses(made, places()[0]);
  EXPECT_NE(want[2], want[0]);
  for (std::size_t i = 1; i < places().size(); ++i) {
    const std::vector<double> got = losses(made, places()[i]);
    for (std::size_t t = 0; t < want.size(); ++t)
      EXPECT_NEAR(got[t], want[t], 1e-9) << "step " << t << " on " << places()[i].mesh;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, TransformerTrains, ::testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

std::vector<double> losses_of(const TransformerOptions& o, std::int64_t microbatches = 1) {
  return losses(models::training_graph(o, batch_for(o), microbatches), {});
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  for (std::size_t t = 0; t < want.size(); ++t) EXPECT_NEAR(got[t], want[t], 1e-9) << "step " << t;
}

// Positions that heads look up by distance are one bias for all of the batch, and so are their derivatives: no engine
// keeps scores, which would be larger than all else together.
TEST(Transformer, TrainsRelativePositionsWithoutStoredScores) {
  TransformerOptions o = tiny();
  const models::BatchSizes sizes{.batch = 16, .length = 256};
  for (const Positions positions : {Positions::kRelative, Positions::kRelativeShared}) {
    o.positions = positions;
    const models::SequenceGraph made = models::training_graph(o, sizes);
    const Graph graph = made.graph;
    const CompileOptions options{.fetch = {made.loss}, .update = optim::sgd(made.loss, graph.variables(), 0.5)};
    for (const Where& where : {Where{}, Where{"x:2 y:2", "batch:x heads:y"}})
      for (const Engine* engine : {&cpu_engine(), &reference_engine()}) {
        const Mesh mesh = Mesh::parse(where.mesh);
        const Compiled compiled = compile_program(graph, mesh, Layout::parse(where.layout), options, {}, *engine);
        const std::int64_t scores = 16 * 256 * 4 * 256 / mesh.size();
        EXPECT_LT(compiled.arena_bytes(), scores * 4) << engine->name() << " on " << where.mesh;
        visit_bodies(compiled.program, [&](const Program& body, std::int64_t) {
          for (const Value& value : body.values) EXPECT_LT(value.shape.elements(), scores) << value.shape;
        });
      }
  }
}

TEST(Transformer, WhatSavesMemoryChangesNoLoss) {
  TransformerOptions o = tiny();
  o.loss_per_token = true;
  const std::vector<double> want = losses_of(o);
  expect_near(losses_of(o, 2), want);
  expect_near(losses_of(o, 4), want);
  o.recompute = true;
  expect_near(losses_of(o), want);
  o.loss_chunks = 2;
  expect_near(losses_of(o), want);
}

TEST(Transformer, IsTheLanguageModel) {
  const models::Sizes sizes = {{"batch", 4}, {"length", 6}, {"d_model", 8}, {"heads", 4},
                               {"d_kv", 4},  {"d_ff", 8},   {"vocab", 11},  {"layers", 2}};
  const models::LanguageModel lm = models::language_model(sizes);
  TransformerOptions o = tiny();
  o.vocab_divisor = 1, o.max_length = 6, o.norm = Norm::kLayer;
  const models::SequenceGraph made = models::training_graph(o, batch_for(o));
  Array targets = feature("targets", made.features.at("targets").shape()), inputs = targets;
  for (std::int64_t i = 0; i < targets.elements(); ++i) {
    if (targets.at(i) == 0) targets.set(i, 3);
    inputs.set(i, i % 6 == 0 ? 0 : targets.at(i - 1));
  }
  Session session{Mesh()};
  Executable a = session.compile(lm.graph, Layout(), {.fetch = {lm.loss}, .compute_as = DType::kF64});
  const double want = a.run({{lm.inputs, inputs}, {lm.targets, targets}}).scalar(lm.loss);
  Session other{Mesh()};
  Executable b = other.compile(made.graph, Layout(), {.fetch = {made.loss}, .compute_as = DType::kF64});
  EXPECT_NEAR(b.run({{made.features.at("targets"), targets}}).scalar(made.loss), want, 1e-12);
  EXPECT_EQ(session.variables(), other.variables());
}

// The scores of a folded model and of one that scales them start alike.
TEST(Transformer, FoldedScalingIsInTheFirstQueries) {
  for (const std::int64_t memory_heads : {0, 1}) {
    TransformerOptions o = tiny();
    o.memory_heads = memory_heads;
    const double want = losses_of(o)[0];
    o.fold_scaling = true;
    EXPECT_NEAR(losses_of(o)[0], want, 1e-6);
  }
}

TEST(Transformer, NegativeTargetsAreReadButHaveNoLoss) {
  TransformerOptions o = tiny();
  const models::SequenceGraph made = models::scoring_graph(o, batch_for(o));
  const Tensor input = made.features.at("targets");
  const auto run = [&](const Array& targets) {
    Session session{Mesh()};
    const Tensors fetch = {made.logits, made.tokens};
    Executable step = session.compile(made.graph, Layout(), {.fetch = fetch});
    const Values values = step.run({{input, targets}});
    return std::pair(values[made.logits].values(), values[made.tokens].values());
  };
  Array targets = feature("targets", input.shape());
  const auto plain = run(targets);
  for (std::int64_t l = 0; l < 3; ++l) targets.set(l, -targets.at(l));
  const auto negative = run(targets);
  EXPECT_EQ(plain.first, negative.first);
  EXPECT_EQ(plain.second[0] - 3, negative.second[0]);
  EXPECT_EQ(plain.second[1], negative.second[1]);
}

struct Dtypes {
  std::string name;
  DType stored, activations;
  std::optional<DType> slice;
  bool recompute;
  std::int64_t microbatches;
};
void PrintTo(const Dtypes& dtypes, std::ostream* out) { *out << dtypes.name; }

class TransformerDtypes : public ::testing::TestWithParam<Dtypes> {};

// Every variable has a derivative, however it is seen, and the losses are those of f32 to a few digits.
TEST_P(TransformerDtypes, Train) {
  for (const Kind kind : {Kind::kLanguageModel, Kind::kEncoderDecoder}) {
    TransformerOptions o = tiny();
    o.kind = kind;
    o.tied = kind == Kind::kEncoderDecoder;
    const std::vector<double> want = losses_of(o);
    o.stored = GetParam().stored, o.slice = GetParam().slice, o.activations = GetParam().activations;
    o.recompute = GetParam().recompute;
    const models::SequenceGraph made = models::training_graph(o, batch_for(o), GetParam().microbatches);
    const Tensors weights = made.graph.variables(), derivatives = gradients({made.loss}, weights);
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(derivatives[i]) << variable_name(weights[i]);
    for (const Where& where : places()) {
      const std::vector<double> got = losses(made, where, std::nullopt, device::cpu());
      for (std::size_t t = 0; t < want.size(); ++t) EXPECT_NEAR(got[t], want[t], 0.02 * want[t]) << where.mesh;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, TransformerDtypes,
                         ::testing::Values(Dtypes{"f32", DType::kF32, DType::kF32, {}, false, 1},
                                           Dtypes{"bf16", DType::kF32, DType::kBF16, {}, false, 1},
                                           Dtypes{"bf16_recomputed", DType::kF32, DType::kBF16, {}, true, 1},
                                           Dtypes{"bf16_microbatches", DType::kF32, DType::kBF16, {}, true, 2},
                                           Dtypes{"stored_bf16", DType::kBF16, DType::kBF16, DType::kF32, false, 1},
                                           Dtypes{"stored_bf16_seen_f32", DType::kBF16, DType::kF32, DType::kF32, false,
                                                  2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::test::options_test
