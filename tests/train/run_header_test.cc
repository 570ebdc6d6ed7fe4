// What a run says before it begins.
#include "train/run_header.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "runtime/cuda/open.h"
#include "small_run.h"

namespace weft::train::run_header_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string header(const SmallRun& run, const std::string& assignments, int cores) {
  const Config config = completed(run.with(assignments));
  return run_header(config, plan(config), cores, {.total = 8LL << 30, .available = 4LL << 30});
}

TEST(RunHeader, SaysWhatIsTrainedOnWhat) {
  const SmallRun run("header");
  const std::string text = header(run, "mesh.mesh=data:2,mesh.layout=batch:data,batch.microbatches=2", 2);
  EXPECT_THAT(text, ::testing::StartsWith("small: 12.9 k parameters, adam, 12 steps\n"));
  EXPECT_THAT(text, HasSubstr("\n  data        " + run.text_path() + " (5.86 KiB)\n"));
  EXPECT_THAT(text, HasSubstr("\n  step        8 sequences of 16 targets, 128 tokens, in 2 microbatches\n"));
  EXPECT_THAT(text, HasSubstr("\n  vocabulary  bytes, 259 tokens\n"));
  EXPECT_THAT(text, HasSubstr("\n  mesh        data:2, 2 processors on wire threads\n"));
  EXPECT_THAT(text, HasSubstr("\n  layout      batch:data\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\n  memory      2 x (variables "), HasSubstr(" of 8 GiB")));
  EXPECT_THAT(text, Not(HasSubstr("warning:")));
  EXPECT_THAT(header(run, "", 2),
              HasSubstr("\n  mesh        1 processor on wire threads\n  layout      none: nothing is split\n"));
}

TEST(RunHeader, WarnsOfProcessorsThatDoNotHelp) {
  const SmallRun run("header_warnings");
  const std::string text = header(run, "mesh.mesh=data:2 model:2,mesh.layout=batch:data", 2);
  EXPECT_THAT(text, HasSubstr("warning: 4 processors share 2 cores and take turns;\n"));
  EXPECT_THAT(text, HasSubstr("a mesh of at most 2 processors is faster here"));
  EXPECT_THAT(text, HasSubstr("warning: axis 'model' splits nothing: its 2 processors do the same work;\n"));
  EXPECT_THAT(text, HasSubstr("lay a dim on it in mesh.layout, as \"heads,d_ff,vocab:model\", or leave it out"));
  EXPECT_THAT(header(run, "mesh.mesh=data:2", 2), HasSubstr("in mesh.layout, as \"batch:data\", or leave it out"));
  // It does what it says.
  EXPECT_THAT(header(run, "mesh.mesh=data:2 model:2,mesh.layout=batch:data heads,d_ff,vocab:model", 4),
              Not(HasSubstr("warning:")));
  EXPECT_THAT(text, Not(HasSubstr("axis 'data'")));
  // An axis that splits the embedding alone leaves most of the work to everyone.
  EXPECT_THAT(header(run, "mesh.mesh=model:2,mesh.layout=max_length:model", 2),
              HasSubstr(" % of the flops alike;\n           weft train --dry-run says which"));
}

TEST(RunHeader, WarnsIfMemoryIsShort) {
  const SmallRun run("header_memory");
  const Config config = completed(run.with(""));
  EXPECT_THAT(run_header(config, plan(config), 2, {.total = 8LL << 30, .available = 1}),
              HasSubstr("\n  warning: only 1 B are available now; the run may be slow or be killed"));
}

// The CUDA engine plans without a card.
TEST(RunHeader, SaysWhatBf16WouldSave) {
  if (!cuda_library().engine) GTEST_SKIP() << cuda_library().found;
  const SmallRun run("header_bf16");
  const Machine machine = Machine::uniform(1e12, 1e12);
  const auto said = [&](const std::string& assignments) {
    const Config config = completed(run.with(assignments));
    return saved_by_bf16(config, plan(config, {.machine = machine}), machine);
  };
  EXPECT_THAT(said("mesh.device=cuda"),
              AllOf(::testing::StartsWith("note: this run computes in f32; with --set model.activations=bf16 the arena "
                                          "would be "),
                    HasSubstr(" instead of "), ::testing::EndsWith(" on each processor")));
  EXPECT_EQ(said("mesh.device=cuda,model.activations=bf16"), "");
  EXPECT_EQ(said("mesh.device=cpu"), "");
}

}  // namespace
}  // namespace weft::train::run_header_test
