// Training on the ranks of mpirun: each reads its own rows of a batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_commands.h"

namespace weft::train::ranks_test {
namespace {

using test::Ran;

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(WEFT_MPIRUN).empty()) GTEST_SKIP() << "there is no mpirun";
  }
};

// Files of encoded text.
int cached_in(const std::string& folder) {
  int count = 0;
  if (std::filesystem::exists(folder + "/tokens"))
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/tokens"))
      count += entry.path().extension() == ".tokens";
  return count;
}

TEST_F(Ranks, MakeTheLossesOfThreads) {
  for (const char* data : {"data.format=text", "data.format=lines", "data.format=lines,data.pack=false"}) {
    SCOPED_TRACE(data);
    const SmallRun run("ranks", std::string(data) +
                                    ",run.steps=6,run.eval_every=3,mesh.mesh=a:2 b:2,"
                                    "mesh.layout=batch:a heads,d_ff,vocab:b");
    const std::string dev = " --set data.dev=" + run.text_path();
    const Ran threads = test::ran(train_command(run, "threads", dev));
    const Ran ranks = test::mpirun(4, train_command(run, "ranks", "--set mesh.wire=mpi" + dev));
    EXPECT_EQ(threads.code, 0) << threads.output;
    EXPECT_EQ(ranks.code, 0) << ranks.output;
    EXPECT_EQ(losses_in(run.folder + "/threads").size(), 6u);
    EXPECT_EQ(losses_in(run.folder + "/ranks"), losses_in(run.folder + "/threads"));
    const auto dev_of = [](const std::string& output) {  // without the time it took
      const std::size_t begin = output.find("dev at step 6");
      return output.substr(begin, output.find('%', begin) - begin);
    };
    EXPECT_THAT(dev_of(threads.output), testing::StartsWith("dev at step 6"));
    EXPECT_EQ(dev_of(ranks.output), dev_of(threads.output));
    EXPECT_EQ(cached_in(run.folder + "/ranks"), 1) << "the text was encoded once";
    EXPECT_EQ(cached_in(run.folder + "/threads"), 0);
  }
}

// Only the last of four ranks reads the token that is none, and all of them end at once with what it says.
TEST_F(Ranks, TellOfDataThatOnlyOneOfThemReads) {
  const SmallRun run("ranks_data", "run.steps=3,mesh.mesh=a:4,mesh.layout=batch:a,mesh.wire=mpi,data.shuffle=false");
  std::string ids(2 * 8 * 16 * 2, '\1');  // two batches of 8 rows, 257 each
  ids.replace(ids.size() - 2, 2, "\xff\xff");
  const std::string path = run.folder + "/tokens.u16";
  std::ofstream(path, std::ios::binary) << ids;
  const Ran ranks = test::mpirun(4, train_command(run, "out", "--set data.format=tokens --set data.train=" + path));
  EXPECT_NE(ranks.code, 0);
  const std::string what = "error: token 255 is 65535, but ids are 0 to ";
  const std::size_t at = ranks.output.find(what);
  ASSERT_NE(at, std::string::npos) << ranks.output;
  EXPECT_EQ(ranks.output.find(what, at + 1), std::string::npos) << "said once\n" << ranks.output;
}

}  // namespace
}  // namespace weft::train::ranks_test
