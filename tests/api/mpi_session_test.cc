// Sessions whose processors are the ranks of mpirun: WEFT_TEST_WIRE=mpi mpirun -n … weft_test_api.
#include <gtest/gtest.h>

#include "base/str.h"
#include "network.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "weft/detail/session_access.h"

namespace weft::mpi_session_test {
namespace {

class MpiSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::ranks() == 0) GTEST_SKIP() << "WEFT_TEST_WIRE=mpi is not set";
  }

  // Meshes of as many processors as there are ranks.
  static std::vector<std::string> meshes() {
    std::vector<std::string> fitting;
    for (const char* mesh : {"", "data:2", "model:2", "data:4", "data:2 model:2", "data:2 model:3", "model:6"})
      if (Mesh::parse(mesh).size() == test::ranks()) fitting.push_back(mesh);
    return fitting;
  }
};

TEST_F(MpiSession, GivesTheBitsOfThreads) {
  for (const std::string& text : meshes())
    for (const char* layout : {"", "batch:data?", "hidden:model?", "batch:data? hidden:model?", "io:data?"}) {
      SCOPED_TRACE(str("mesh ", text, ", layout ", layout));
      const Mesh mesh = Mesh::parse(text);
      try {
        Session threads(mesh, wire::threads());
        const Trained want = train(threads, layout);
        Session ranks(mesh, wire::mpi());
        EXPECT_TRUE(train(ranks, layout) == want);
      } catch (const UserError&) {  // batch=8 over 6
        Session ranks(mesh, wire::mpi());
        EXPECT_THROW(train(ranks, layout), UserError);
      }
    }
}

TEST_F(MpiSession, PrintsInTheFirstRankOnly) {
  for (const std::string& text : meshes()) {
    int lines = 0;
    Session session(Mesh::parse(text), wire::mpi(), device::reference(),
                    {.print = [&](const std::string&) { ++lines; }});
    Graph g;
    const Tensor x = print(g.variable("x", {{"a", 12}}, init::ones()), "x");
    session.compile(g, Layout::parse("a:data?"), {.fetch = {x}}).run();
    EXPECT_EQ(lines, wire::process() == 0 ? 1 : 0);
  }
}

TEST_F(MpiSession, GathersLargeVariables) {
  const Dim a{"a", 12 * 43}, b{"b", 1026};
  Array values({a, b}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i));
  for (const std::string& text : meshes()) {
    Graph g;
    const Tensor big = g.variable("big", {a, b}, init::values(values));
    Session session(Mesh::parse(text), wire::mpi());
    Executable step = session.compile(g, Layout::parse("a:data? b:model?"), {.fetch = {big}});
    EXPECT_TRUE(same_bits(step.run()[big], values));
    session.set_value("big", values);
    EXPECT_TRUE(same_bits(session.value("big"), values));
  }
}

TEST_F(MpiSession, RefusesMeshesOfAnotherSize) {
  const int ranks = test::ranks();
  EXPECT_USER_ERROR(Session(Mesh::parse(str("p:", ranks + 1)), wire::mpi()),
                    str("mesh p:", ranks + 1, " has ", ranks + 1, " processors, but mpirun started ", ranks),
                    str("fix:   run `mpirun -n ", ranks + 1, " …`, or choose a mesh of ", ranks));
  Session session(Mesh::parse(str("p:", ranks)), wire::mpi());
  EXPECT_EQ(session.mesh().size(), ranks);
}

// What other processes look at may be anything.
TEST_F(MpiSession, EachNeedsItsOwnPartOfAnInput) {
  const int ranks = test::ranks();
  const std::int64_t each = 12 / ranks, begin = each * wire::process(), end = begin + each;
  Graph g;
  const Tensor x = g.input("x", {{"a", 12}, {"b", 2}});
  const Tensor sum = reduce_sum(x);
  Session session(Mesh::parse(str("data:", ranks)), wire::mpi());
  Executable step = session.compile(g, Layout::parse("a:data"), {.fetch = {sum}});
  EXPECT_EQ(step.local_range(x, "a"), std::pair(begin, end));
  EXPECT_EQ(step.local_range(x, "b"), std::pair(std::int64_t{0}, std::int64_t{2}));
  Array values({{"a", 12}, {"b", 2}}, DType::kF32);
  for (std::int64_t i = 0; i < 24; ++i)
    values.set(i, i / 2 >= begin && i / 2 < end ? static_cast<double>(i) : std::nan(""));
  PendingRun first = step.start({{x, values}});
  PendingRun second = step.start({{x, values}});
  EXPECT_EQ(first.get().scalar(sum), 276);
  EXPECT_TRUE(detail::any(session, wire::process() == ranks - 1));
  EXPECT_EQ(second.get().scalar(sum), 276);
}

// Sessions come and go, several at once, and executables share variables.
TEST_F(MpiSession, ManyAtOnce) {
  const Mesh mesh = Mesh::parse(str("p:", test::ranks()));
  std::vector<Trained> all;
  for (int i = 0; i < 3; ++i) {
    Session one(mesh, wire::mpi()), two(mesh, wire::mpi());
    all.push_back(train(one, ""));
    all.push_back(train(two, ""));
  }
  for (const Trained& each : all) EXPECT_TRUE(each == all[0]);
}

}  // namespace
}  // namespace weft::mpi_session_test
