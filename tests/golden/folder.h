// What all golden suites share: a folder of data, and a test on a mesh of the wire that WEFT_TEST_WIRE names.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/str.h"
#include "support/processes.h"
#include "support/safetensors.h"
#include "weft/session.h"

namespace weft::test {

// A folder of golden data: case.json and <name>.safetensors.
struct GoldenFolder {
  explicit GoldenFolder(const std::string& name)
      : about(nlohmann::json::parse(std::ifstream(str(WEFT_TEST_DATA, "/golden/", name, "/case.json")))),
        data(str(WEFT_TEST_DATA, "/golden/", name, "/", name, ".safetensors")) {}

  // The names of config.<group>.
  std::vector<std::string> names(const std::string& group) const {
    std::vector<std::string> names;
    for (const auto& [name, options] : about.at("config").at(group).items()) names.push_back(name);
    return names;
  }

  nlohmann::json about;
  Safetensors data;
};

// A mesh and a layout, with a name for the test.
struct Where {
  std::string name, mesh, layout;
};
inline void PrintTo(const Where& where, std::ostream* out) { *out << where.mesh << " | " << where.layout; }

// Skipped where mpirun started another number of ranks than the mesh has processors.
class GoldenTest : public ::testing::Test {
 protected:
  explicit GoldenTest(const Where& where) : mesh_(Mesh::parse(where.mesh)), layout_(Layout::parse(where.layout)) {}
  void SetUp() override {
    if (!test::can_have(mesh_)) GTEST_SKIP() << "needs " << mesh_.size() << " ranks";
  }
  Session open() const { return test::open_session(mesh_, {}); }

  const Mesh mesh_;
  const Layout layout_;
};

// Of one place, and of a case in a place.
class GoldenPlaceTest : public GoldenTest, public ::testing::WithParamInterface<Where> {
 protected:
  GoldenPlaceTest() : GoldenTest(GetParam()) {}
};
class GoldenCaseTest : public GoldenTest, public ::testing::WithParamInterface<std::tuple<std::string, Where>> {
 protected:
  GoldenCaseTest() : GoldenTest(std::get<1>(GetParam())) {}
  const std::string name_ = std::get<0>(GetParam());
};

inline std::string place_name(const ::testing::TestParamInfo<Where>& info) { return info.param.name; }
inline std::string case_name(const ::testing::TestParamInfo<std::tuple<std::string, Where>>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
}

}  // namespace weft::test
