// The number of weights, and options that make no model.
#include <gtest/gtest.h>

#include "models/tiny.h"
#include "support/expect_error.h"

namespace weft::test::weights_test {
namespace {

using models::Kind, models::Norm, models::Positions, models::TransformerOptions;

std::int64_t weights_of(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Tensor& w : graph.variables()) sum += w.shape().elements();
  return sum;
}

TEST(TransformerWeights, AreThoseOfTheGraph) {
  for (const Kind kind : {Kind::kLanguageModel, Kind::kEncoderDecoder, Kind::kEncoder})
    for (const Norm norm : {Norm::kRms, Norm::kLayer, Norm::kScale})
      for (const Positions positions :
           {Positions::kNone, Positions::kLearned, Positions::kSinusoid, Positions::kRotary, Positions::kRelative,
            Positions::kRelativeShared, Positions::kRelativeContextual})
        for (const std::int64_t memory_heads : {0, 1, 2, 4})
          for (const bool flag : {false, true}) {
            TransformerOptions o = tiny();
            o.kind = kind, o.norm = norm, o.positions = positions, o.memory_heads = memory_heads;
            o.tied = o.ff_bias = o.attention_bias = o.shared_kv = flag;
            o.norm_bias = o.shared_embedding = !flag;
            if (flag) o.activation = {"gelu", "linear"};
            if (flag && kind == Kind::kEncoderDecoder) o.decoder_layers = 1;
            EXPECT_EQ(models::weights(o), weights_of(models::training_graph(o, batch_for(o)).graph));
          }
}

// Billions of weights of the seven language models and six translation models of the paper, without norms and positions.
TEST(TransformerWeights, AreThePapers) {
  const auto count = [](Kind kind, std::int64_t d_ff, std::int64_t heads, std::int64_t d_kv) {
    TransformerOptions o;
    o.kind = kind, o.vocab = 32768, o.d_model = 1024, o.layers = 6;
    o.d_ff = d_ff, o.heads = heads, o.d_kv = d_kv, o.positions = Positions::kNone;
    const std::int64_t norms = kind == Kind::kEncoderDecoder ? 2 * 6 + 1 + 3 * 6 + 1 : 2 * 6 + 1;
    return models::weights(o) - norms * 1024;
  };
  for (std::int64_t n = 1; n <= 64; n *= 2) {
    const std::int64_t d_ff = 4096 * n, heads = 4 * n;
    EXPECT_EQ(count(Kind::kLanguageModel, d_ff, heads, 256),
              6 * (4 * 1024 * heads * 256 + 2 * 1024 * d_ff) + 2 * 32768 * 1024);
  }
  EXPECT_NEAR(static_cast<double>(count(Kind::kLanguageModel, 262144, 256, 256)), 4.90e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(count(Kind::kEncoderDecoder, 65536, 128, 128)), 2.89e9, 0.01e9);
}

TEST(TransformerOptions, ThatMakeNoModel) {
  const auto check = [](const std::function<void(TransformerOptions&)>& change) {
    TransformerOptions o = tiny();
    change(o);
    models::check(o);
  };
  EXPECT_USER_ERROR(check([](auto& o) { o.vocab = 1; }), "vocab cannot be 1", "where: vocab", "give at least 2");
  EXPECT_USER_ERROR(check([](auto& o) { o.layers = 0; }), "layers cannot be 0", "where: layers", "give at least 1",
                    "code:  model.size-out-of-range");
  EXPECT_USER_ERROR(check([](auto& o) { o.layers = 10001; }), "layers cannot be 10001", "where: layers",
                    "give at most 10000");
  EXPECT_USER_ERROR(check([](auto& o) { o.heads = std::int64_t{1} << 62; }), "heads cannot be 4611686018427387904",
                    "where: heads", "give at most 2147483648");
  EXPECT_USER_ERROR(check([](auto& o) { o.d_model = o.d_ff = std::int64_t{1} << 31; }), "a model of ", " weights",
                    "where: vocab, d_model, heads, d_kv, d_ff and layers",
                    "make it smaller: a model has at most 1.75922e+13 weights", "code:  model.too-many-weights");
  EXPECT_USER_ERROR(check([](auto& o) { o.memory_heads = 3; }), "3 memory heads do not divide 4 heads",
                    "where: memory_heads",
                    "give 0 for as many as heads, 1 to share one among all heads, or a divisor of heads");
  EXPECT_USER_ERROR(check([](auto& o) { o.decoder_layers = 2; }), "decoder_layers is set, but the model has no encoder",
                    "where: decoder_layers", "set layers alone, or make it an encoder-decoder");
  EXPECT_USER_ERROR(check([](auto& o) { o.d_model = 9, o.positions = Positions::kSinusoid; }),
                    "sinusoid positions of an odd d_model, 9", "where: d_model", "give an even one");
  EXPECT_USER_ERROR(check([](auto& o) { o.d_kv = 5, o.positions = Positions::kRotary; }),
                    "rotary positions of an odd d_kv, 5", "where: d_kv", "give an even one");
  EXPECT_USER_ERROR(check([](auto& o) { o.max_distance = 4, o.positions = Positions::kRelative; }),
                    "a max_distance of 4 with 8 buckets", "where: max_distance",
                    "half of the buckets hold one distance each: give more than 4");
  EXPECT_USER_ERROR(check([](auto& o) { o.activation = {}; }), "no activation is given", "where: activation",
                    "give one, or several for their product");
  EXPECT_USER_ERROR(check([](auto& o) { o.activation = {"gelo"}; }), "there is no activation 'gelo'",
                    "where: activation", "did you mean 'gelu'?");
  EXPECT_USER_ERROR(check([](auto& o) { o.dropout = 1; }), "dropout cannot be 1", "where: dropout", "below 1",
                    "code:  model.number-out-of-range");
  EXPECT_USER_ERROR(check([](auto& o) { o.z_loss = -1; }), "z_loss cannot be -1", "where: z_loss", "from 0 on");
  EXPECT_USER_ERROR(check([](auto& o) { o.norm_epsilon = 0; }), "norm_epsilon cannot be 0", "where: norm_epsilon",
                    "above 0", "code:  model.number-not-positive");
  EXPECT_USER_ERROR(check([](auto& o) { o.prefix = true, o.kind = Kind::kEncoder; }),
                    "prefix is set, but only a language model reads its inputs as a part of its targets",
                    "where: prefix", "leave it out: an encoder sees all of its inputs anyway");
  EXPECT_USER_ERROR(check([](auto& o) { o.stored = DType::kI32; }), "stored is no floating-point dtype",
                    "where: stored", "give f32, bf16, f16 or f64");
  EXPECT_USER_ERROR(check([](auto& o) { o.loss_per_token = true, o.loss_denominator = 3; }),
                    "both loss_denominator and loss_per_token are set", "where: loss_denominator", "set one of them");
  EXPECT_USER_ERROR(check([](auto& o) { o.loss_on_targets_only = true; }),
                    "loss_on_targets_only is set, but without prefix there is no inputs part",
                    "where: loss_on_targets_only", "set prefix too, or leave it out");
}

TEST(TransformerGraphs, SizesThatDoNotFit) {
  TransformerOptions lm = tiny(), both = tiny(), encoder = tiny();
  both.kind = Kind::kEncoderDecoder;
  encoder.kind = Kind::kEncoder;
  EXPECT_USER_ERROR(models::training_graph(lm, {.batch = 0, .length = 3}), "a batch of 0 sequences of length 3",
                    "weights_test.cc", "give at least one of each");
  EXPECT_USER_ERROR(models::training_graph(both, {.batch = 1, .length = 3}),
                    "an encoder-decoder without an inputs_length", "give the length of its inputs");
  EXPECT_USER_ERROR(models::scoring_graph(lm, {.batch = 1, .length = 3, .inputs_length = 3}),
                    "an inputs_length for a model without a decoder's inputs", "give the length alone");
  EXPECT_USER_ERROR(models::training_graph(lm, {.batch = 1, .length = 11}),
                    "sequences of length 11, but the table of positions has 10 rows",
                    "raise max_length, or give shorter sequences");
  EXPECT_USER_ERROR(models::step_graph(encoder, {}), "an encoder does not decode",
                    "make it a language model or an encoder-decoder");
  EXPECT_USER_ERROR(models::step_graph(lm, {.beams = 0, .length = 8}),
                    "decoding 1 sequences of 8 positions with 0 beams", "give at least one of each");
  EXPECT_USER_ERROR(models::prefill_graph(lm, {.length = 8, .prompt_length = 9}),
                    "a prompt of length 9 for caches of length 8", "give longer caches or a shorter prompt");
  EXPECT_USER_ERROR(models::prefill_graph(lm, {.batch = 2, .length = 8, .prompt_length = 4, .prompts = 3}),
                    "a prefill of 3 rows for a batch of 2",
                    "give a number of prompts from 1 to the batch, or 0 for the batch");
  EXPECT_USER_ERROR(
      models::prefill_graph(both, {.batch = 2, .length = 8, .inputs_length = 4, .prompts = 1, .inputs_read = 5}),
      "a prefill of inputs of length 5 for caches of length 4",
      "give an inputs_read from 1 to inputs_length, or 0 for inputs_length");
  EXPECT_USER_ERROR(models::prefill_graph(lm, {.batch = 2, .length = 8, .prompt_length = 4, .prefix_length = 5}),
                    "a prefix of length 5 and a prompt of length 4 for caches of length 8",
                    "give longer caches or a shorter prefix");
  EXPECT_USER_ERROR(models::prefill_graph(both, {.length = 8}),
                    "decoding with an encoder, but without an inputs_length", "give the length of its inputs");
  EXPECT_USER_ERROR(models::prefill_graph(lm, {.length = 8, .inputs_length = 2}), "there is no encoder",
                    "prompt_length");
  EXPECT_USER_ERROR(models::step_graph(lm, {.length = 12}),
                    "decoding of length 12, but the table of positions has 10 rows",
                    "raise max_length, or decode less");
}

}  // namespace
}  // namespace weft::test::weights_test
