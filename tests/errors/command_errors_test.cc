// What a user reads on standard error when the command line itself is wrong; all of it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/str.h"
#include "errors/lines.h"

namespace weft::command_errors_test {
namespace {

using test::lines;

struct Refusal {
  int code = -1;
  std::string text;
  bool operator==(const Refusal&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Refusal& r) {
  return out << "exit code " << r.code << ":\n" << r.text;
}

// What `weft <arguments>` says on standard error, and its exit code.
Refusal weft(const std::string& arguments) {
  Refusal refusal;
  FILE* pipe = popen(str(WEFT_COMMAND, " ", arguments, " 2>&1 >/dev/null").c_str(), "r");
  std::array<char, 256> part;
  while (std::fgets(part.data(), part.size(), pipe)) refusal.text += part.data();
  const int status = pclose(pipe);
  refusal.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return refusal;
}

Refusal refused(const std::string& code, const std::string& text) { return {2, str(text, "\ncode:  ", code, "\n")}; }

TEST(CommandErrors, UnknownWords) {
  EXPECT_EQ(weft("explian"),
            refused("command.unknown-word",
                    lines("'weft' has no command 'explian'", "command line",
                          "did you mean 'explain'? there are: train, eval, generate, translate, explain, plan, simulate, "
                          "calibrate, run, bench, "
                          "trace-summary, vocab, export, import, doctor; see weft --help")));
  EXPECT_EQ(weft("bench"),
            refused("command.missing-command", lines("'weft bench' needs a command", "command line",
                                                     "give one of: lm, decode, compile, collectives; see weft bench --help")));
  const Refusal option = weft("explain two_layer --mehs p:2");
  EXPECT_EQ(option.code, 2);
  EXPECT_NE(option.text.find(
                "error: 'weft explain' has no option '--mehs'\nwhere: command line\nfix:   did you mean '--mesh'? "),
            std::string::npos)
      << option.text;
}

TEST(CommandErrors, MissingWords) {
  EXPECT_EQ(weft("explain"),
            refused("command.bad-arguments", lines("MODEL is required", "command line", "see weft explain --help")));
}

TEST(CommandErrors, SizesAndCounts) {
  EXPECT_EQ(weft("bench collectives --bytes 4KiB,1XB"),
            refused("command.bad-bytes", lines("'1XB' is no number of bytes", "--bytes 4KiB,1XB",
                                               "write sizes like 4096, 64KiB, 16MiB or 1GiB, with commas between")));
  EXPECT_EQ(weft("bench collectives --processors 2,x"),
            refused("command.bad-whole-number", lines("'x' is not a whole number", "--processors 2,x",
                                                      "write whole numbers with commas between, like 2,8")));
}

TEST(CommandErrors, StorageLayouts) {
  EXPECT_EQ(weft("explain mlp --store-level 2"),
            refused("command.level-without-store",
                    lines("--store-level 2 says nothing without --store", "command line",
                          "add --store \"*:AXIS\", with the axis that is to split the variables, or leave it out")));
  EXPECT_EQ(weft("explain mlp --store '*:data' --store-level 4"),
            refused("store.unknown-level", lines("there is no storage level 4", "storage layout \"*:data\"",
                                                 "give 1 (optimizer state), 2 (and gradients) or 3 (and parameters)")));
  EXPECT_EQ(weft("explain mlp --store '*:dtaa'"),
            refused("store.unknown-axis", lines("the storage layout names axis 'dtaa', which the mesh does not have",
                                                "storage layout \"*:dtaa\", mesh data:2 model:2",
                                                "did you mean 'data'? the axes are: data, model; end the rule with '?' "
                                                "if the dim or axis may be absent")));
}

TEST(CommandErrors, UnknownPass) {
  const Refusal dump = weft("explain two_layer --dump flod");
  EXPECT_EQ(dump.code, 2);
  EXPECT_NE(dump.text.find(
                "error: the compiler has no pass 'flod'\nwhere: --dump flod\nfix:   did you mean 'fold'? there are: "),
            std::string::npos)
      << dump.text;
}

TEST(CommandErrors, RunsWithoutTheirProgramOrInputs) {
  EXPECT_EQ(weft("run"),
            refused("command.bad-arguments", lines("PROGRAM is required", "command line", "see weft run --help")));
  EXPECT_EQ(
      weft("run no_such.weft"),
      refused("program.unreadable-file", lines("cannot read the program 'no_such.weft'", "no_such.weft",
                                               "give the path of a text that weft explain --program has written")));
}

TEST(CommandErrors, Planner) {
  EXPECT_EQ(weft("plan paper/lm-0.14b --machine h200x8 --memory much"),
            refused("plan.bad-memory", lines("'much' is not a number of bytes", "--memory much",
                                             "write the memory of a processor as in 16GiB")));
  EXPECT_EQ(weft("train paper/lm-0.14b --processors 4"),
            refused("command.processors-without-auto",
                    lines("--processors and --machine are for a layout that is searched", "command line",
                          "add --layout auto, or leave them out")));
}

}  // namespace
}  // namespace weft::command_errors_test
