// TextFile: a text file in memory, checked to be UTF-8, and its lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/file_bytes.h"

namespace weft::data {

class TextFile {
 public:
  // UserError if the file cannot be opened, is empty or not UTF-8.
  explicit TextFile(const std::string& path);
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }                        // line ends are \n, no byte-order mark
  const std::vector<std::string_view>& lines() const { return lines_; }  // without their ends
  std::string place(std::size_t line) const;                             // "file:1" of lines()[0]

 private:
  std::string path_, text_;
  std::vector<std::string_view> lines_;
};

// The first byte that is not part of a valid character; npos if there is none.
std::size_t first_invalid_utf8(std::string_view text);

bool is_blank(std::string_view line);

// The two sides of a line of a TSV file. UserError unless it has exactly one tab.
std::pair<std::string_view, std::string_view> sides(const TextFile& file, std::size_t line);

}  // namespace weft::data
