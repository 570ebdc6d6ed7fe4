// Kernels for steps of decoding, on a card, against the reference: products of few rows, attention of one query, the best of
// a long line, and a decoder whose steps follow each other on the card. Skipped where there is no card.
#include <gtest/gtest.h>

#include "base/str.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/open.h"
#include "runtime/cuda/prelude.h"
#include "weft/decode.h"
#include "weft/weft.h"

namespace weft::cuda_steps_test {
namespace {

// A kernel that calls a function of the prelude, in a cluster of so many blocks.
std::string kernel(int number, int parts, const std::string& params, const std::string& body) {
  return str("extern \"C\" __global__ void __launch_bounds__(512) ",
             parts > 1 ? str("__cluster_dims__(", parts, ", 1, 1) ") : "", "k", number, "(", params, ") {\n", body,
             "}\n");
}

TEST(CudaSteps, KernelsCompile) {
  for (const auto& [architecture, parts] : {std::pair{"sm_80", 1}, {"sm_90", 8}}) {
    std::string source = weft::cuda::kernel_prelude();
    int number = 0;
    for (const auto& [tiles, groups, warps] : {std::tuple{1, 1, 8}, {2, 4, 8}, {4, 3, 4}})
      source += kernel(number++, parts, "const BF16* w, const BF16* x, BF16* y",
                       str("few_rows<", tiles, ", ", groups, ", ", warps, ", ", parts,
                           ", true>(w, x, 2048, 9, 2048, 2048, [&](int m, long long n, float sum) { y[m * 1024 + n] = ",
                           "put<BF16>(sum); });\n"));
    for (const char* type : {"BF16", "F16", "float"})
      source +=
          kernel(number++, parts, str("const ", type, "* q, ", type, "* y"),
                 str("attend_step<8, 4, 4, ", parts, ">(q, [&](long long m) { return q + m * 64; }, [&](long long m) ",
                     "{ return q + m * 128; }, 77, 0.125f, [&](int d, float a) { y[d] = put<", type,
                     ">(a); }, [&](float, float) {});\n"));
    source += kernel(
        number++, parts, "const float* x, int* y",
        str("y[0] = best_of_line<16, ", parts, ", float>(5003, [&](int e) { return x[e]; }, [&](float a, int i, ",
            "float b, int j) { return a == b ? i < j : a > b; });\n"));
    EXPECT_FALSE(weft::cuda::compile_to_ptx(source, architecture).empty());
  }
}

class GpuSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_library().has_card) GTEST_SKIP() << cuda_library().found;
  }
};

// Numbers between -1 and 1 that a bf16 has, in an order that hides no neighbour.
Array numbers(const Shape& shape, std::int64_t seed) {
  Array values(shape, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i)
    values.set(i, static_cast<double>((i * 7919 + seed * 104729) % 257 - 128) / 128);
  return values;
}

Array result(const device::Choice& device, const Graph& graph, const Tensor& y, const Feeds& feeds) {
  Session session(Mesh(), wire::threads(), device);
  return session.compile(graph, Layout(), {.fetch = {y}}).run(feeds)[y];
}

void expect_near(const Graph& graph, const Tensor& y, const Feeds& feeds, double most) {
  const Array want = result(device::reference(), graph, y, feeds), got = result(device::cuda(), graph, y, feeds);
  EXPECT_LE(relative_difference(got, want), most);
}

TEST_F(GpuSteps, ProductsOfFewRows) {
  for (const std::int64_t rows : {1, 2, 8, 9, 17, 32})
    for (const auto& [columns, depth] :
         {std::pair<std::int64_t, std::int64_t>{64, 32}, {768, 3072}, {2304, 768}, {2048, 2048}, {96, 8192}})
      for (const bool exact : {false, true}) {
        SCOPED_TRACE(str(rows, " x ", columns, " x ", depth, exact ? " in f32" : " in bf16"));
        Graph g;
        const Dim m{"m", rows}, n{"n", columns}, k{"k", depth};
        const Tensor x = g.input("x", {m, k}), w = g.input("w", {n, k});
        const Tensor y = einsum({cast(x, DType::kBF16), cast(w, DType::kBF16)}, {m, n});
        const Tensor z = exact ? cast(y, DType::kF32) : y * 1.0;
        expect_near(g, z, {{x, numbers(x.shape(), 1)}, {w, numbers(w.shape(), 2)}}, 5e-3);
      }
}

TEST_F(GpuSteps, MapsOfProductsOfFewRows) {
  for (const std::int64_t rows : {1, 5, 32}) {
    Graph g;
    const Dim m{"m", rows}, n{"n", 192}, k{"k", 96};
    const Tensor x = g.input("x", {m, k}), w = g.input("w", {n, k}), bias = g.input("bias", {n});
    const Tensor y = einsum({cast(x, DType::kBF16), cast(w, DType::kBF16)}, {m, n});
    const Tensor z = select(equal(iota(g, n), 3.0), constant(g, 7.0), cast(tanh(y + cast(bias, DType::kBF16)), DType::kF32));
    expect_near(g, z, {{x, numbers(x.shape(), 1)}, {w, numbers(w.shape(), 2)}, {bias, numbers(bias.shape(), 3)}}, 2e-2);
  }
}

TEST_F(GpuSteps, WeightsThatStayAreReadBeforeTheirTurn) {
  Graph g;
  const Dim m{"m", 4}, n{"n", 256}, k{"k", 256};
  const Tensor x = g.input("x", {m, k});
  const Tensor w = g.variable("w", {n, k}, init::normal(0.1), {.stored = DType::kBF16});
  const Tensor v = g.variable("v", {k, n}, init::normal(0.1), {.stored = DType::kBF16});
  Tensor h = cast(x, DType::kBF16);
  for (int i = 0; i < 4; ++i) h = einsum({tanh(einsum({h, w}, {m, n})), v}, {m, k});
  expect_near(g, cast(h, DType::kF32), {{x, numbers(x.shape(), 3)}}, 2e-2);
}

TEST_F(GpuSteps, AttentionOfOneQuery) {
  for (const DType dtype : {DType::kBF16, DType::kF32})
    for (const auto& [batch, heads, width] :
         {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 2, 64}, {3, 12, 64}, {40, 32, 32}, {2, 3, 128}})
      for (const bool has_sources : {false, true}) {
        SCOPED_TRACE(str(dtype, " ", batch, " x ", heads, " x ", width, has_sources ? " with sources" : ""));
        Graph g;
        const Dim b{"batch", batch}, beams{"beams", 2}, m{"memory", 300}, h{"heads", heads}, d{"d", width};
        const Tensor q = g.input("q", {b, beams, h, d}), k = g.input("k", {b, beams, m, h, d}),
                     v = g.input("v", {b, beams, m, h, d});
        const Tensor end = g.input("end", {b}, DType::kI32), sources = g.input("sources", {b, beams, m}, DType::kI32);
        AttendOptions how{.memory_end = end};
        if (has_sources) how.sources = sources, how.source_dim = beams;
        const Tensor y = attend(cast(q, dtype), cast(k, dtype), cast(v, dtype), m, d, how);
        Array ends({b}, DType::kI32), from(sources.shape(), DType::kI32);
        for (std::int64_t i = 0; i < batch; ++i) ends.set(i, static_cast<double>((i * 97 + 300) % 301));
        for (std::int64_t i = 0; i < from.elements(); ++i) from.set(i, static_cast<double>(i % 3 == 0));
        Feeds feeds = {{q, numbers(q.shape(), 1)}, {k, numbers(k.shape(), 2)}, {v, numbers(v.shape(), 3)}, {end, ends}};
        if (has_sources) feeds.emplace_back(sources, from);
        expect_near(g, cast(y, DType::kF32), feeds, dtype == DType::kF32 ? 1e-5 : 2e-2);
      }
}

TEST_F(GpuSteps, TheBestOfALongLine) {
  for (const std::int64_t rows : {1, 3, 300})
    for (const bool smallest : {false, true}) {
      Graph g;
      const Dim r{"rows", rows}, n{"n", 5003};
      const Tensor x = g.input("x", {r, n});
      const TopKResult best = top_k(x, n, {"best", 1}, smallest);
      Array values = numbers(x.shape(), rows);  // each number many times: the first counts
      if (rows == 3) values.set(2 * 5003 + 77, std::numeric_limits<double>::quiet_NaN());
      const Array want = result(device::reference(), g, best.indices, {{x, values}}),
                  got = result(device::cuda(), g, best.indices, {{x, values}});
      EXPECT_EQ(got.values(), want.values()) << rows << " rows, smallest " << smallest;
    }
}

// 16 bits choose the same tokens in almost all models; these have logits that are far apart.
TEST_F(GpuSteps, DecodesAheadOfTheHost) {
  models::TransformerOptions model{
      .vocab = 96, .vocab_divisor = 32, .d_model = 64, .heads = 4, .d_kv = 16, .d_ff = 96, .layers = 2};
  model.init = init::normal(0.5);
  const std::vector<std::vector<std::int32_t>> prompts = {{3, 4, 5}, {7}, {2, 9, 8, 6, 5}, {10, 3}, {11}};
  const auto decoded = [&](const device::Choice& device, std::int64_t ahead) {
    Session session(Mesh(), wire::threads(), device, {.seed = 7});
    decode::Decoder decoder(session, model, {}, 3, 0, 4, {.max_length = 40, .ahead = ahead});
    std::vector<std::vector<std::int32_t>> ids;
    for (const auto& row : decoder.run(prompts)) ids.push_back(row[0].ids);
    return ids;
  };
  const auto want = decoded(device::cpu(), 1);
  for (const std::int64_t ahead : {1, 3, 16})
    EXPECT_EQ(decoded(device::cuda(), ahead), want) << ahead << " steps ahead";
}

}  // namespace
}  // namespace weft::cuda_steps_test
