// CompileOptions::check_finite names the first instruction that makes a number that is none.
#include <gtest/gtest.h>

#include <fstream>

#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::finite_test {
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

// The program of docs/debugging.md, and what the page says that it prints.
TEST(CheckFinite, IsAsTheDocsShowIt) {
  Graph g;
  const Dim batch{"batch", 4};
  const Tensor x = g.input("x", {batch});
  const Tensor total = reduce_sum(log(x)).named("total");
  Session session(Mesh::parse("data:2"));
  Executable step = session.compile(g, Layout::parse("batch:data"), {.fetch = {total}, .check_finite = true});
  std::ifstream file(WEFT_TEST_DATA "/../docs/debugging.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  try {
    step.run({{x, Array({batch}, std::vector<float>{1, 2, 3, 0})}});
    FAIL() << "the log of 0 was not found";
  } catch (const RunError& error) {
    const std::string where = error.text().where.text;
    EXPECT_NE(page.find("error: " + error.text().what + "\n"), std::string::npos) << error.what();
    EXPECT_NE(page.find("where: " + where.substr(0, where.find(", ") + 2)), std::string::npos) << error.what();
    EXPECT_NE(page.find("fix:   " + error.text().fix + "\n"), std::string::npos) << error.what();
    EXPECT_NE(page.find("code:  run.not-finite\n"), std::string::npos);
    EXPECT_EQ(error.text().code, "run.not-finite");
  }
}

TEST(CheckFinite, SaysSoIfAnOperandIsNotFiniteAlready) {
  const LogOfInput p;
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_RUN_ERROR(run_with(p, {1, inf, 3, 4}, true), "inf at [batch=1]; its operand 'x' has inf at [batch=1]");
}

}  // namespace
}  // namespace weft::finite_test
