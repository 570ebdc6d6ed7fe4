#include "data/text_file.h"

#include <algorithm>
#include <cstring>

namespace weft::data {

namespace {

// The number of bytes of the first character; 0 if it is invalid (overlong forms, surrogates, code points beyond
// U+10FFFF).
std::size_t character_size(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = at(0);
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0) == 0x80; };
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return follows(1) ? 2 : 0;
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (at(1) < least || at(1) > most || !follows(2)) return 0;
  if (first < 0xf0) return 3;
  return follows(3) ? 4 : 0;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - i >= sizeof eight) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const std::size_t size = character_size(text.substr(i, 4));
    if (size == 0) return i;
    i += size;
  }
  return std::string_view::npos;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

TextFile::TextFile(const std::string& path) : path_(path) {
  const FileBytes file(path);
  text_ = file.read_text(0, file.size());
  if (text_.starts_with("\xef\xbb\xbf")) text_.erase(0, 3);
  if (text_.find('\r') != std::string::npos) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < text_.size(); ++from)
      if (text_[from] != '\r' || from + 1 == text_.size() || text_[from + 1] != '\n') text_[to++] = text_[from];
    text_.resize(to);
  }
  if (text_.empty())
    throw UserError({.code = "data.empty-file",
                     .what = "the file is empty",
                     .where = path,
                     .fix = "give a file that has text in it"});
  for (std::string_view rest = text_; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines_.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::size_t bad = first_invalid_utf8(text_);
  if (bad != std::string::npos)
    throw UserError(
        {.code = "data.not-utf8",
         .what = sentence("the byte ", static_cast<int>(static_cast<unsigned char>(text_[bad])), " is no UTF-8 here"),
         .where = place(static_cast<std::size_t>(
             std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(bad), '\n'))),
         .fix = "convert the file: iconv -f LATIN1 -t UTF-8"});
}

std::string TextFile::place(std::size_t line) const { return sentence(path_, ":", line + 1); }

std::pair<std::string_view, std::string_view> sides(const TextFile& file, std::size_t line) {
  const std::string_view text = file.lines()[line];
  const auto tabs = std::count(text.begin(), text.end(), '\t');
  if (tabs != 1)
    throw UserError({.code = "data.not-one-tab",
                     .what = sentence("the line has ", tabs, " tabs instead of one"),
                     .where = file.place(line),
                     .fix = "write inputs, a tab and targets on every line"});
  const std::size_t tab = text.find('\t');
  return {text.substr(0, tab), text.substr(tab + 1)};
}

}  // namespace weft::data
