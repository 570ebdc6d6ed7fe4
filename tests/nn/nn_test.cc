// The layers against plain loops in double, on one processor and split.
#include "weft/nn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/str.h"
#include "language/shape_math.h"
#include "support/expect_error.h"
#include "weft/session.h"

namespace weft::test::nn_test {
namespace {

constexpr double kTolerance = 2e-6;

Array wave(const Shape& shape, double phase) {
  Array x(shape, DType::kF32);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, std::sin(0.7 * static_cast<double>(i) + phase));
  return x;
}

// The element at one index per dim, in the order of the shape.
double at(const Array& x, const std::vector<std::int64_t>& index) {
  const std::vector<std::int64_t> strides = dense_strides(x.shape());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return x.at(offset);
}

// Fills an array by the index of each element.
Array filled(const Shape& shape, const std::function<double(const std::vector<std::int64_t>&)>& value) {
  Array y(shape, DType::kF32);
  std::vector<std::int64_t> index(shape.rank());
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    for (std::int64_t rest = i, d = static_cast<std::int64_t>(shape.rank()) - 1; d >= 0; --d) {
      index[static_cast<std::size_t>(d)] = rest % shape[static_cast<std::size_t>(d)].size;
      rest /= shape[static_cast<std::size_t>(d)].size;
    }
    y.set(i, value(index));
  }
  return y;
}

// Runs y with every variable set to a wave of its own; also what those waves are.
class Layer {
 public:
  Layer(Graph graph, Tensor y, Feeds feeds) : graph_(std::move(graph)), y_(std::move(y)), feeds_(std::move(feeds)) {}

  Array weight(const std::string& name) const {
    for (std::size_t i = 0; i < graph_.variables().size(); ++i)
      if (variable_name(graph_.variables()[i]) == name)
        return wave(graph_.variables()[i].shape(), 2.0 + static_cast<double>(i));
    throw std::runtime_error("no variable " + name);
  }

  void expect(const Array& want, const std::vector<std::string>& layouts) const {
    EXPECT_LE(relative_difference(run(Mesh(), ""), want), kTolerance);
    for (const std::string& layout : layouts)
      EXPECT_LE(relative_difference(run(Mesh::parse("m:2"), layout), want), kTolerance) << layout;
  }

 private:
  Array run(const Mesh& mesh, const std::string& layout) const {
    Session session(mesh);
    Executable step = session.compile(graph_, Layout::parse(layout), {.fetch = {y_}});
    for (const std::string& name : session.variables()) session.set_value(name, weight(name));
    return step.run(feeds_)[y_];
  }

  Graph graph_;
  Tensor y_;
  Feeds feeds_;
};

const Dim kBatch{"batch", 2}, kLength{"length", 4}, kModel{"d_model", 6}, kHidden{"hidden", 8};
const Dim kHeads{"heads", 2}, kDepth{"d_kv", 4};

TEST(Dense, SumsTheLastDimByDefault) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kModel});
  const Array in = wave(x.shape(), 0);
  const Layer layer(g, nn::dense(x, {kHidden}, {.activation = relu}), {{x, in}});
  const Array kernel = layer.weight("dense/kernel"), bias = layer.weight("dense/bias");
  EXPECT_EQ(kernel.shape(), Shape({kModel, kHidden}));
  const Array want = filled({kBatch, kHidden}, [&](const auto& i) {
    double sum = at(bias, {i[1]});
    for (std::int64_t m = 0; m < kModel.size; ++m) sum += at(in, {i[0], m}) * at(kernel, {m, i[1]});
    return std::max(sum, 0.0);
  });
  layer.expect(want, {"batch:m", "d_model:m", "hidden:m"});
}

TEST(Dense, SumsAndMakesSeveralDimsOneOfTheSameName) {
  Graph g;
  const Tensor x = g.input("x", {kLength, kBatch, kModel});
  const Array in = wave(x.shape(), 0);
  const Dim wider{"d_model", 8};
  const Layer layer(g, nn::dense(x, {kHeads, wider}, {.reduced = {kLength, kModel}, .bias = false}), {{x, in}});
  const Array kernel = layer.weight("dense/kernel");
  EXPECT_EQ(kernel.shape(), Shape({kLength, {"_d_model", 6}, kHeads, wider}));
  const Array want = filled({kBatch, kHeads, wider}, [&](const auto& i) {
    double sum = 0;
    for (std::int64_t l = 0; l < kLength.size; ++l)
      for (std::int64_t m = 0; m < kModel.size; ++m) sum += at(in, {l, i[0], m}) * at(kernel, {l, m, i[1], i[2]});
    return sum;
  });
  layer.expect(want, {"length:m", "d_model:m", "_d_model:m", "heads:m"});
}

TEST(Dense, ExpertsHaveKernelAndBiasOfTheirOwn) {
  Graph g;
  const Dim experts{"experts", 4};
  const Tensor x = g.input("x", {kBatch, experts, kModel});
  const Array in = wave(x.shape(), 0);
  const Layer layer(g, nn::dense(x, {kHidden}, {.experts = {experts}, .name = "ffn"}), {{x, in}});
  const Array kernel = layer.weight("ffn/kernel"), bias = layer.weight("ffn/bias");
  EXPECT_EQ(kernel.shape(), Shape({experts, kModel, kHidden}));
  EXPECT_EQ(bias.shape(), Shape({experts, kHidden}));
  const Array want = filled({kBatch, experts, kHidden}, [&](const auto& i) {
    double sum = at(bias, {i[1], i[2]});
    for (std::int64_t m = 0; m < kModel.size; ++m) sum += at(in, {i[0], i[1], m}) * at(kernel, {i[1], m, i[2]});
    return sum;
  });
  layer.expect(want, {"experts:m", "hidden:m", "d_model:m"});
}

TEST(Dense, TheKernelStartsWithTheVarianceOfItsFanIn) {
  Graph g;
  const Dim in{"in", 100}, out{"out", 400};
  nn::dense(g.input("x", {in}), {out});
  const Array kernel = eval(g.variables()[0]);
  double squares = 0;
  for (double w : kernel.values()) squares += w * w;
  EXPECT_NEAR(squares / static_cast<double>(kernel.elements()), 0.01, 0.0005);
}

TEST(Dense, VariablesAreSeenInTheDtypeOfTheInput) {
  Graph g;
  const Tensor y = nn::dense(g.input("x", {kModel}, DType::kBF16), {kHidden});
  EXPECT_EQ(y.dtype(), DType::kBF16);
  EXPECT_EQ(nn::layer_norm(y, kHidden).dtype(), DType::kBF16);
}

TEST(DenseProduct, MultipliesLayersWithTheirOwnActivations) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kModel});
  const Array in = wave(x.shape(), 0);
  const Layer layer(g, nn::dense_product(x, {kHidden}, {relu, {}}, {.bias = false, .name = "glu"}), {{x, in}});
  const Array gate = layer.weight("glu_0/kernel"), linear = layer.weight("glu_1/kernel");
  const Array want = filled({kBatch, kHidden}, [&](const auto& i) {
    double a = 0, b = 0;
    for (std::int64_t m = 0; m < kModel.size; ++m) {
      a += at(in, {i[0], m}) * at(gate, {m, i[1]});
      b += at(in, {i[0], m}) * at(linear, {m, i[1]});
    }
    return std::max(a, 0.0) * b;
  });
  layer.expect(want, {"batch:m", "d_model:m", "hidden:m"});
}

TEST(LayerNorm, NormsOneDimWhereverItStands) {
  Graph g;
  const Tensor x = g.input("x", {kModel, kBatch});
  const Array in = wave(x.shape(), 0);
  const Layer layer(g, nn::layer_norm(x, kModel, {.epsilon = 0.01}), {{x, in}});
  const Array scale = layer.weight("layer_norm/scale"), bias = layer.weight("layer_norm/bias");
  const Array want = filled(x.shape(), [&](const auto& i) {
    double mean = 0, variance = 0;
    for (std::int64_t m = 0; m < kModel.size; ++m) mean += at(in, {m, i[1]}) / static_cast<double>(kModel.size);
    for (std::int64_t m = 0; m < kModel.size; ++m)
      variance += std::pow(at(in, {m, i[1]}) - mean, 2) / static_cast<double>(kModel.size);
    return (at(in, i) - mean) / std::sqrt(variance + 0.01) * at(scale, {i[0]}) + at(bias, {i[0]});
  });
  layer.expect(want, {"batch:m", "d_model:m"});
}

TEST(LayerNorm, StartsAsThePlainNorm) {
  Graph g;
  const Tensor x = g.input("x", {kModel});
  const Array y = eval(nn::layer_norm(x, kModel), {{x, wave({kModel}, 0)}});
  double sum = 0, squares = 0;
  for (double value : y.values()) sum += value, squares += value * value;
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares, 6, 1e-4);
}

TEST(Embedding, GivesRowsAndZerosOutOfRange) {
  Graph g;
  const Dim vocab{"vocab", 6};
  const Tensor ids = g.input("ids", {kLength}, DType::kI32);
  const Array in({kLength}, std::vector<std::int32_t>{5, 0, 6, -1});
  const Layer layer(g, nn::embedding(ids, vocab, kModel), {{ids, in}});
  const Array table = layer.weight("embedding");
  const Array want = filled({kLength, kModel}, [&](const auto& i) {
    return i[0] > 1 ? 0.0 : at(table, {i[0] == 0 ? 5 : 0, i[1]});
  });
  layer.expect(want, {"vocab:m", "length:m", "d_model:m"});
}

// Self-attention in plain loops. `bias` is by (place, seen place).
Array attention_by_loops(const Layer& layer, const Array& x,
                         const std::function<double(std::int64_t, std::int64_t)>& bias) {
  const Array kernel = layer.weight("attention/qkv/kernel");
  const auto projected = [&](std::int64_t part) {
    return filled({kBatch, kLength, kHeads, kDepth}, [&](const auto& i) {
      double sum = 0;
      for (std::int64_t m = 0; m < kModel.size; ++m) sum += at(x, {i[0], i[1], m}) * at(kernel, {m, part, i[2], i[3]});
      return sum;
    });
  };
  const Array q = projected(0), k = projected(1), v = projected(2), o = layer.weight("attention/o/kernel");
  const Array mixed = filled(q.shape(), [&](const auto& i) {
    double sum = 0, total = 0;
    for (std::int64_t seen = 0; seen < kLength.size; ++seen) {
      double score = bias(i[1], seen);
      for (std::int64_t d = 0; d < kDepth.size; ++d)
        score += at(q, {i[0], i[1], i[2], d}) * at(k, {i[0], seen, i[2], d}) / std::sqrt(kDepth.size);
      total += std::exp(score);
      sum += std::exp(score) * at(v, {i[0], seen, i[2], i[3]});
    }
    return sum / total;
  });
  return filled(x.shape(), [&](const auto& i) {
    double sum = 0;
    for (std::int64_t h = 0; h < kHeads.size; ++h)
      for (std::int64_t d = 0; d < kDepth.size; ++d) sum += at(mixed, {i[0], i[1], h, d}) * at(o, {h, d, i[2]});
    return sum;
  });
}

const std::vector<std::string> kAttentionLayouts = {"batch:m", "length:m", "d_model:m", "heads:m"};

TEST(SelfAttention, EverythingSeesEverything) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kLength, kModel});
  const Array in = wave(x.shape(), 0);
  const Layer layer(g, nn::self_attention(x, kLength, kModel, kHeads, kDepth), {{x, in}});
  layer.expect(attention_by_loops(layer, in, [](auto, auto) { return 0.0; }), kAttentionLayouts);
}

TEST(SelfAttention, CausalAndBiased) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kLength, kModel});
  const Tensor bias = g.input("bias", {{"memory_length", kLength.size}});
  const Array in = wave(x.shape(), 0), shift = wave(bias.shape(), 1);
  const nn::AttentionOptions options{.causal = true, .bias = bias};
  const Layer layer(g, nn::self_attention(x, kLength, kModel, kHeads, kDepth, options), {{x, in}, {bias, shift}});
  const auto added = [&](std::int64_t place, std::int64_t seen) { return shift.at(seen) + (seen > place ? -1e9 : 0); };
  layer.expect(attention_by_loops(layer, in, added), kAttentionLayouts);
}

TEST(SelfAttention, SegmentsSeeThemselvesAlone) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kLength, kModel}), ids = g.input("ids", {kLength}, DType::kI32);
  const Array in = wave(x.shape(), 0), numbers({kLength}, std::vector<std::int32_t>{0, 1, 1, 0});
  const nn::AttentionOptions options{.segments = ids, .scale = 0.5};
  const Layer layer(g, nn::self_attention(x, kLength, kModel, kHeads, kDepth, options), {{x, in}, {ids, numbers}});
  const auto added = [&](std::int64_t place, std::int64_t seen) {
    return numbers.at(place) == numbers.at(seen) ? 0.0 : -1e9;  // the depth is 4: its root is the scale
  };
  layer.expect(attention_by_loops(layer, in, added), kAttentionLayouts);
}

// q, k and v lie in one variable that starts as three would.
TEST(SelfAttention, StartsAsThreeVariables) {
  Graph joined, apart;
  const Tensor x = joined.input("x", {kLength, kModel});
  const Tensor y = nn::self_attention(x, kLength, kModel, kHeads, kDepth);
  const Tensor z = apart.input("z", {kLength, kModel});
  Session session{Mesh()}, other{Mesh()};
  session.compile(joined, Layout(), {.fetch = {y}});
  Tensors fetch;
  {
    const auto scope = apart.scope("attention");
    for (const char* name : {"q", "k", "v"})
      fetch.push_back(nn::dense(z, {kHeads, kDepth}, {.reduced = {kModel}, .bias = false, .name = name}));
  }
  other.compile(apart, Layout(), {.fetch = fetch});
  const Array all = session.value("attention/qkv/kernel");
  ASSERT_EQ(all.shape(), Shape({kModel, {"qkv", 3}, kHeads, kDepth}));
  const char* names[] = {"attention/q/kernel", "attention/k/kernel", "attention/v/kernel"};
  for (std::int64_t part = 0; part < 3; ++part) {
    const Array want = other.value(names[part]);
    const Array got = filled(want.shape(), [&](const auto& i) { return at(all, {i[0], part, i[1], i[2]}); });
    EXPECT_EQ(relative_difference(got, want), 0) << names[part];
  }
}

TEST(SelfAttention, KeepsTheDimOrderOfItsInput) {
  Graph g;
  const Tensor x = g.input("x", {kModel, kLength, kBatch});
  EXPECT_EQ(nn::self_attention(x, kLength, kModel, kHeads, kDepth).shape(), x.shape());
}

TEST(NnErrors, AreOfTheUsersLine) {
  Graph g;
  const Tensor x = g.input("x", {}), y = g.input("y", {kBatch, kModel});
  EXPECT_USER_ERROR(nn::dense(x, {kHidden}),
                    "error: dense was given the scalar 'x', which has no dim to sum\nwhere: dense at ",
                    "nn_test.cc:", "fix:   give a tensor with dims");
  EXPECT_USER_ERROR(nn::dense_product(y, {kHidden}, {}),
                    "error: dense_product 'dense' has no layers\nwhere: dense_product at ",
                    "nn_test.cc:", "fix:   give at least one activation; an empty one is linear");
  EXPECT_USER_ERROR(nn::dense(y, {kBatch}), "error: dense makes dim 'batch', which 'y' has and keeps\nwhere: dense at ",
                    "nn_test.cc:", "fix:   give the new dim another name, or name it in DenseOptions::reduced too");
  EXPECT_USER_ERROR(nn::layer_norm(y, kHidden), "cannot reduce dim hidden=8", "nn_test.cc:");
  EXPECT_USER_ERROR(nn::self_attention(y, kLength, kModel, kHeads, kDepth), "rename of dim length=4", "nn_test.cc:");
}

}  // namespace
}  // namespace weft::test::nn_test
