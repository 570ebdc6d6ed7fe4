// CompileOptions::check_finite names the first instruction that makes a number that is none.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft {
namespace {

struct LogOfInput {
  Graph g;
  Dim batch{"batch", 4};
  Tensor x = g.input("x", {batch});
  Tensor y = reduce_sum(log(x).named("logs")).named("total");
};

Values run_with(const LogOfInput& p, const std::vector<float>& numbers, bool check, const std::string& mesh = "") {
  Session session(Mesh::parse(mesh));
  Executable e = session.compile(p.g, Layout::parse(mesh.empty() ? "" : "batch:data"),
                                 {.fetch = {p.y, log(p.x)}, .check_finite = check});
  return e.run({{p.x, Array({p.batch}, numbers)}});
}

TEST(CheckFinite, PassesFiniteNumbers) {
  const LogOfInput p;
  EXPECT_NO_THROW(run_with(p, {1, 2, 3, 4}, true));
  EXPECT_NO_THROW(run_with(p, {1, 2, 0, 4}, false)) << "unless asked, nothing is looked at";
}

TEST(CheckFinite, NamesTheInstructionAndThePlace) {
  const LogOfInput p;
  EXPECT_RUN_ERROR(run_with(p, {1, 2, 0, 4}, true), "-inf at [batch=2], made of finite numbers", "finite_test.cc");
  EXPECT_RUN_ERROR(run_with(p, {1, -2, 3, 4}, true), "nan at [batch=1]");
  EXPECT_RUN_ERROR(run_with(p, {1, 2, 3, 0}, true, "data:2"), "-inf at [batch=3]", "data=1");
}

TEST(CheckFinite, SaysSoIfAnOperandIsNotFiniteAlready) {
  const LogOfInput p;
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_RUN_ERROR(run_with(p, {1, inf, 3, 4}, true), "inf at [batch=1]; its operand 'x' has inf at [batch=1]");
}

}  // namespace
}  // namespace weft
