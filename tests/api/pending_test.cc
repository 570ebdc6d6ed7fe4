// A reduction over a split dim may be done after the functions that follow it. Under every layout that must give the
// numbers of one processor: to the bit for integers, which wrap, and with NaN and infinities for floats.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "api/network.h"
#include "base/dispatch.h"
#include "base/str.h"
#include "weft/weft.h"

namespace weft::pending_test {
namespace {

const Dim kA{"a", 4}, kB{"b", 8};
const std::vector<std::pair<std::string, std::string>> kLayouts = {
    {"p:2", "a:p"}, {"p:2 q:2", "a:p b:q"}, {"p:2 q:2", "a:p+q"}, {"p:2 q:2", "b:p"}};

using Join = std::function<Tensor(const Tensor&, const Shape&)>;
const std::vector<std::pair<std::string, Join>> kJoins = {
    {"sum", [](const Tensor& x, const Shape& dims) { return reduce_sum(x, dims); }},
    {"max", [](const Tensor& x, const Shape& dims) { return reduce_max(x, dims); }},
    {"min", [](const Tensor& x, const Shape& dims) { return reduce_min(x, dims); }},
    {"product", [](const Tensor& x, const Shape& dims) { return reduce_product(x, dims); }}};

// One function between two reductions; y is a tensor that is not split along `a`, q says where.
struct Between {
  std::string name;
  std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& q)> apply;
};

Between through(DType dtype) {
  return {str("cast ", dtype),
          [dtype](const Tensor& x, const Tensor&, const Tensor&) { return cast(cast(x, dtype), x.dtype()); }};
}

std::vector<Between> of_integers() {
  using T = const Tensor&;
  return {{"add 5", [](T x, T, T) { return x + 5; }},
          {"subtract 5", [](T x, T, T) { return x - 5; }},
          {"from 5", [](T x, T, T) { return 5 - x; }},
          {"multiply 3", [](T x, T, T) { return x * 3; }},
          {"multiply 0", [](T x, T, T) { return x * 0; }},
          {"add y", [](T x, T y, T) { return x + y; }},
          {"subtract y", [](T x, T y, T) { return x - y; }},
          {"multiply y", [](T x, T y, T) { return x * y; }},
          {"maximum 9", [](T x, T, T) { return maximum(x, 9); }},
          {"minimum y", [](T x, T y, T) { return minimum(x, y); }},
          {"floordiv 3", [](T x, T, T) { return floordiv(x, 3); }},
          {"mod 7", [](T x, T, T) { return mod(x, 7); }},
          {"select", [](T x, T y, T q) { return select(q, x, y); }},
          {"select 0", [](T x, T, T q) { return select(q, x, 0); }},
          through(DType::kI32),
          through(DType::kI64),
          through(DType::kU32),
          through(DType::kU8),
          through(DType::kF32),
          through(DType::kBool)};
}

struct Case {
  DType dtype;
  Array x, y, q;
};

// Reduced over `a`, then the functions of each chain, then reduced over `b`. Every chain has an input of its own: a
// reduction that two of them shared would stay where it is.
std::vector<Array> results(const Case& c, const Join& join, const std::vector<std::vector<const Between*>>& chains,
                           const std::string& mesh, const std::string& layout, const device::Choice& engine) {
  Graph g;
  const Tensor y = g.input("y", {kB}, c.dtype), q = g.input("q", {kB}, DType::kBool);
  Feeds feeds = {{y, c.y}, {q, c.q}};
  Tensors results;
  for (const auto& chain : chains) {
    feeds.emplace_back(g.input(str("x", results.size()), {kA, kB}, c.dtype), c.x);
    Tensor z = join(feeds.back().first, {kA});
    for (const Between* between : chain) z = between->apply(z, y, q);
    results.push_back(join(z, {kB}));
  }
  Session session(Mesh::parse(mesh), wire::threads(), engine);
  const Values values = session.compile(g, Layout::parse(layout), {.fetch = results}).run(feeds);
  std::vector<Array> arrays;
  for (const Tensor& result : results) arrays.push_back(values[result]);
  return arrays;
}

std::string name_of(const std::vector<const Between*>& chain) {
  std::string name;
  for (const Between* between : chain) name += str(" ", between->name);
  return name;
}

// Small numbers and some of the whole range.
Case whole_numbers(DType dtype, unsigned seed) {
  std::mt19937_64 random(seed);
  Case c{dtype, Array({kA, kB}, dtype), Array({kB}, dtype), Array({kB}, DType::kBool)};
  for (Array* array : {&c.x, &c.y})
    visit_dtype(dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T>)
        for (std::int64_t i = 0; i < array->elements(); ++i)
          reinterpret_cast<T*>(array->bytes())[i] = static_cast<T>(random() % 2 == 0 ? random() : random() % 12);
    });
  for (std::int64_t i = 0; i < c.q.elements(); ++i) c.q.set(i, static_cast<double>(random() % 2));
  return c;
}

void check_whole_numbers(const std::vector<std::vector<const Between*>>& chains, unsigned seed, std::size_t layouts) {
  for (const DType dtype : {DType::kU8, DType::kU32, DType::kI32, DType::kI64}) {
    const Case c = whole_numbers(dtype, seed);
    for (const auto& [how, join] : kJoins) {
      const std::vector<Array> want = results(c, join, chains, "", "", device::reference());
      for (std::size_t l = 0; l < layouts; ++l)
        for (const device::Choice& engine : {device::reference(), device::cpu()}) {
          const auto& [mesh, layout] = kLayouts[l];
          const std::vector<Array> got = results(c, join, chains, mesh, layout, engine);
          for (std::size_t i = 0; i < chains.size(); ++i)
            EXPECT_TRUE(same_bits(got[i], want[i]))
                << dtype << " " << how << name_of(chains[i]) << " under '" << layout << "' on '" << mesh << "', "
                << engine.name << ": " << got[i].item() << ", one processor: " << want[i].item();
        }
    }
  }
}

TEST(PendingReductions, WholeNumbersKeepTheirBits) {
  const std::vector<Between> all = of_integers();
  std::vector<std::vector<const Between*>> chains;
  for (const Between& one : all) chains.push_back({&one});
  check_whole_numbers(chains, 0, kLayouts.size());
}

TEST(FullPendingReductions, WholeNumbersKeepTheirBits) {
  const std::vector<Between> all = of_integers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::vector<const Between*>> chains;
    for (const Between& two : all) chains.push_back({&all[i], &two});
    check_whole_numbers(chains, static_cast<unsigned>(i), 2);
  }
}

// 10 10 3 3 less 5 wraps in the rows of 3.
// Sums that wait for one reduction are brought together, out of differences of differences.
TEST(PendingReductions, RegroupedSumsKeepTheirSigns) {
  Graph g;
  const Tensor x = g.input("x", {kA, kB}), y = g.input("y", {kA, kB}), z = g.input("z", {kB});
  const Tensor r = reduce_sum(x, {kA}) - (z - (reduce_sum(y, {kA}) - (z * z - reduce_sum(x * y, {kA}))));
  const auto fed = [](const Tensor& t, double c) {
    Array array(t.shape(), DType::kF32);
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, std::floor(8 * std::sin(c + 1.7 * i)));
    return array;
  };
  const Feeds feeds = {{x, fed(x, 1)}, {y, fed(y, 2)}, {z, fed(z, 3)}};
  Session session(Mesh::parse("p:2"));
  Executable e = session.compile(g, Layout::parse("a:p"), {.fetch = {r}});
  EXPECT_EQ(relative_difference(e.run(feeds)[r], eval(r, feeds)), 0);  // whole numbers
  const std::string text = e.text();
  EXPECT_EQ(text.find(" all_reduce "), text.rfind(" all_reduce ")) << text;
}

TEST(PendingReductions, AMaximumIsDoneBeforeItWraps) {
  for (const DType dtype : {DType::kU32, DType::kU8}) {
    Graph g;
    const Tensor x = g.input("x", {kA, {"b", 2}}, dtype);
    const Tensor y = reduce_max(reduce_max(x, {kA}) - 5, {{"b", 2}});
    Session session(Mesh::parse("p:2"));
    Executable e = session.compile(g, Layout::parse("a:p"), {.fetch = {y}});
    EXPECT_EQ(e.run({{x, Array({kA, {"b", 2}}, {10, 10, 10, 10, 3, 3, 3, 3}, dtype)}}).scalar(y), 5);
  }
}

std::vector<Between> of_floats() {
  using T = const Tensor&;
  return {{"add 5", [](T x, T, T) { return x + 5.0; }},
          {"subtract 5", [](T x, T, T) { return x - 5.0; }},
          {"multiply 3", [](T x, T, T) { return x * 3.0; }},
          {"multiply 0", [](T x, T, T) { return x * 0.0; }},
          {"multiply -1", [](T x, T, T) { return x * -1.0; }},
          {"multiply 30000", [](T x, T, T) { return x * 30000.0; }},
          {"multiply infinity", [](T x, T, T) { return x * INFINITY; }},
          {"multiply tiny", [](T x, T, T) { return x * 1e-7; }},
          {"divide 0", [](T x, T, T) { return x / 0.0; }},
          {"add y", [](T x, T y, T) { return x + y; }},
          {"subtract y", [](T x, T y, T) { return x - y; }},
          {"add infinity", [](T x, T, T) { return x + INFINITY; }},
          {"maximum y", [](T x, T y, T) { return maximum(x, y); }},
          {"minimum y", [](T x, T y, T) { return minimum(x, y); }},
          {"select", [](T x, T y, T q) { return select(q, x, y); }},
          {"relu", [](T x, T, T) { return relu(x); }},
          {"sign", [](T x, T, T) { return sign(x); }},
          {"floor", [](T x, T, T) { return floor(x); }},
          {"sqrt", [](T x, T, T) { return sqrt(x); }},
          {"log", [](T x, T, T) { return log(x); }},
          {"log1p", [](T x, T, T) { return log1p(x); }},
          {"exp", [](T x, T, T) { return exp(x); }},
          {"expm1", [](T x, T, T) { return expm1(x); }},
          {"elu", [](T x, T, T) { return elu(x); }},
          {"selu", [](T x, T, T) { return selu(x); }},
          {"tanh", [](T x, T, T) { return tanh(x); }},
          {"erf", [](T x, T, T) { return erf(x); }},
          {"sigmoid", [](T x, T, T) { return sigmoid(x); }},
          {"softplus", [](T x, T, T) { return softplus(x); }},
          through(DType::kF16),
          through(DType::kF32),
          through(DType::kI32),
          through(DType::kU8)};
}

Case extreme_numbers(DType dtype, unsigned seed, bool nan) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> some = {inf, -inf, 0, -1, 1.5, 60000, -60000, 2e-7, -3, 1e-7, -0.5, 7};
  std::mt19937 random(seed);
  Case c{dtype, Array({kA, kB}, dtype), Array({kB}, dtype), Array({kB}, DType::kBool)};
  for (Array* array : {&c.x, &c.y})
    for (std::int64_t i = 0; i < array->elements(); ++i)
      array->set(i, nan && random() % 40 == 0 ? std::nan("") : some[random() % some.size()]);
  for (std::int64_t i = 0; i < c.q.elements(); ++i) c.q.set(i, random() % 2);
  return c;
}

// Functions that are computed by approximation may be a last bit from monotone.
bool near(double got, double want, DType dtype) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return true;
  const double bits = dtype == DType::kF64 ? 0x1p-51 : dtype == DType::kF32 ? 0x1p-22 : 0x1p-7;
  return std::fabs(got - want) <= bits * std::fabs(want);
}

TEST(PendingReductions, ExtremeFloatsStayWhatTheyAre) {
  const std::vector<Between> all = of_floats();
  std::vector<std::vector<const Between*>> chains;
  for (const Between& one : all) chains.push_back({&one});
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    for (unsigned seed = 0; seed < 2; ++seed) {
      const Case c = extreme_numbers(dtype, seed, seed % 2 == 1);
      for (const auto& [how, join] : {kJoins[1], kJoins[2]})
        for (const device::Choice& engine : {device::reference(), device::cpu()}) {
          const std::vector<Array> want = results(c, join, chains, "", "", engine);
          for (const auto& [mesh, layout] : kLayouts) {
            const std::vector<Array> got = results(c, join, chains, mesh, layout, engine);
            for (std::size_t i = 0; i < chains.size(); ++i)
              EXPECT_TRUE(near(got[i].item(), want[i].item(), dtype))
                  << dtype << " " << how << name_of(chains[i]) << " under '" << layout << "' on '" << mesh << "', "
                  << engine.name << ": " << got[i].item() << ", one processor: " << want[i].item();
          }
        }
    }
}

// Parts that cancel: a large factor on each of them would overflow.
TEST(PendingReductions, SumsStayFiniteBesideLargeLiterals) {
  const std::vector<Between> all = {
      {"multiply 1e30", [](const Tensor& x, const Tensor&, const Tensor&) { return x * 1e30; }},
      {"divide 1e-30", [](const Tensor& x, const Tensor&, const Tensor&) { return x / 1e-30; }},
      {"through f32", [](const Tensor& x, const Tensor&, const Tensor&) {
         return cast(cast(cast(x, DType::kF64) * 1e30, DType::kF32), x.dtype());
       }}};
  std::vector<std::vector<const Between*>> chains;
  for (const Between& one : all) chains.push_back({&one});
  Case c{DType::kF32, Array({kA, kB}, DType::kF32), Array({kB}, DType::kF32), Array({kB}, DType::kBool)};
  for (std::int64_t i = 0; i < c.x.elements(); ++i) c.x.set(i, i < 16 ? 0x1p29 : i < 24 ? -0x1p30 : 128);
  for (const device::Choice& engine : {device::reference(), device::cpu()})
    for (const auto& [mesh, layout] : kLayouts)
      for (const Array& sum : results(c, kJoins[0].second, chains, mesh, layout, engine))
        EXPECT_NEAR(sum.item() / (8 * 128e30), 1, 1e-6) << layout << " " << engine.name;
}

}  // namespace
}  // namespace weft::pending_test
