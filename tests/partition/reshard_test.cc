// Resharding: every pair of shardings on small meshes has a path, its bytes are those of an exhaustive search that is
// written independently (a test of each pair of states, not a list of moves), and running it moves the data right.
#include "partition/reshard.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/str.h"
#include "partition/simulate.h"
#include "program/verify.h"
#include "support/expect_error.h"
#include "weft/error.h"

namespace weft::reshard_test {
namespace {

using namespace test;

// --- All shardings of a shape ---

void add_states(const Shape& shape, const Mesh& mesh, int axis, const Sharding& so_far, std::vector<Sharding>& all) {
  if (axis == static_cast<int>(mesh.axes().size())) {
    for (std::size_t d = 0; d < shape.rank(); ++d)
      if (shape[d].size % mesh.size(so_far.dims[d]) != 0) return;
    all.push_back(so_far);
    return;
  }
  add_states(shape, mesh, axis + 1, so_far, all);
  Sharding next = so_far;
  next.partial.push_back(axis);
  add_states(shape, mesh, axis + 1, next, all);
  for (std::size_t d = 0; d < shape.rank(); ++d)
    for (std::size_t at = 0; at <= so_far.dims[d].size(); ++at) {
      next = so_far;
      next.dims[d].insert(next.dims[d].begin() + static_cast<int>(at), axis);
      add_states(shape, mesh, axis + 1, next, all);
    }
}

std::vector<Sharding> every_sharding(const Shape& shape, const Mesh& mesh) {
  std::vector<Sharding> all;
  add_states(shape, mesh, 0, unsplit(shape), all);
  return all;
}

// --- Brute force: the cost of one step between two given states, then all paths by Floyd and Warshall ---

using Cost = std::pair<std::int64_t, int>;  // bytes, collectives
constexpr Cost kFar = {std::numeric_limits<std::int64_t>::max() / 4, 1 << 20};

// The axes that `longer` has behind `shorter`; empty if it does not continue it.
Axes rest_of(const Axes& longer, const Axes& shorter) {
  if (longer.size() < shorter.size() || !std::equal(shorter.begin(), shorter.end(), longer.begin())) return {};
  return {longer.begin() + static_cast<int>(shorter.size()), longer.end()};
}

Cost one_step(const Shape& shape, const Mesh& mesh, std::int64_t element_bytes, const Sharding& s, const Sharding& t) {
  const std::int64_t local = local_shape(shape, s, mesh).elements() * element_bytes;
  const std::set<int> had(s.partial.begin(), s.partial.end()), has(t.partial.begin(), t.partial.end());
  std::set<int> reduced;
  for (int axis : had)
    if (!has.count(axis)) reduced.insert(axis);
  if (has.size() + reduced.size() != had.size()) return kFar;

  std::vector<std::size_t> changed;
  for (std::size_t d = 0; d < shape.rank(); ++d)
    if (s.dims[d] != t.dims[d]) changed.push_back(d);
  const auto gained = [&](std::size_t i) { return rest_of(t.dims[changed[i]], s.dims[changed[i]]); };
  const auto lost = [&](std::size_t i) { return rest_of(s.dims[changed[i]], t.dims[changed[i]]); };
  const auto is_set = [](const Axes& axes, const std::set<int>& set) {
    return std::set(axes.begin(), axes.end()) == set;
  };

  if (!reduced.empty()) {
    const std::int64_t n = mesh.size(Axes(reduced.begin(), reduced.end()));
    if (changed.empty()) return {(2 * local * (n - 1) + n - 1) / n, 1};
    if (changed.size() == 1 && is_set(gained(0), reduced)) return {local * (n - 1) / n, 1};
    return kFar;
  }
  Cost best = kFar;
  if (changed.size() == 1 && !gained(0).empty()) best = {0, 0};
  if (changed.size() == 1 && !lost(0).empty()) best = {local * (mesh.size(lost(0)) - 1), 1};
  if (changed.size() == 2)
    for (std::size_t i : {0, 1})
      if (!lost(i).empty() && lost(i) == gained(1 - i)) {
        const std::int64_t n = mesh.size(lost(i));
        best = std::min(best, Cost{local * (n - 1) / n, 1});
      }
  if (!changed.empty() && local_shape(shape, s, mesh) == local_shape(shape, t, mesh))
    best = std::min(best, Cost{local, 1});
  return best;
}

using Costs = std::vector<std::vector<Cost>>;

// Least costs between all states, on paths through states that use only `axes` of the mesh.
Costs least_costs(const Shape& shape, const Mesh& mesh, std::int64_t element_bytes, const std::vector<Sharding>& states,
                  const std::set<int>& axes) {
  const auto allowed = [&](const Sharding& s) {
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
      if (s.uses(axis) && !axes.count(axis)) return false;
    return true;
  };
  const std::size_t n = states.size();
  Costs costs(n, std::vector<Cost>(n, kFar));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i == j) costs[i][j] = {0, 0};
      else if (allowed(states[i]) && allowed(states[j]))
        costs[i][j] = one_step(shape, mesh, element_bytes, states[i], states[j]);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n && costs[i][k] < kFar; ++j)
        costs[i][j] =
            std::min(costs[i][j], Cost{costs[i][k].first + costs[k][j].first, costs[i][k].second + costs[k][j].second});
  return costs;
}

// --- Data ---

// The whole tensor has element i * 8 + 16 at i; all numbers stay exact in doubles.
double element(std::size_t i) { return static_cast<double>(i * 8 + 16); }

// What a processor contributes to an element: lopsided, so that a lost or doubled contribution shows.
double contribution(Reduce how, std::size_t i, int rank, int ranks) {
  const auto odd = [&](int r) { return static_cast<double>((i * 7 + static_cast<std::size_t>(r) * 13) % 31) + 1; };
  const double v = element(i);
  const bool chosen = rank == static_cast<int>(i % static_cast<std::size_t>(ranks));
  if (how == Reduce::kMax) return chosen ? v : v - odd(rank);
  if (how == Reduce::kMin) return chosen ? v : v + odd(rank);
  if (how == Reduce::kProduct) return rank > 0 ? 0.5 : v * static_cast<double>(1 << (ranks - 1));
  double rest = v;
  for (int r = 1; r < ranks; ++r) rest -= odd(r);
  return rank > 0 ? odd(rank) : rest;
}

LocalBlocks laid_out(const Shape& shape, const Sharding& sharding, const Mesh& mesh) {
  LocalBlocks all;
  const Shape local = local_shape(shape, sharding, mesh);
  for (const ProcessorId p : mesh.processors()) {
    Block block{local, {}};
    const std::vector<std::int64_t> begin = shard_begin(local, sharding, mesh, p);
    each_index(local, [&](std::vector<std::int64_t> index) {
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += begin[d];
      block.data.push_back(contribution(sharding.pending, offset(shape, index), mesh.coordinate(p, sharding.partial),
                                        mesh.size(sharding.partial)));
    });
    all.push_back(block);
  }
  return all;
}

void expect_moved(const Shape& shape, const Mesh& mesh, const Sharding& have, const Sharding& want,
                  const std::vector<ReshardStep>& path) {
  const Simulator simulator{mesh};
  LocalBlocks now = laid_out(shape, have, mesh);
  for (const ReshardStep& step : path) {
    LocalBlocks next;
    for (const ProcessorId p : mesh.processors()) next.push_back(simulator.after(now, p, step.operation));
    now = std::move(next);
  }
  // What is still pending is reduced here, by hand.
  Sharding whole = want;
  whole.partial.clear();
  const LocalBlocks right = laid_out(shape, whole, mesh);
  for (const ProcessorId p : mesh.processors()) {
    const Block mine = reduced(have.pending, simulator.group_of(now, p, want.partial));
    ASSERT_EQ(mine.shape, right[p].shape);
    ASSERT_EQ(mine.data, right[p].data) << "processor " << p;
  }
}

bool may_follow(const Sharding& have, const Sharding& want) {
  return std::includes(have.partial.begin(), have.partial.end(), want.partial.begin(), want.partial.end());
}

void check_all_pairs(const Shape& shape, const Mesh& mesh, DType dtype) {
  const std::vector<Sharding> states = every_sharding(shape, mesh);
  std::map<std::set<int>, Costs> costs;  // by the axes in use
  for (std::size_t i = 0; i < states.size(); ++i)
    for (std::size_t j = 0; j < states.size(); ++j) {
      const Sharding &have = states[i], &want = states[j];
      if (!may_follow(have, want)) continue;
      std::set<int> axes;
      for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
        if (have.uses(axis) || want.uses(axis)) axes.insert(axis);
      if (!costs.count(axes))
        costs[axes] = least_costs(shape, mesh, static_cast<std::int64_t>(size_of(dtype)), states, axes);

      SCOPED_TRACE(str(shape, " on ", mesh, ": ", text_of(have, shape, mesh), " to ", text_of(want, shape, mesh)));
      const std::vector<ReshardStep> path = reshard_path(shape, dtype, have, want, mesh);
      Cost cost{0, 0};
      for (const ReshardStep& step : path) {
        cost.first += step.bytes;
        cost.second += std::holds_alternative<Shard>(step.operation) ? 0 : 1;
      }
      ASSERT_EQ(cost, costs[axes][i][j]);
      expect_moved(shape, mesh, have, want, path);
      if (testing::Test::HasFailure()) return;
    }
}

const std::vector<Shape> kShapes = {
    {{"x", 8}, {"y", 12}}, {{"x", 4}}, {{"x", 6}, {"y", 4}, {"z", 2}}, {{"x", 12}, {"y", 6}}, {}};

TEST(Reshard, AllPairsOnTwo) {
  for (const Shape& shape : kShapes) check_all_pairs(shape, Mesh::parse("a:2"), DType::kF32);
}
TEST(Reshard, AllPairsOnFour) {
  for (const Shape& shape : kShapes) check_all_pairs(shape, Mesh::parse("a:4"), DType::kF64);
}
TEST(Reshard, AllPairsOnTwoByTwo) {
  for (const Shape& shape : kShapes) check_all_pairs(shape, Mesh::parse("a:2 b:2"), DType::kF32);
}
TEST(Reshard, AllPairsOnTwoByThree) {
  for (const Shape& shape : kShapes) check_all_pairs(shape, Mesh::parse("a:2 b:3"), DType::kBF16);
}
TEST(FullReshard, AllPairsOnThreeAxes) {
  check_all_pairs({{"x", 8}, {"y", 16}}, Mesh::parse("a:2 b:2 c:2"), DType::kF32);
  check_all_pairs({{"x", 8}, {"y", 4}}, Mesh::parse("a:2 b:4 c:2"), DType::kF32);
}

TEST(Reshard, EveryKindOfReduction) {
  const Shape shape{{"x", 4}, {"y", 8}};
  const Mesh mesh = Mesh::parse("a:2 b:2");
  for (Reduce how : {Reduce::kSum, Reduce::kMax, Reduce::kMin, Reduce::kProduct})
    for (Sharding have : every_sharding(shape, mesh))
      for (Sharding want : every_sharding(shape, mesh)) {
        if (have.partial.empty() || !may_follow(have, want)) continue;
        have.pending = how;
        if (want.is_partial()) want.pending = how;
        SCOPED_TRACE(str(text_of(have, shape, mesh), " to ", text_of(want, shape, mesh)));
        expect_moved(shape, mesh, have, want, reshard_path(shape, DType::kF32, have, want, mesh));
        ASSERT_FALSE(testing::Test::HasFailure());
      }
}

// What a path consists of, for people.
std::string path_text(const Shape& shape, const Mesh& mesh, const Sharding& have, const Sharding& want) {
  std::vector<std::string> words;
  for (const ReshardStep& step : reshard_path(shape, DType::kF32, have, want, mesh))
    words.push_back(str(name_of(Instr{step.operation, {}, {}, {}}), " ",
                        text_of(axes_of(Instr{step.operation, {}, {}, {}}), mesh)));
  return join(words, ", ");
}

TEST(Reshard, PathsArePlain) {
  const Mesh mesh = Mesh::parse("a:2 b:2 one:1");
  const Shape shape{{"x", 8}, {"y", 8}};
  const auto split = [](Axes x, Axes y, Axes partial = {}) {
    return Sharding{.dims = {std::move(x), std::move(y)}, .partial = std::move(partial)};
  };
  EXPECT_EQ(path_text(shape, mesh, split({}, {}, {0}), split({}, {})), "all_reduce a");
  EXPECT_EQ(path_text(shape, mesh, split({}, {}, {0, 1}), split({}, {})), "all_reduce a+b");
  EXPECT_EQ(path_text(shape, mesh, split({1}, {}, {0}), split({1}, {0})), "reduce_scatter a");
  EXPECT_EQ(path_text(shape, mesh, split({0, 1}, {}), split({1, 0}, {})), "permute a+b");
  EXPECT_EQ(path_text(shape, mesh, split({0}, {1}), split({1}, {0})), "permute a+b");
  EXPECT_EQ(path_text(shape, mesh, split({0}, {}), split({1}, {})), "permute a+b");
  EXPECT_EQ(path_text(shape, mesh, split({0, 1}, {}), split({}, {0, 1})), "all_to_all a+b");
  EXPECT_EQ(path_text(shape, mesh, split({}, {}), split({0}, {1})), "shard , shard ");
  EXPECT_EQ(path_text(shape, mesh, split({2}, {}), split({}, {2})), "permute ");
  EXPECT_EQ(path_text(shape, mesh, split({2}, {0}, {1}), split({}, {0})), "permute , all_reduce b");
  EXPECT_EQ(path_text(shape, mesh, split({0}, {1}), split({0}, {1})), "");
}

TEST(Reshard, TheBuilderGetsTheWantedSharding) {
  const Mesh mesh = Mesh::parse("a:2 b:2 one:1");
  const Shape shape{{"x", 8}, {"y", 4}};
  for (const Sharding& have : every_sharding(shape, mesh))
    for (const Sharding& want : every_sharding(shape, mesh)) {
      if (!may_follow(have, want)) continue;
      Builder builder(mesh);
      const ValueId x = builder.input("x", {DType::kF32, local_shape(shape, have, mesh), have});
      const ValueId y = reshard(builder, x, want);
      ASSERT_EQ(builder.value(y).sharding, want);
      ASSERT_EQ(builder.value(y).shape, local_shape(shape, want, mesh));
      ASSERT_TRUE(y == x || !(have == want));
      ASSERT_NO_THROW(verify(std::move(builder).finish(), "reshard"));
    }
}

TEST(Reshard, NewPendingReductionsAreOurBug) {
  const Mesh mesh = Mesh::parse("a:2");
  const Shape shape{{"x", 8}};
  const Sharding pending{.dims = {{}}, .partial = {0}};
  EXPECT_INTERNAL_ERROR(reshard_path(shape, DType::kF32, unsplit(shape), pending, mesh),
                        "a reshard to a pending reduction that the value does not have");
}

TEST(ShardingLaws, ShardsTileTheTensor) {
  const Shape shape{{"x", 12}, {"y", 4}};
  for (const char* text : {"a:2", "a:4", "a:2 b:2", "a:2 b:3", "a:2 b:2 c:2"}) {
    const Mesh mesh = Mesh::parse(text);
    for (const Sharding& sharding : every_sharding(shape, mesh)) {
      const Shape local = local_shape(shape, sharding, mesh);
      EXPECT_EQ(global_shape(local, sharding, mesh), shape);
      std::map<std::size_t, int> seen;
      for (const ProcessorId p : mesh.processors()) {
        const std::vector<std::int64_t> begin = shard_begin(local, sharding, mesh, p);
        each_index(local, [&](std::vector<std::int64_t> index) {
          for (std::size_t d = 0; d < index.size(); ++d) index[d] += begin[d];
          ++seen[offset(shape, index)];
        });
      }
      ASSERT_EQ(static_cast<std::int64_t>(seen.size()), shape.elements());
      const int copies = mesh.size(replicated_axes(sharding, mesh)) * mesh.size(sharding.partial);
      for (const auto& [at, count] : seen) ASSERT_EQ(count, copies) << text_of(sharding, shape, mesh);
    }
  }
}

TEST(ShardingLaws, ShardThenGatherIsIdentity) {
  const Shape shape{{"x", 12}, {"y", 4}};
  const Mesh mesh = Mesh::parse("a:2 b:2");
  const Simulator simulator{mesh};
  const LocalBlocks whole = laid_out(shape, unsplit(shape), mesh);
  for (const char* dim : {"x", "y"})
    for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}, Axes{1, 0}}) {
      LocalBlocks cut_up, back;
      for (const ProcessorId p : mesh.processors()) cut_up.push_back(simulator.after(whole, p, Shard{dim, axes}));
      for (const ProcessorId p : mesh.processors()) back.push_back(simulator.after(cut_up, p, AllGather{dim, axes}));
      for (const ProcessorId p : whole.ids()) EXPECT_EQ(back[p].data, whole[p].data);
    }
}

}  // namespace
}  // namespace weft::reshard_test
