#include "lines.h"

#include <fstream>
#include <iostream>

#include "weft/error.h"

namespace weft::tools {

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw UserError({.what = "cannot read '" + path + "'",
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

void write_text(const std::string& path, const std::string& text, const std::string& option) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return;
  throw RunError({.what = "cannot write '" + path + "'",
                  .where = option + " " + path,
                  .fix = "see that the folder exists and that you may write there"});
}

}  // namespace weft::tools
