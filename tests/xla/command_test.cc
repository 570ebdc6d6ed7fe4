// weft train, explain and doctor with a plugin.
#include <gmock/gmock.h>

#include "support/command.h"
#include "xla/fake.h"

namespace weft::xla_test {
namespace {

using test::Ran;
using ::testing::HasSubstr;

class XlaCommand : public FakeTest {
 protected:
  void SetUp() override {
    FakeTest::SetUp();
    std::ofstream text(file("words.txt"));
    for (int i = 0; i < 60; ++i) text << "one two three " << i % 7 << "\n";
    std::ofstream(file("lm.toml")) << "name = \"lm\"\n[model]\nkind = \"lm\"\nd_model = 16\nheads = 2\nd_kv = 8\n"
                                      "d_ff = 32\nlayers = 1\n[data]\ntrain = [\""
                                   << file("words.txt").string()
                                   << "\"]\n[batch]\nsequences = 4\nlength = 16\n[mesh]\nmesh = \"data:2\"\nlayout = "
                                      "\"batch:data\"\n[run]\nsteps = 2\n";
  }
  Ran weft(const std::string& words) const { return test::ran(std::string(WEFT_COMMAND) + " " + words + " 2>&1"); }
  std::string train(const std::string& more) const {
    return "train " + file("lm.toml").string() + " --device xla --plugin " + plugin + " --out " + file("out").string() +
           " " + more;
  }
};

TEST_F(XlaCommand, Trains) {
  const Ran done = weft(train(""));
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("done at step 2"));
}

TEST_F(XlaCommand, CompilesAheadOfTime) {
  const Ran done = weft(train("--dry-run --topology fake:2"));
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("ahead of time for fake:2"));
  EXPECT_THAT(weft(train("--dry-run --topology fake:2 --json")).output, HasSubstr("\"fits\": true"));
  const Ran refused = weft(train("--topology fake:2"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("--topology fake:2 names devices that are not here to train on"));
  EXPECT_THAT(refused.output,
              HasSubstr("add --dry-run, which compiles for them and runs nothing, or leave --topology out"));
}

TEST_F(XlaCommand, SaysWhenAStepDoesNotFit) {
  tell("out-of-memory");
  const Ran done = weft(train("--dry-run --topology fake:2"));
  EXPECT_EQ(done.code, 2) << done.output;
  EXPECT_THAT(done.output, HasSubstr("the step does not fit into the memory of topology fake:2: 24.00G exceeds"));
  EXPECT_THAT(done.output,
              HasSubstr("use a smaller batch, microbatches, a storage layout, or a topology with more devices"));
}

TEST_F(XlaCommand, NamesTheSettingOfAPluginThatCannotBeUsed) {
  tell("minor=80");
  const Ran done = weft(train(""));
  EXPECT_EQ(done.code, 2) << done.output;
  EXPECT_THAT(done.output, HasSubstr("mesh.device"));
}

TEST_F(XlaCommand, DoctorListsPlugins) {
  EXPECT_THAT(weft("doctor --plugin " + plugin).output, HasSubstr("StableHLO 1.13.3; 1 device fake"));
}

}  // namespace
}  // namespace weft::xla_test
