#include "lines.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "weft/error.h"

namespace weft::tools {

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw UserError({.code = "command.unreadable-file",
                       .what = "cannot read '" + path + "'",
                       .where = "command line",
                       .fix = "give the path of a text file, or - for standard input"});
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

StandardInputFile::StandardInputFile(const std::string& like) {
  const std::filesystem::path pattern = std::filesystem::temp_directory_path() / "weft-stdin-XXXXXX";
  const std::string ending = std::filesystem::path(like).extension();
  path_ = pattern.string() + ending;
  const int descriptor = mkstemps(path_.data(), static_cast<int>(ending.size()));
  if (descriptor < 0) {
    path_.clear();
    throw RunError({.code = "command.no-temporary-file",
                    .what = "cannot make a file for standard input: " + std::string(std::strerror(errno)),
                    .where = pattern.parent_path().string(),
                    .fix = "set TMPDIR to a folder that you may write to"});
  }
  close(descriptor);
  std::ostringstream text;
  text << std::cin.rdbuf();
  try {
    write_text(path_, text.str(), "--data -, copied to");
  } catch (...) {
    std::remove(path_.c_str());
    throw;
  }
}

StandardInputFile::~StandardInputFile() { std::remove(path_.c_str()); }

void write_text(const std::string& path, const std::string& text, const std::string& option) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return;
  throw RunError({.code = "command.cannot-write-file",
                  .what = "cannot write '" + path + "'",
                  .where = option + " " + path,
                  .fix = "see that the folder exists and that you may write there"});
}

bool flush_output() {
  if (std::cout.flush()) return true;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0) return false;
  throw RunError({.code = "command.cannot-print",
                  .what = "what the command prints cannot be written",
                  .where = "standard output",
                  .fix = "see that the file it goes to may be written and that its disk has room"});
}

}  // namespace weft::tools
