// Mesh: its text, its numbering of processors and its refusals.
#include "weft/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/processor_list.h"
#include "weft/error.h"

namespace weft::mesh_test {
namespace {

using testing::ElementsAre;

TEST(Mesh, ParsesAxesBetweenAnySeparators) {
  const Mesh want({{"data", 2}, {"model", 4}});
  for (const char* text : {"data:2 model:4", "data:2,model:4", "data:2;model:4", " data:2 ,\n model:4 "})
    EXPECT_EQ(Mesh::parse(text), want) << text;
  EXPECT_EQ(want.text(), "data:2 model:4");
  EXPECT_EQ(want.size(), 8);
  EXPECT_EQ(want.size({1}), 4);
  EXPECT_EQ(want.find("model"), 1);
  EXPECT_EQ(want.find("pod"), -1);
}

TEST(Mesh, EmptyTextIsOneProcessor) {
  const Mesh mesh = Mesh::parse("");
  EXPECT_EQ(mesh, Mesh());
  EXPECT_EQ(mesh.size(), 1);
  EXPECT_EQ(mesh.text(), "");
  EXPECT_THAT(mesh.group(ProcessorId(0), {}), ElementsAre(ProcessorId(0)));
  EXPECT_EQ(mesh.coordinate(ProcessorId(0), {}), 0);
}

TEST(Mesh, NumbersProcessorsRowMajor) {
  const Mesh mesh = Mesh::parse("a:2 b:3 c:2");
  EXPECT_THAT(mesh.coordinates(ProcessorId(9)), ElementsAre(1, 1, 1));
  for (const ProcessorId p : mesh.processors()) EXPECT_EQ(mesh.processor(mesh.coordinates(p)), p);
  EXPECT_EQ(mesh.coordinate(ProcessorId(9), {1, 0}), 1 * 2 + 1);
  EXPECT_EQ(Mesh::parse("a:2 b:2").processors(), test::processors({0, 1, 2, 3}));
}

TEST(Mesh, GroupsAreOrderedByCoordinateAlongTheirAxes) {
  const Mesh mesh = Mesh::parse("a:2 b:3");
  EXPECT_EQ(mesh.group(ProcessorId(4), {1}), test::processors({3, 4, 5}));
  EXPECT_EQ(mesh.group(ProcessorId(4), {0}), test::processors({1, 4}));
  EXPECT_EQ(mesh.group(ProcessorId(4), {1, 0}), test::processors({0, 3, 1, 4, 2, 5}));
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{0, 1}, Axes{1, 0}})
    for (const ProcessorId p : mesh.processors()) {
      const std::vector<ProcessorId> group = mesh.group(p, axes);
      for (int rank = 0; rank < static_cast<int>(group.size()); ++rank)
        EXPECT_EQ(mesh.coordinate(group[static_cast<std::size_t>(rank)], axes), rank);
    }
}

TEST(MeshErrors, PointAtTheWord) {
  EXPECT_USER_ERROR(Mesh::parse("data:2,,model:4"),
                    "error: the mesh has an empty word\n"
                    "where: mesh \"data:2,,model:4\", column 8\n"
                    "fix:   put one comma, semicolon or space between words, as in \"data:2 model:4\"");
  EXPECT_USER_ERROR(Mesh::parse("data:2;"), "error: the mesh has an empty word\nwhere: mesh \"data:2;\", column 8\n");
  EXPECT_USER_ERROR(Mesh::parse(", data:2"), "where: mesh \", data:2\", column 1\n");
  EXPECT_USER_ERROR(Mesh::parse("data:2 model"),
                    "error: the mesh has a word without ':': 'model'\n"
                    "where: mesh \"data:2 model\", column 8\n"
                    "fix:   write axis:size, as in \"data:2 model:4\"");
  EXPECT_USER_ERROR(Mesh::parse("data:2.model:4"),
                    "error: the mesh has a word with two ':': 'data:2.model:4'\n"
                    "where: mesh \"data:2.model:4\", column 13\n"
                    "fix:   divide it with a space, comma or semicolon ('.' is part of a name, not a separator)");
  EXPECT_USER_ERROR(Mesh::parse("data:2 :4"),
                    "error: the mesh has a word that lacks its axis: ':4'\n"
                    "where: mesh \"data:2 :4\", column 8\n"
                    "fix:   write axis:size, as in \"data:2 model:4\"");
  EXPECT_USER_ERROR(Mesh::parse("data:"),
                    "error: the mesh has a word that lacks its size: 'data:'\n"
                    "where: mesh \"data:\", column 6\n");
}

TEST(MeshErrors, RefuseBadNamesAndSizes) {
  EXPECT_USER_ERROR(Mesh::parse("da-ta:2"),
                    "error: the name of axis 'da-ta' has the character '-'\n"
                    "where: mesh \"da-ta:2\", column 3\n"
                    "fix:   write the name with letters, digits, '_'");
  for (const char* size : {"0", "-2", "x", "2x", "2.5", "99999999999"})
    EXPECT_USER_ERROR(Mesh::parse(std::string("data:") + size),
                      std::string("error: the size of axis 'data' is '") + size + "'\nwhere: mesh \"data:" + size +
                          "\", column 6\nfix:   give a whole number of processors from 1 to 1000000");
  EXPECT_USER_ERROR(Mesh::parse("data:2 data:4"),
                    "error: the mesh has two axes called 'data'\n"
                    "where: mesh \"data:2 data:4\", column 8\n"
                    "fix:   give each axis a different name");
  EXPECT_USER_ERROR(Mesh::parse("data:2000 model:2000"),
                    "error: the mesh has 4000000 processors up to axis 'model'\n"
                    "where: mesh \"data:2000 model:2000\", column 17\n"
                    "fix:   a mesh may have at most 1000000 processors: take smaller axes");
  EXPECT_USER_ERROR(Mesh({{"a", 2}, {"a", 3}}), "the mesh has two axes called 'a'", "mesh \"a:2 a:3\", column 5");
  EXPECT_USER_ERROR(Mesh({{"a b", 2}}), "the mesh has a word without ':': 'a'");
}

}  // namespace
}  // namespace weft::mesh_test
