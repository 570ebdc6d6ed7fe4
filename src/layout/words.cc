#include "layout/words.h"

#include "base/str.h"

namespace weft {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_mark(char c) { return c == ',' || c == ';'; }
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

[[noreturn]] void throw_empty(const Source& source, std::size_t column) {
  throw UserError({.code = "layout-text.empty-word",
                   .what = str("the ", source.kind, " has an empty word"),
                   .where = source.at(column),
                   .fix = str("put one comma, semicolon or space between words, as in \"", source.example, "\"")});
}

// The character that begins at `i`: all of its bytes, if it has several in UTF-8.
std::string_view character_at(std::string_view text, std::size_t i) {
  std::size_t end = i + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  return text.substr(i, end - i);
}

}  // namespace

Place Source::at(std::size_t column) const { return str(kind, " \"", text, "\", column ", column); }

std::vector<Word> words_of(const Source& source) {
  const std::string_view text = source.text;
  std::vector<Word> words;
  bool owed = false;  // a word must follow a comma or semicolon
  std::size_t i = 0;
  while (i < text.size()) {
    if (is_space(text[i])) {
      ++i;
    } else if (is_mark(text[i])) {
      if (words.empty() || owed) throw_empty(source, i + 1);
      words.back().comma = text[i] == ',';
      owed = true;
      ++i;
    } else {
      const std::size_t begin = i;
      while (i < text.size() && !is_space(text[i]) && !is_mark(text[i])) ++i;
      words.push_back({std::string(text.substr(begin, i - begin)), begin + 1});
      owed = false;
    }
  }
  if (owed) throw_empty(source, text.size() + 1);
  return words;
}

Pair pair_of(const Source& source, const Word& word, std::string_view left, std::string_view right) {
  const std::size_t colon = word.text.find(':');
  if (colon == std::string::npos)
    throw UserError({.code = "layout-text.no-colon",
                     .what = str("the ", source.kind, " has a word without ':': '", word.text, "'"),
                     .where = source.at(word.column),
                     .fix = str("write ", left, ":", right, ", as in \"", source.example, "\"")});
  const std::size_t second = word.text.find(':', colon + 1);
  if (second != std::string::npos)
    throw UserError({.code = "layout-text.two-colons",
                     .what = str("the ", source.kind, " has a word with two ':': '", word.text, "'"),
                     .where = source.at(word.column + second),
                     .fix = "divide it with a space, comma or semicolon ('.' is part of a name, not a separator)"});
  Pair pair{{word.text.substr(0, colon), word.column}, {word.text.substr(colon + 1), word.column + colon + 1}};
  for (const auto& [part, what] : {std::pair(pair.left, left), std::pair(pair.right, right)})
    if (part.text.empty())
      throw UserError({.code = "layout-text.missing-side",
                       .what = str("the ", source.kind, " has a word that lacks its ", what, ": '", word.text, "'"),
                       .where = source.at(part.column),
                       .fix = str("write ", left, ":", right, ", as in \"", source.example, "\"")});
  return pair;
}

void check_name(const Source& source, const Word& name, std::string_view what, std::string_view more) {
  for (std::size_t i = 0; i < name.text.size(); ++i) {
    const char c = name.text[i];
    if (is_letter_or_digit(c) || more.find(c) != std::string_view::npos) continue;
    std::string allowed = "letters, digits, '_'";
    for (char other : more) allowed += str(", '", other, "'");
    throw UserError(
        {.code = "layout-text.bad-character",
         .what = str("the name of ", what, " '", name.text, "' has the character '", character_at(name.text, i), "'"),
         .where = source.at(name.column + i),
         .fix = str("write the name with ", allowed)});
  }
}

}  // namespace weft
