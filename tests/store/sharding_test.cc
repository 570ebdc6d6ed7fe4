// Which dim a storage layout splits, by its rules alone.
#include <gtest/gtest.h>

#include "base/str.h"
#include "partition/store.h"
#include "support/expect_error.h"

namespace weft::sharding_test {
namespace {

std::string stored(const std::string& rules, const Shape& shape, const std::string& layout,
                   const std::string& mesh_text = "data:2 model:3 pod:4") {
  const Mesh mesh = Mesh::parse(mesh_text);
  const SubjectMaker subject = [] { return Subject{"w"}; };
  const Sharding compute = sharding_of(resolve(Layout::parse(layout), mesh, shape.names()), shape, mesh, subject);
  const DimAxes axes = resolve(Store::parse(rules), mesh, shape.names());
  return text_of(stored_sharding(axes, shape, compute, mesh, subject), shape, mesh);
}

const Shape kWeight{{"a", 12}, {"b", 24}, {"c", 5}};

TEST(StoredSharding, StarTakesTheFirstDimWhoseShardDivides) {
  EXPECT_EQ(stored("*:data", kWeight, ""), "{a:data}");
  EXPECT_EQ(stored("*:data", {{"c", 5}, {"b", 24}}, ""), "{b:data}");
  EXPECT_EQ(stored("*:pod+data", kWeight, ""), "{b:pod+data}");  // 12 does not divide by 8
  EXPECT_EQ(stored("*:data+pod", kWeight, ""), "{b:data+pod}");
  EXPECT_EQ(stored("*:data", {{"c", 5}}, ""), "{}");
  EXPECT_EQ(stored("*:data", {}, ""), "{}");
}

TEST(StoredSharding, TheAxisIsMinorToTheLayouts) {
  EXPECT_EQ(stored("*:data", kWeight, "a:model"), "{a:model+data}");
  EXPECT_EQ(stored("*:data", kWeight, "a:pod"), "{a:pod b:data}");  // the shard of 3 does not divide
  EXPECT_EQ(stored("b:data", kWeight, "b:model+pod"), "{b:model+pod+data}");
}

TEST(StoredSharding, AnAxisInUseAddsNothing) {
  EXPECT_EQ(stored("*:data", kWeight, "b:data"), "{b:data}");
  EXPECT_EQ(stored("*:pod+data", kWeight, "b:data"), "{a:pod b:data}");
  EXPECT_EQ(stored("a:data", kWeight, "b:data"), "{b:data}");
}

TEST(StoredSharding, RulesByNameComeFirst) {
  EXPECT_EQ(stored("*:data b:data", kWeight, ""), "{b:data}");
  EXPECT_EQ(stored("*:data b:pod", kWeight, ""), "{a:data b:pod}");
  EXPECT_EQ(stored("b:data", {{"b", 24}, {"c", 5}}, ""), "{b:data}");
  EXPECT_EQ(stored("b:data c:model?", {{"b", 24}}, ""), "{b:data}");
  EXPECT_EQ(stored("*:data a:-", kWeight, ""), "{b:data}");
}

TEST(StoredSharding, AxesThatMayBeAbsent) {
  EXPECT_EQ(stored("*:data+rack?", kWeight, ""), "{a:data}");
  EXPECT_EQ(stored("*:rack?", kWeight, ""), "{}");
  EXPECT_EQ(stored("*:data", kWeight, "", "data:1"), "{a:data}");
}

TEST(StoredShardingErrors, NamedDimsMustDivideAndHaveAxesOfTheirOwn) {
  EXPECT_USER_ERROR(stored("c:data", kWeight, ""), "dim c of size 5 over axis 'data' of 2 processors");
  EXPECT_USER_ERROR(stored("a:data", kWeight, "a:pod"), "dim a of size 12 over axis 'pod+data' of 8 processors");
  EXPECT_USER_ERROR(stored("a,b:data", kWeight, ""), "would be split twice over axis 'data': dims a and b");
}

}  // namespace
}  // namespace weft::sharding_test
