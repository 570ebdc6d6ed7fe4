// From layout text to shardings, and the refusals that a user meets most.
#include "layout/resolve.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace weft::resolve_test {
namespace {

const Mesh kMesh = Mesh::parse("data:2 model:4");
const std::vector<std::string> kDims = {"#row", "batch", "heads", "memory"};

DimAxes resolved(const char* layout, const Mesh& mesh = kMesh) { return resolve(Layout::parse(layout), mesh, kDims); }

TEST(Resolve, NamesBecomePositions) {
  EXPECT_EQ(resolved("batch:model+data heads:-"), (DimAxes{{"batch", {1, 0}}, {"heads", {}}}));
  EXPECT_EQ(resolved("batch,heads:data"), (DimAxes{{"batch", {0}}, {"heads", {0}}}));
  EXPECT_EQ(resolved("batch:data", Mesh::parse("data:1")), (DimAxes{{"batch", {0}}}));
  EXPECT_EQ(resolved(""), DimAxes{});
}

TEST(Resolve, OptionalRulesMayNameWhatIsAbsent) {
  EXPECT_EQ(resolved("experts:expert? batch:data"), (DimAxes{{"batch", {0}}}));
  EXPECT_EQ(resolved("batch:expert?"), DimAxes{});
  EXPECT_EQ(resolved("batch:pod+data?"), (DimAxes{{"batch", {0}}}));
  EXPECT_EQ(resolved("batch:-?"), (DimAxes{{"batch", {}}}));
}

TEST(ResolveErrors, UnknownDimOrAxis) {
  EXPECT_USER_ERROR(resolved("bach:data"),
                    "error: the layout names dim 'bach', which no tensor has\n"
                    "where: layout \"bach:data\", mesh data:2 model:4\n"
                    "fix:   did you mean 'batch'? the dims are: batch, heads, memory; end the rule with '?' if the dim "
                    "or axis may be absent");
  EXPECT_USER_ERROR(resolved("zzzzzzzzzz:data"), "fix:   the dims are: batch, heads, memory; end the rule");
  EXPECT_USER_ERROR(
      resolved("batch:dta"),
      "error: the layout names axis 'dta', which the mesh does not have\n"
      "where: layout \"batch:dta\", mesh data:2 model:4\n"
      "fix:   did you mean 'data'? the axes are: data, model; end the rule with '?' if the dim or axis may be absent");
  EXPECT_USER_ERROR(resolved("batch:data", Mesh()),
                    "where: layout \"batch:data\", mesh of one processor\nfix:   the axes are: none;");
}

TEST(ShardingOf, FollowsTheRules) {
  const Shape shape{{"batch", 16}, {"length", 3}, {"heads", 8}};
  const Sharding sharding =
      sharding_of(resolved("batch:data heads:model"), shape, kMesh, [] { return Subject{"tensor 'x'"}; });
  EXPECT_EQ(sharding.dims, (std::vector<Axes>{{0}, {}, {1}}));
  EXPECT_FALSE(sharding.is_partial());
  EXPECT_EQ(text_of(sharding, shape, kMesh), "{batch:data heads:model}");
  EXPECT_EQ(local_shape(shape, sharding, kMesh), (Shape{{"batch", 8}, {"length", 3}, {"heads", 2}}));
}

TEST(ShardingOfErrors, TwoDimsOnOneAxis) {
  const Shape shape{{"batch", 64}, {"heads", 16}, {"memory", 512}};
  const char* layout = "batch:data heads:model memory:model";
  EXPECT_USER_ERROR(sharding_of(resolved(layout), shape, kMesh,
                                [&] {
                                  return Subject{"tensor 'scores'", "einsum at examples/attention.cc:41", layout};
                                }),
                    "error: tensor 'scores' [batch=64 heads=16 memory=512] would be split twice over axis 'model': "
                    "dims heads and memory are both laid on it\n"
                    "where: einsum at examples/attention.cc:41, layout \"batch:data heads:model memory:model\", "
                    "mesh data:2 model:4\n"
                    "fix:   lay one of them on another axis (free: none), or rename one dim with rename()");
  EXPECT_USER_ERROR(
      check_one_dim_per_axis(resolved("heads,memory:model"), shape, kMesh, [] { return Subject{"einsum"}; }),
      "error: einsum [batch=64 heads=16 memory=512] would be split twice over axis 'model'",
      "where: mesh data:2 model:4\n", "(free: data)");
}

TEST(ShardingOfErrors, SizeDoesNotDivide) {
  EXPECT_USER_ERROR(sharding_of(resolved("heads:model"), {{"batch", 6}, {"heads", 10}}, kMesh,
                                [] {
                                  return Subject{"tensor 'h'", "dense at model.cc:7", "heads:model"};
                                }),
                    "error: tensor 'h' [batch=6 heads=10] cannot be split evenly: dim heads of size 10 over axis "
                    "'model' of 4 processors\n"
                    "where: dense at model.cc:7, layout \"heads:model\", mesh data:2 model:4\n"
                    "fix:   give heads a size of 8 or 12, or lay it over 2 or 5 processors");
  EXPECT_USER_ERROR(
      sharding_of(resolved("heads:data+model"), {{"heads", 7}}, kMesh, [] { return Subject{"tensor 'h'"}; }),
      "dim heads of size 7 over axis 'data+model' of 8 processors\n",
      "fix:   give heads a size of 8, or lay it over 7 processors");
  EXPECT_USER_ERROR(sharding_of(resolved("heads:data"), {{"heads", 1}}, kMesh, [] { return Subject{"tensor 'h'"}; }),
                    "fix:   give heads a size of 2");
}

}  // namespace
}  // namespace weft::resolve_test
