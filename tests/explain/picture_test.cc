// Pictures of shards on meshes of no, one, two, three and four axes.
#include <gtest/gtest.h>

#include "weft/explain.h"

namespace weft::picture_test {
namespace {

// A tensor [rows of the given dims] placed on a mesh: axes per dim.
Explanation::Placed placed(const Shape& whole, const std::vector<Axes>& split, const Mesh& mesh) {
  std::vector<Dim> dims = whole.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i].size /= mesh.size(split[i]);
  Explanation::Placed t{.name = "w",
                        .use = "variable",
                        .dtype = DType::kF32,
                        .whole = whole,
                        .shard = Shape(dims),
                        .split = split,
                        .partial = {},
                        .bytes = 0};
  t.bytes = 4 * t.shard.elements();
  return t;
}

// Without the first line, which is the title.
std::string grid(const Explanation::Placed& t, const Mesh& mesh) {
  const std::string text = picture(t, mesh);
  return "\n" + text.substr(text.find('\n') + 1);
}

TEST(ExplainPicture, OneProcessorHoldsAll) {
  const Mesh mesh;
  EXPECT_EQ(picture(placed({{"a", 4}}, {{}}, mesh), mesh),
            "  variable w f32 [a=4]: each processor holds [a=4], 16 B\n"
            "     +-----+\n"
            "     | all |\n"
            "     +-----+\n");
}

TEST(ExplainPicture, OneAxisGoesAcross) {
  const Mesh mesh = Mesh::parse("all:2");
  EXPECT_EQ(grid(placed({{"a", 4}, {"b", 3}}, {{0}, {}}, mesh), mesh), R"(
       all=0    all=1
     +--------+--------+
     | a 0..1 | a 2..3 |
     +--------+--------+
)");
}

TEST(ExplainPicture, TwoAxesMakeAGrid) {
  const Mesh mesh = Mesh::parse("data:2 model:2");
  EXPECT_EQ(grid(placed({{"a", 4}, {"b", 8}}, {{0}, {1}}, mesh), mesh), R"(
             model=0   model=1
           +---------+---------+
    data=0 | a 0..1  | a 0..1  |
           | b 0..3  | b 4..7  |
           +---------+---------+
    data=1 | a 2..3  | a 2..3  |
           | b 0..3  | b 4..7  |
           +---------+---------+
)");
}

TEST(ExplainPicture, AnAxisThatChangesNothingIsDrawnOnce) {
  const Mesh mesh = Mesh::parse("data:16 model:2");
  const std::string text = picture(placed({{"a", 4}}, {{1}}, mesh), mesh);
  EXPECT_NE(text.find("alike along data"), std::string::npos);
  EXPECT_EQ(grid(placed({{"a", 4}}, {{1}}, mesh), mesh), R"(
             model=0   model=1
           +---------+---------+
    data=* | a 0..1  | a 2..3  |
           +---------+---------+
)");
}

TEST(ExplainPicture, AProductOfAxesCountsMajorToMinor) {
  const Mesh mesh = Mesh::parse("x:2 y:2");
  EXPECT_EQ(grid(placed({{"a", 8}}, {{1, 0}}, mesh), mesh), R"(
          y=0      y=1
        +--------+--------+
    x=0 | a 0..1 | a 4..5 |
        +--------+--------+
    x=1 | a 2..3 | a 6..7 |
        +--------+--------+
)");
}

TEST(ExplainPicture, ThreeAxesAreGridsBelowEachOther) {
  const Mesh mesh = Mesh::parse("x:2 y:1 z:2");
  EXPECT_EQ(grid(placed({{"a", 2}, {"b", 2}}, {{0}, {2}}, mesh), mesh), R"(
  x=0
          z=0      z=1
        +--------+--------+
    y=* | a 0..0 | a 0..0 |
        | b 0..0 | b 1..1 |
        +--------+--------+
  x=1
          z=0      z=1
        +--------+--------+
    y=* | a 1..1 | a 1..1 |
        | b 0..0 | b 1..1 |
        +--------+--------+
)");
}

TEST(ExplainPicture, LongAxesAreCutShort) {
  const Mesh mesh = Mesh::parse("p:5 x:16 y:32");
  const std::string text = grid(placed({{"a", 16}, {"b", 32}, {"c", 5}}, {{1}, {2}, {0}}, mesh), mesh);
  for (const char* piece : {"  p=0\n", "  p=1\n", "  …\n  p=4\n", "x=4  | a 4..4", "    …    | …", "x=15 | a 15..15",
                            "y=3        …   y=31", "b 31..31"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " in\n" << text;
  EXPECT_EQ(text.find("p=2"), std::string::npos);
  EXPECT_EQ(text.find("x=5 "), std::string::npos);
  EXPECT_EQ(text.find("y=4 "), std::string::npos);
}

TEST(ExplainPicture, PartsOfASumAreNamed) {
  const Mesh mesh = Mesh::parse("all:2");
  Explanation::Placed t = placed({{"a", 4}}, {{}}, mesh);
  t.partial = {0};
  EXPECT_EQ(grid(t, mesh), R"(
       all=0         all=1
     +-------------+-------------+
     | part 0 of 2 | part 1 of 2 |
     +-------------+-------------+
)");
}

}  // namespace
}  // namespace weft::picture_test
