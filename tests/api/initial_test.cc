// First values of variables: the same numbers on every mesh, by the variable's name, its element and the seed.
#include <gtest/gtest.h>

#include "base/philox.h"
#include "runtime/random.h"
#include "weft/weft.h"

namespace weft::initial_test {
namespace {

constexpr std::uint64_t kSeed = 17;
const Dim kRow{"row", 12}, kPart{"part", 4}, kColumn{"column", 34};

std::vector<double> formula(const std::string& name, Distribution distribution, double a, double b,
                            std::int64_t elements, DType dtype) {
  Array array({{"all", elements}}, dtype);
  const std::uint64_t key = seeded(hash_key(name, 0), kSeed);
  for (std::int64_t i = 0; i < elements; ++i)
    array.set(i, deviate(philox_word(key, static_cast<std::uint64_t>(i), 0), distribution, a, b));
  return array.values();
}

Graph model(DType dtype) {
  Graph g;
  const Shape shape = {kRow, kColumn};
  g.variable("uniform", shape, init::uniform(-2, 3), {.stored = dtype});
  g.variable("normal", shape, init::normal(0.5, 1), {.stored = dtype});
  g.variable("truncated", shape, init::truncated_normal(2), {.stored = dtype});
  g.variable("constant", shape, init::constant(1.5), {.stored = dtype});
  Array given({kColumn, kRow}, DType::kF64);
  for (std::int64_t i = 0; i < given.elements(); ++i) given.set(i, static_cast<double>(i));
  g.variable("given", shape, init::values(given), {.stored = dtype});
  for (const Shape& order : {Shape{kPart, kRow, kColumn}, Shape{kRow, kPart, kColumn}, Shape{kRow, kColumn, kPart}}) {
    const std::string name = order[0] == kPart ? "first" : order[1] == kPart ? "second" : "third";
    g.variable(name + "/part/w", order, init::stacked(init::normal(1), "part", {"q", "k", "v", "o"}, {1, 2}),
               {.stored = dtype});
    g.variable(name + "/part/b", order, init::stacked(init::constant(1), "part", {"q", "k", "v", "o"}, {3, 5}),
               {.stored = dtype});
  }
  return g;
}

// The slices of a stacked variable, each as a variable of its own would be.
void expect_stacked(const Session& session, const std::string& name, DType dtype) {
  const Array all = session.value(name + "/part/w").transposed({kPart, kRow, kColumn});
  const Array constants = session.value(name + "/part/b").transposed({kPart, kRow, kColumn});
  const std::int64_t each = kRow.size * kColumn.size;
  const char* parts[] = {"q", "k", "v", "o"};
  for (std::int64_t p = 0; p < kPart.size; ++p) {
    const double scale = p == 1 ? 2 : 1, constant = p == 0 ? 3 : p == 1 ? 5 : 1;
    const std::vector<double> want =
        formula(name + "/" + parts[p] + "/w", Distribution::kNormal, 0, scale, each, dtype);
    for (std::int64_t i = 0; i < each; ++i) {
      ASSERT_EQ(all.at(p * each + i), want[static_cast<std::size_t>(i)]) << name << " part " << p << " element " << i;
      ASSERT_EQ(constants.at(p * each + i), constant) << name << " part " << p;
    }
  }
}

TEST(InitialValues, AreTheSameOnEveryMesh) {
  for (const DType dtype : {DType::kF32, DType::kBF16})
    for (const auto& [mesh, layout] : {std::pair("", ""), std::pair("p:2", "row:p"), std::pair("p:2", "column:p"),
                                       std::pair("p:2 q:2", "row:p part:q"), std::pair("p:2 q:2", "column:q row:p")}) {
      const Graph g = model(dtype);
      Session session(Mesh::parse(mesh), wire::threads(), device::cpu(), {.seed = kSeed, .workers = 2});
      Tensor sum = constant(g, 0);
      for (const Tensor& variable : g.variables()) sum = sum + reduce_sum(cast(variable, DType::kF32));
      session.compile(g, Layout::parse(layout), {.fetch = {sum}});
      const std::int64_t count = kRow.size * kColumn.size;
      const auto random = [&](const char* name, Distribution distribution, double a, double b) {
        EXPECT_EQ(session.value(name).values(), formula(name, distribution, a, b, count, dtype)) << name << layout;
      };
      random("uniform", Distribution::kUniform, -2, 3);
      random("normal", Distribution::kNormal, 1, 0.5);
      random("truncated", Distribution::kTruncatedNormal, 0, 2);
      EXPECT_EQ(session.value("constant").values(), std::vector<double>(static_cast<std::size_t>(count), 1.5));
      const Array given = session.value("given");
      for (std::int64_t r = 0; r < kRow.size; ++r)
        for (std::int64_t c = 0; c < kColumn.size; ++c)
          ASSERT_EQ(given.at(r * kColumn.size + c),
                    Array::scalar(static_cast<double>(c * kRow.size + r), dtype).item());
      for (const char* name : {"first", "second", "third"}) expect_stacked(session, name, dtype);
    }
}

}  // namespace
}  // namespace weft::initial_test
