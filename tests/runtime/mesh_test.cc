// Programs on meshes of threads: collectives along middle dims, global indices and draws, updates and failures.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "support/expect_error.h"
#include "support/run_program.h"

namespace weft::test::mesh_test {
namespace {

const Shape kWhole{Dim{"a", 4}, Dim{"b", 8}, Dim{"c", 4}};

Array ramp(const Shape& shape, DType dtype = DType::kF32) {
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  return Array(shape, values, dtype);
}

Sharding split(const std::vector<Axes>& dims, const Axes& partial = {}) { return {.dims = dims, .partial = partial}; }

ValueType laid(const Sharding& sharding, const Mesh& mesh, DType dtype = DType::kF32) {
  return {dtype, local_shape(kWhole, sharding, mesh), sharding};
}

// One collective from one sharding of a ramp to another.
void expect_moves(const Mesh& mesh, const Sharding& from, const Sharding& to,
                  const std::function<ValueId(Builder&, ValueId)>& move, DType dtype = DType::kF32) {
  Builder b{mesh};
  const ValueId out = move(b, b.input("x", laid(from, mesh, dtype)));
  ASSERT_EQ(b.value(out).sharding, to);
  b.output("out", out);
  const Array whole = ramp(kWhole, dtype);
  const Shards got = run_on_mesh(std::move(b).finish(), {{"x", cut(whole, from, mesh)}}).at("out"),
               want = cut(whole, to, mesh);
  for (const ProcessorId p : mesh.processors())
    EXPECT_EQ(got[p].values(), want[p].values()) << "processor " << p << " of " << mesh;
}

struct Case {
  const char* mesh;
  Axes axes;
};
const std::vector<Case> kCases = {{"x:2", {0}},     {"x:4", {0}},        {"x:2 y:2", {0}},
                                  {"x:2 y:2", {1}}, {"x:2 y:2", {0, 1}}, {"x:2 y:2", {1, 0}}};

TEST(Collectives, AllGatherAlongEveryDim) {
  for (const Case& c : kCases)
    for (std::size_t d = 0; d < 3; ++d) {
      std::vector<Axes> dims(3);
      dims[d] = c.axes;
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kU8})
        expect_moves(
            Mesh::parse(c.mesh), split(dims), split({{}, {}, {}}),
            [&](Builder& b, ValueId x) { return b.all_gather(x, kWhole[d].name, c.axes); }, dtype);
    }
}

TEST(Collectives, ShardTakesTheOwnBlock) {
  for (const Case& c : kCases)
    for (std::size_t d = 0; d < 3; ++d) {
      std::vector<Axes> dims(3);
      dims[d] = c.axes;
      expect_moves(Mesh::parse(c.mesh), split({{}, {}, {}}), split(dims), [&](Builder& b, ValueId x) {
        const ValueId mine = b.shard(x, kWhole[d].name, c.axes);
        return b.dense(mine, b.value(mine).shape);
      });
    }
}

TEST(Collectives, AllToAllBetweenEveryPairOfDims) {
  for (const Case& c : kCases)
    for (std::size_t from = 0; from < 3; ++from)
      for (std::size_t to = 0; to < 3; ++to) {
        if (from == to) continue;
        std::vector<Axes> before(3), after(3);
        before[from] = after[to] = c.axes;
        expect_moves(Mesh::parse(c.mesh), split(before), split(after), [&](Builder& b, ValueId x) {
          return b.all_to_all(x, kWhole[to].name, kWhole[from].name, c.axes);
        });
      }
}

// Processor p contributes p + 1 times the ramp.
Shards scaled_ramps(const Mesh& mesh) {
  Shards shards;
  for (const ProcessorId p : mesh.processors()) {
    Array x = ramp(kWhole);
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, (p.number() + 1) * x.at(i));
    shards.push_back(x);
  }
  return shards;
}

double sum_over_group(const Mesh& mesh, ProcessorId p, const Axes& axes) {
  double sum = 0;
  for (const ProcessorId member : mesh.group(p, axes)) sum += member.number() + 1;
  return sum;
}

TEST(Collectives, AllReduceSumsOverTheGroup) {
  for (const Case& c : kCases) {
    const Mesh mesh = Mesh::parse(c.mesh);
    Axes pending = c.axes;
    std::sort(pending.begin(), pending.end());
    Builder b{mesh};
    b.output("out", b.all_reduce(b.input("x", laid(split({{}, {}, {}}, pending), mesh)), c.axes));
    const Shards got = run_on_mesh(std::move(b).finish(), {{"x", scaled_ramps(mesh)}}).at("out");
    for (const ProcessorId p : mesh.processors())
      for (std::int64_t i = 0; i < kWhole.elements(); ++i)
        ASSERT_EQ(got[p].at(i), sum_over_group(mesh, p, c.axes) * static_cast<double>(i));
  }
}

TEST(Collectives, ReduceScatterAlongEveryDim) {
  for (const Case& c : kCases)
    for (std::size_t d = 0; d < 3; ++d) {
      const Mesh mesh = Mesh::parse(c.mesh);
      Axes pending = c.axes;
      std::sort(pending.begin(), pending.end());
      Builder b{mesh};
      b.output("out", b.reduce_scatter(b.input("x", laid(split({{}, {}, {}}, pending), mesh)), kWhole[d].name, c.axes));
      const Shards got = run_on_mesh(std::move(b).finish(), {{"x", scaled_ramps(mesh)}}).at("out");
      std::vector<Axes> dims(3);
      dims[d] = c.axes;
      const Shards blocks = cut(ramp(kWhole), split(dims), mesh);
      for (const ProcessorId p : mesh.processors())
        for (std::int64_t i = 0; i < got[p].elements(); ++i)
          ASSERT_EQ(got[p].at(i), sum_over_group(mesh, p, c.axes) * blocks[p].at(i)) << c.mesh << " dim " << d;
    }
}

TEST(Collectives, PermuteSendsOnAndGivesZerosToTheRest) {
  const Mesh mesh = Mesh::parse("x:4");
  Builder b{mesh};
  const ValueId strided = b.slice(b.input("x", laid(split({{}, {}, {}}), mesh)), "b", 2, 3);  // not dense
  b.output("out", b.permute(strided, {0}, {1, 2, -1, 0}));
  const Shards in = scaled_ramps(mesh), got = run_on_mesh(std::move(b).finish(), {{"x", in}}).at("out");
  const Indexed<ProcessorId, int> sender{3, 0, 1, -1};
  for (const ProcessorId p : mesh.processors())
    each_index(got[p].shape(), [&](const auto& i) {
      const double want = sender[p] < 0 ? 0 : in[ProcessorId(sender[p])].at(row_major(kWhole, {i[0], i[1] + 2, i[2]}));
      ASSERT_EQ(got[p].at(row_major(got[p].shape(), i)), want) << "processor " << p;
    });
}

TEST(Sources, DrawsAndIndicesAreThoseOfTheWholeTensor) {
  const auto draw = [](const Mesh& mesh, const Sharding& sharding, Distribution what, std::uint32_t step) {
    Builder b{mesh};
    b.output("draw", b.emit_one(Random{what, 0.25, 1, 77}, {}, laid(sharding, mesh)));
    b.output("index", b.map({{.op = "index", .args = {}, .dtype = DType::kI64, .dim = "b"}}, {},
                            laid(sharding, mesh, DType::kI64)));
    return run_on_mesh(std::move(b).finish(), {}, {.seed = 3, .step = step});
  };
  Array index(kWhole, DType::kI64);
  each_index(kWhole, [&](const auto& i) { index.set(row_major(kWhole, i), static_cast<double>(i[1])); });
  for (const Distribution what :
       {Distribution::kUniform, Distribution::kNormal, Distribution::kTruncatedNormal, Distribution::kBernoulli}) {
    const Array whole = draw(Mesh(), split({{}, {}, {}}), what, 5).at("draw").front();
    EXPECT_NE(draw(Mesh(), split({{}, {}, {}}), what, 6).at("draw").front().values(), whole.values());
    for (const auto& dims :
         {std::vector<Axes>{{0}, {}, {}}, {{}, {1}, {0}}, {{}, {0, 1}, {}}, {{}, {1, 0}, {}}, {{1}, {}, {}}}) {
      const Mesh mesh = Mesh::parse("x:2 y:2");
      const NamedShards got = draw(mesh, split(dims), what, 5);
      const Shards want = cut(whole, split(dims), mesh), want_index = cut(index, split(dims), mesh);
      for (const ProcessorId p : mesh.processors()) {
        EXPECT_EQ(got.at("draw")[p].values(), want[p].values());
        EXPECT_EQ(got.at("index")[p].values(), want_index[p].values());
      }
    }
  }
}

TEST(Sources, AxisIndexIsTheCoordinate) {
  const Mesh mesh = Mesh::parse("x:2 y:2");
  Builder b{mesh};
  b.output("x", b.axis_index({0}));
  b.output("yx", b.axis_index({1, 0}));
  const NamedShards got = run_on_mesh(std::move(b).finish(), {});
  for (const ProcessorId p : mesh.processors()) {
    EXPECT_EQ(got.at("x")[p].item(), p.number() / 2);
    EXPECT_EQ(got.at("yx")[p].item(), p.number() % 2 * 2 + p.number() / 2);
  }
}

TEST(Updates, VariablesChangeTogetherAfterTheBody) {
  const Shape s{Dim{"n", 2}};
  Builder b{Mesh()};
  const ValueType t{DType::kF32, s, unsplit(s)};
  const ValueId x = b.variable("x", t, true), y = b.variable("y", t, true), z = b.variable("z", t, true);
  b.update("x", y);  // swapped: both read the old contents
  b.update("y", x);
  b.update("z", b.map("add", {z, x}, t));
  RunOptions options{.variables = {{"x", {Array(s, {1, 2}, DType::kF32)}},
                                   {"y", {Array(s, {3, 4}, DType::kF32)}},
                                   {"z", {Array(s, {0, 0}, DType::kF32)}}}};
  const Program program = std::move(b).finish();
  EXPECT_EQ(run_all(program, {}, options).variables.at("x").front().values(), (std::vector<double>{3, 4}));
  options.steps = 2;
  const RunResult twice = run_all(program, {}, options);
  EXPECT_EQ(twice.variables.at("x").front().values(), (std::vector<double>{1, 2}));
  EXPECT_EQ(twice.variables.at("y").front().values(), (std::vector<double>{3, 4}));
  EXPECT_EQ(twice.variables.at("z").front().values(), (std::vector<double>{4, 6}));
}

TEST(HostEvents, ComeFromOneProcessorOnly) {
  const Mesh mesh = Mesh::parse("x:2 y:2");
  Builder b{mesh};
  const ValueId x = b.input("x", laid(split({{}, {}, {}}), mesh));
  b.emit(Host{"print", "x"}, {x}, {});
  b.output("out", b.emit_one(Copy{}, {x}, b.type(x)));
  std::atomic<int> events = 0;
  run_on_mesh(std::move(b).finish(), {{"x", everywhere(mesh, ramp(kWhole))}},
              {.host = [&](const HostEvent&) { ++events; }});
  EXPECT_EQ(events, 1);
}

TEST(Failures, OneProcessorsFailureUnwindsAll) {
  const Mesh mesh = Mesh::parse("x:2 y:2");
  Builder b{mesh};
  const ValueId x = b.input("x", laid(split({{}, {}, {}}, {0, 1}), mesh));
  b.begin("shown", {Phase::kForward, {"model.cc:7 print"}});
  b.emit(Host{"print", "x"}, {x}, {});
  b.output("out", b.all_reduce(x, {0, 1}));
  // Only processor 0 calls the host.
  const RunResult result = run_all(std::move(b).finish(), {{"x", scaled_ramps(mesh)}},
                                   {.host = [](const HostEvent&) { throw std::runtime_error("the disk is full"); }});
  ASSERT_TRUE(result.failure);
  EXPECT_RUN_ERROR(std::rethrow_exception(result.failure), "host of 'x' failed: the disk is full",
                   "processor 0 (x=0 y=0)", "model.cc:7 print");
}

}  // namespace
}  // namespace weft::test::mesh_test
