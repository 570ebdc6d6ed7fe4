// attend and its derivatives where logits are so large that a sum of exponents is lost in them: against softmax attention
// written out in doubles.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/weft.h"

namespace weft::attend_extremes_test {
namespace {

const Dim kLength{"length", 12}, kMemory{"memory", 12}, kKey{"key", 12}, kValue{"value", 3};

using Numbers = std::vector<double>;

std::size_t at(std::int64_t row, std::int64_t column, const Dim& columns) {
  return static_cast<std::size_t>(row * columns.size + column);
}

// Several scores of each row are the largest.
Numbers scores() {
  const Numbers rows[] = {{5e8, 5e8, 5e8 - 64, 0},      {-5e8, -5e8, -5e8 - 32, -5e8}, {1e30, -1e30, 1e30, 1e30},
                          {-1e30, -1e30, -1e30, -1e30}, {0.25, -1.5, 2, 0.5},          {-2e30, -2e30, -3e30, -2e30}};
  Numbers all;
  for (std::int64_t l = 0; l < kLength.size; ++l)
    for (std::int64_t m = 0; m < kMemory.size; ++m)
      all.push_back(static_cast<float>(rows[l % 6][static_cast<std::size_t>(m % 4)]));
  return all;
}

Numbers smooth(std::int64_t count, int seed) {
  Numbers all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(static_cast<double>((i * 29 + seed * 7) % 31 - 15) / 16);
  return all;
}

Array array_of(const Shape& shape, const Numbers& numbers, DType dtype = DType::kF32) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, numbers[static_cast<std::size_t>(i)]);
  return array;
}

struct Masks {
  const char* name;
  bool causal = false, segments = false;
  bool biased = false;  // the scores come by the bias, and queries are zeros
};

std::ostream& operator<<(std::ostream& out, const Masks& masks) { return out << masks.name; }

// The last two queries are of a segment that no memory has.
std::int64_t query_segment(std::int64_t l) { return l >= kLength.size - 2 ? 9 : l % 2; }
std::int64_t memory_segment(std::int64_t m) { return m % 3 == 0 ? 0 : 1; }

struct Plain {
  Numbers y, dq, dk, dv, ds;
};

// q . k = the scores, since k is the unit matrix.
Plain written_out(const Masks& masks, const Numbers& s, const Numbers& q, const Numbers& v, const Numbers& dy) {
  const std::int64_t length = kLength.size, memory = kMemory.size, value = kValue.size;
  Plain r{Numbers(v.size()), Numbers(s.size()), Numbers(s.size()), Numbers(v.size()), Numbers(s.size())};
  for (std::int64_t l = 0; l < length; ++l) {
    const auto sees = [&](std::int64_t m) {
      return !(masks.causal && m > l) && !(masks.segments && query_segment(l) != memory_segment(m));
    };
    double most = -INFINITY, total = 0, mean = 0;
    for (std::int64_t m = 0; m < memory; ++m)
      if (sees(m)) most = std::max(most, s[at(l, m, kMemory)]);
    Numbers p(static_cast<std::size_t>(memory));
    for (std::int64_t m = 0; m < memory; ++m)
      if (sees(m)) total += p[static_cast<std::size_t>(m)] = std::exp(s[at(l, m, kMemory)] - most);
    for (double& one : p) one = total == 0 ? 0 : one / total;
    for (std::int64_t d = 0; d < value; ++d) {
      double& y = r.y[at(l, d, kValue)];
      for (std::int64_t m = 0; m < memory; ++m) {
        y += p[static_cast<std::size_t>(m)] * v[at(m, d, kValue)];
        r.dv[at(m, d, kValue)] += p[static_cast<std::size_t>(m)] * dy[at(l, d, kValue)];
      }
      mean += dy[at(l, d, kValue)] * y;
    }
    for (std::int64_t m = 0; m < memory; ++m) {
      double dp = 0;
      for (std::int64_t d = 0; d < value; ++d) dp += dy[at(l, d, kValue)] * v[at(m, d, kValue)];
      const double ds = r.ds[at(l, m, kMemory)] = p[static_cast<std::size_t>(m)] * (dp - mean);
      r.dq[at(l, m, kKey)] += ds;
      for (std::int64_t d = 0; d < kKey.size; ++d) r.dk[at(m, d, kKey)] += ds * q[at(l, d, kKey)];
    }
  }
  return r;
}

void expect_near(const Array& got, const Numbers& want, const std::string& where) {
  double most = 0;
  for (const double x : want) most = std::max(most, std::abs(x));
  for (std::int64_t i = 0; i < got.elements(); ++i)
    EXPECT_NEAR(got.at(i), want[static_cast<std::size_t>(i)], 2e-6 * most) << where << ", number " << i;
}

class AttendExtremes : public testing::TestWithParam<Masks> {};

TEST_P(AttendExtremes, IsSoftmaxAttention) {
  const Masks& masks = GetParam();
  const Shape of_scores{kLength, kMemory}, of_value{kMemory, kValue}, of_y{kLength, kValue};
  const Numbers s = scores(), v = smooth(of_value.elements(), 1), dy = smooth(of_y.elements(), 2);
  const Numbers q = masks.biased ? Numbers(s.size()) : s;
  Numbers unit(static_cast<std::size_t>(kMemory.size * kKey.size));
  for (std::int64_t m = 0; m < kMemory.size; ++m) unit[at(m, m, kKey)] = 1;
  Graph g;
  const Tensor tq = g.input("q", {kLength, kKey}), tk = g.input("k", {kMemory, kKey}), tv = g.input("v", of_value),
               tdy = g.input("dy", of_y), bias = g.input("bias", of_scores);
  const Tensor query_ids = g.input("query_ids", {kLength}, DType::kI32),
               memory_ids = g.input("memory_ids", {kMemory}, DType::kI32);
  AttendOptions options{.causal = masks.causal, .scale = 1};
  if (masks.biased) options.bias = bias;
  if (masks.segments) {
    options.query_segments = query_ids;
    options.memory_segments = memory_ids;
  }
  const Tensor y = attend(tq, tk, tv, kMemory, kKey, options);
  Tensors fetch = {y};
  for (const Tensor& dx : gradients({y}, masks.biased ? Tensors{tq, tk, tv, bias} : Tensors{tq, tk, tv}, {tdy}))
    fetch.push_back(dx);
  Numbers of_queries, of_memory;
  for (std::int64_t l = 0; l < kLength.size; ++l) of_queries.push_back(static_cast<double>(query_segment(l)));
  for (std::int64_t m = 0; m < kMemory.size; ++m) of_memory.push_back(static_cast<double>(memory_segment(m)));
  Feeds feeds = {{tq, array_of({kLength, kKey}, q)},
                 {tk, array_of({kMemory, kKey}, unit)},
                 {tv, array_of(of_value, v)},
                 {tdy, array_of(of_y, dy)}};
  if (masks.biased) feeds.emplace_back(bias, array_of(of_scores, s));
  if (masks.segments) {
    feeds.emplace_back(query_ids, array_of({kLength}, of_queries, DType::kI32));
    feeds.emplace_back(memory_ids, array_of({kMemory}, of_memory, DType::kI32));
  }
  const Plain want = written_out(masks, s, q, v, dy);
  for (const auto& [name, engine] : {std::pair("reference", device::reference()), std::pair("cpu", device::cpu())}) {
    Session session(Mesh::parse(""), wire::threads(), engine);
    const Values values = session.compile(g, Layout::parse(""), {.fetch = fetch}).run(feeds);
    expect_near(values[fetch[0]], want.y, std::string(name) + ", y");
    expect_near(values[fetch[1]], want.dq, std::string(name) + ", dq");
    expect_near(values[fetch[2]], want.dk, std::string(name) + ", dk");
    expect_near(values[fetch[3]], want.dv, std::string(name) + ", dv");
    if (masks.biased) expect_near(values[fetch[4]], want.ds, std::string(name) + ", dbias");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Masks, AttendExtremes,
    testing::Values(Masks{"None"}, Masks{.name = "Causal", .causal = true}, Masks{.name = "Segments", .segments = true},
                    Masks{.name = "CausalSegments", .causal = true, .segments = true},
                    Masks{.name = "Bias", .biased = true},
                    Masks{.name = "BiasWithMasks", .causal = true, .segments = true, .biased = true}),
    [](const auto& info) { return info.param.name; });

// Where one weight is 1 and the others are 0, queries and keys have no derivative, however large the keys are.
TEST(AttendExtremes, SaturatedWeightsHaveNoDerivative) {
  const Dim length{"length", 3}, memory{"memory", 4}, key{"key", 2};
  for (const double size : {1e3, 1e10}) {
    Graph g;
    const auto input = [&](const std::string& name, const Shape& shape) { return g.input(name, shape); };
    const Tensor q = input("q", {length, key}), k = input("k", {memory, key}), v = input("v", {memory, key});
    const Tensor loss = reduce_sum(sin(attend(q, k, v, memory, key)));
    const Tensors by = gradients({loss}, {q, k});
    const auto fed = [&](const Tensor& x, double c, double scale) {
      Array array(x.shape(), DType::kF32);
      for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, scale * std::sin(1 + 1.7 * i + c));
      return array;
    };
    const Feeds feeds = {{q, fed(q, 0, size)}, {k, fed(k, 1, size)}, {v, fed(v, 2, 1)}};
    for (const device::Choice& engine : {device::cpu(), device::reference()}) {
      Session session(Mesh(), wire::threads(), engine);
      const Values values = session.compile(g, Layout(), {.fetch = by}).run(feeds);
      for (const Tensor& d : by)
        for (std::int64_t i = 0; i < values[d].elements(); ++i)
          EXPECT_EQ(values[d].at(i), 0) << engine.name << ", keys of " << size << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace weft::attend_extremes_test
