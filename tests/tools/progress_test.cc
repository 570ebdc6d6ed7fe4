// The progress line and the log of a run as a terminal shows them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "support/command.h"

namespace weft::progress_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// All that `line` writes to a terminal of that many columns.
std::string on_terminal(const std::string& line, unsigned short columns) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_GE(terminal, 0);
  EXPECT_EQ(grantpt(terminal) + unlockpt(terminal), 0);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  const int child_end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  EXPECT_EQ(ioctl(child_end, TIOCSWINSZ, &size), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (const int descriptor : {0, 1, 2}) dup2(child_end, descriptor);
    setenv("TERM", "xterm", 1);
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  close(child_end);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(terminal, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << text;
  return text;
}

// What is drawn between returns of the carriage and ends of line, without "erase to the end of the line".
std::vector<std::string> drawn(const std::string& text) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' || text[i] == '\n') lines.emplace_back();
    else if (text.compare(i, 3, "\33[K") == 0) i += 2;
    else lines.back() += text[i];
  }
  std::erase(lines, "");
  return lines;
}

class ProgressOnTerminals : public ::testing::Test {
 protected:
  ProgressOnTerminals() : folder_(::testing::TempDir() + "/weft_progress_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream words(folder_ + "/words.txt");
    for (int i = 0; i < 200; ++i) words << "one two three " << i % 7 << "\n";
  }
  ~ProgressOnTerminals() override { std::filesystem::remove_all(folder_); }

  // A run of a second or so, under a name so short that only data can be wide.
  std::string train(const std::string& more = "") const {
    std::ofstream(folder_ + "/lm.toml") << "name = \"lm\"\n[model]\nd_model = 64\nheads = 2\nd_kv = 32\nd_ff = 256\n"
                                           "layers = 2\nvocab_divisor = 4\npositions = \"rotary\"\n"
                                           "[data]\nformat = \"text\"\ntrain = \"words.txt\"\n"
                                           "[batch]\nsequences = 8\nlength = 64\n[optimizer]\nname = \"adam\"\n"
                                           "[run]\nsteps = 60\nlog_every = 10\n";
    return "cd " + folder_ + " && rm -rf run && " + WEFT_COMMAND + " train lm.toml --out run " + more;
  }

  std::string folder_;
};

TEST_F(ProgressOnTerminals, NeverWrap) {
  for (const unsigned short columns : {120, 80, 60, 40}) {
    SCOPED_TRACE(columns);
    const std::string text = on_terminal(train(), columns);
    int bars = 0, steps = 0;
    for (const std::string& line : drawn(text)) {
      const bool is_step = line.find("step ") == 0, is_bar = line.find("of 60") != std::string::npos && !is_step;
      steps += is_step;
      bars += is_bar;
      if (is_step || is_bar) {
        EXPECT_LE(line.size(), columns) << line;
        EXPECT_THAT(line, HasSubstr("loss "));
      }
    }
    EXPECT_GE(steps, 7) << text;  // logged, or drawn where there is no room for a bar
    if (columns >= 80) {
      EXPECT_GE(bars, 1) << text;
    }
  }
}

TEST_F(ProgressOnTerminals, AreNotInFiles) {
  const test::Ran ran = test::ran(train() + " 2>&1");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output, Not(HasSubstr("\r")));
  EXPECT_THAT(ran.output, Not(HasSubstr("\33")));
  EXPECT_THAT(ran.output, HasSubstr("step 60 of 60  loss "));
}

}  // namespace
}  // namespace weft::progress_test
