// Collectives by their definition in program/ir.h, where mesh_test.cc does not go: six processors, every way of joining
// in several dtypes, minor axes only, several values at once.
#include <gtest/gtest.h>

#include "base/str.h"
#include "support/run_program.h"

namespace weft::test::collectives_test {
namespace {

struct Case {
  std::string mesh;
  Axes axes;
  std::size_t dim;  // of the three
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.mesh << ", axes " << join(c.axes, "+") << ", dim " << c.dim;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const std::vector<std::pair<std::string, std::vector<Axes>>> meshes = {
      {"p:4", {{0}}}, {"p:2 q:2", {{1}, {1, 0}}}, {"p:2 q:3", {{0}, {1}, {0, 1}, {1, 0}}}, {"p:3 q:2", {{0}, {1, 0}}}};
  for (const auto& [mesh, lists] : meshes)
    for (const Axes& axes : lists)
      for (std::size_t dim = 0; dim < 3; ++dim) cases.push_back({mesh, axes, dim});
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = "Mesh";
  for (const char c : info.param.mesh)
    if (c >= '0' && c <= '9') name += c;
  return str(name, "Axes", join(info.param.axes, "And"), "Dim", info.param.dim);
}

class CollectiveLaws : public ::testing::TestWithParam<Case> {
 protected:
  using Move = std::function<ValueId(Builder&, ValueId)>;
  const Mesh mesh = Mesh::parse(GetParam().mesh);
  const Axes& axes = GetParam().axes;
  const std::size_t at = GetParam().dim;
  const Shape global{{"a", 12}, {"b", 12}, {"c", 12}};
  const std::string dim = global[at].name, other = global[(at + 1) % 3].name;

  Sharding split() const {
    Sharding sharding = unsplit(global);
    sharding.dims[at] = axes;
    return sharding;
  }
  Sharding pending(Reduce how) const {
    Sharding sharding = unsplit(global);
    sharding.partial = axes;
    std::sort(sharding.partial.begin(), sharding.partial.end());
    sharding.pending = how;
    return sharding;
  }

  // Every processor holds its shard of the numbered whole, before and after.
  void expect_moves(const Sharding& from, const Move& move) const {
    Builder b(mesh);
    const ValueId y = move(b, b.input("x", {DType::kI64, local_shape(global, from, mesh), from}));
    const Sharding to = b.value(y).sharding;
    b.output("y", b.dense(y, b.value(y).shape));
    Array whole(global, DType::kI64);
    for (std::int64_t i = 0; i < whole.elements(); ++i) whole.set(i, static_cast<double>(i));
    const Shards got = run_on_mesh(std::move(b).finish(), {{"x", cut(whole, from, mesh)}}).at("y");
    const Shards want = cut(whole, to, mesh);
    for (const ProcessorId p : got.ids()) EXPECT_EQ(got[p].values(), want[p].values()) << "processor " << p;
  }

  // Small whole numbers, unlike on every processor, exact in every dtype; products too.
  Array part(ProcessorId processor, DType dtype) const {
    Array array(global, dtype);
    for (std::int64_t i = 0; i < array.elements(); ++i)
      array.set(i, static_cast<double>((i * 7 + processor.number() * 5) % 4 + 1));
    return array;
  }
  static double joined(Reduce how, double x, double y) {
    switch (how) {
      case Reduce::kSum: return x + y;
      case Reduce::kProduct: return x * y;
      case Reduce::kMax: return std::max(x, y);
      default: return std::min(x, y);
    }
  }

  void expect_joins(Reduce how, DType dtype, const Move& move) const {
    Builder b(mesh);
    const ValueId y = move(b, b.input("x", {dtype, global, pending(how)}));
    const Sharding to = b.value(y).sharding;
    b.output("y", y);
    Shards parts;
    for (const ProcessorId p : mesh.processors()) parts.push_back(part(p, dtype));
    const Shards got = run_on_mesh(std::move(b).finish(), {{"x", parts}}).at("y");
    for (const ProcessorId p : mesh.processors()) {
      const std::vector<ProcessorId> members = mesh.group(p, axes);
      Array whole = part(members[0], dtype);
      for (std::size_t m = 1; m < members.size(); ++m) {
        const Array& more = parts[members[m]];
        for (std::int64_t i = 0; i < whole.elements(); ++i) whole.set(i, joined(how, whole.at(i), more.at(i)));
      }
      EXPECT_EQ(got[p].values(), cut(whole, to, mesh)[p].values()) << "processor " << p << ", " << how << " " << dtype;
    }
  }
};

TEST_P(CollectiveLaws, GatherAndShardAreInverse) {
  expect_moves(split(), [&](Builder& b, ValueId x) { return b.all_gather(x, dim, axes); });
  expect_moves(unsplit(global), [&](Builder& b, ValueId x) { return b.shard(x, dim, axes); });
  expect_moves(unsplit(global), [&](Builder& b, ValueId x) { return b.all_gather(b.shard(x, dim, axes), dim, axes); });
}

TEST_P(CollectiveLaws, AllToAllMovesTheSplit) {
  expect_moves(split(), [&](Builder& b, ValueId x) { return b.all_to_all(x, other, dim, axes); });
}

// What is split over the other axes stays so.
TEST_P(CollectiveLaws, MinorAxesMayGoAlone) {
  if (axes.size() < 2) return;
  const Axes minor{axes[1]};
  expect_moves(split(), [&](Builder& b, ValueId x) { return b.all_gather(x, dim, minor); });
  expect_moves(split(), [&](Builder& b, ValueId x) { return b.all_to_all(x, other, dim, minor); });
}

TEST_P(CollectiveLaws, ReductionsJoinEveryWay) {
  for (const Reduce how : {Reduce::kSum, Reduce::kMax, Reduce::kMin, Reduce::kProduct})
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32, DType::kI64}) {
      if (dtype == DType::kBF16 && how == Reduce::kProduct) continue;  // products of six need more than its 8 bits
      expect_joins(how, dtype, [&](Builder& b, ValueId x) { return b.all_reduce(x, pending(how).partial); });
      expect_joins(how, dtype, [&](Builder& b, ValueId x) { return b.reduce_scatter(x, dim, axes); });
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, CollectiveLaws, ::testing::ValuesIn(all_cases()), name_of);

TEST(JoinedCollectives, AllReduceOfSeveralValues) {
  const Mesh mesh = Mesh::parse("p:2");
  const Shape x{{"a", 3}}, y{{"b", 2}, {"c", 2}};
  Builder b(mesh);
  const auto pending = [](const Shape& shape) {
    Sharding sharding = unsplit(shape);
    sharding.partial = {0};
    return ValueType{DType::kF32, shape, sharding};
  };
  const ValueId in_x = b.input("x", pending(x)), in_y = b.input("y", pending(y));
  const std::vector<ValueId> out =
      b.emit(AllReduce{Reduce::kSum, {0}}, {in_x, in_y}, {{DType::kF32, x, unsplit(x)}, {DType::kF32, y, unsplit(y)}});
  b.output("x", out[0]);
  b.output("y", out[1]);
  const auto two = [](const Shape& shape, double first) {
    Shards shards;
    for (int p = 1; p <= 2; ++p) {
      shards.emplace_back(shape, DType::kF32);
      for (std::int64_t i = 0; i < shape.elements(); ++i) shards.back().set(i, p * (first + static_cast<double>(i)));
    }
    return shards;
  };
  const NamedShards got = run_on_mesh(std::move(b).finish(), {{"x", two(x, 0)}, {"y", two(y, 10)}});
  for (const ProcessorId p : mesh.processors()) {
    EXPECT_EQ(got.at("x")[p].values(), (std::vector<double>{0, 3, 6}));
    EXPECT_EQ(got.at("y")[p].values(), (std::vector<double>{30, 33, 36, 39}));
  }
}

}  // namespace
}  // namespace weft::test::collectives_test
