// The tokenizers of sacreBLEU, on bytes: what they look for is ASCII, so UTF-8 may stay as it is.
#include <algorithm>

#include "weft/error.h"
#include "weft/evaluate.h"
#include "weft/detail/words.h"

namespace weft::evaluate {

namespace {

// The number of bytes of the character that begins there.
std::size_t character_size(std::string_view text, std::size_t begin) {
  const auto first = static_cast<unsigned char>(text[begin]);
  const std::size_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return std::min(size, text.size() - begin);
}

// Unicode's spaces, those that Python's split() knows.
bool is_space(std::string_view character) {
  if (character.size() == 1) {
    const auto c = static_cast<unsigned char>(character[0]);
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  }
  static const std::vector<std::string_view> wide = {
      "\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
      "\u2007", "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
  return std::find(wide.begin(), wide.end(), character) != wide.end();
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> words;
  bool open = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view character = text.substr(i, character_size(text, i));
    const bool space = is_space(character);
    if (!space && !open) words.emplace_back();
    if (!space) words.back() += character;
    open = !space;
    i += character.size();
  }
  return words;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
// ASCII's marks, without ' , - and the full stop.
bool is_mark(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

// Goes through pairs of neighbours, from left to right. Where `is_pair` holds, `replaced` is written for both, and
// neither is looked at again: as a regular expression of two characters is substituted.
template <class IsPair, class Replaced>
std::string replace_pairs(const std::string& text, const IsPair& is_pair, const Replaced& replaced) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && is_pair(text[i], text[i + 1])) {
      result += replaced(std::string(1, text[i]), std::string(1, text[i + 1]));
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<std::string> tokens_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");

  std::string marked = " ";
  for (char c : text + " ") marked += is_mark(c) ? std::string{' ', c, ' '} : std::string{c};
  // Full stops and commas stand alone except between digits, and so does a dash after a digit.
  marked = replace_pairs(
      marked, [](char a, char b) { return !is_digit(a) && is_stop(b); },
      [](const std::string& a, const std::string& b) { return a + " " + b + " "; });
  marked = replace_pairs(
      marked, [](char a, char b) { return is_stop(a) && !is_digit(b); },
      [](const std::string& a, const std::string& b) { return " " + a + " " + b; });
  marked = replace_pairs(
      marked, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](const std::string& a, const std::string& b) { return a + " " + b + " "; });
  return split_at_spaces(marked);
}

std::vector<std::string> characters(std::string_view line) {
  std::vector<std::string> result;
  for (const std::string& word : split_at_spaces(line))
    for (std::size_t i = 0; i < word.size(); i += character_size(word, i))
      result.push_back(word.substr(i, character_size(word, i)));
  return result;
}

// Spaces at the end of a line count for nothing.
std::string_view without_end(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t size = character_size(line, i);
    if (!is_space(line.substr(i, size))) end = i + size;
    i += size;
  }
  return line.substr(0, end);
}

}  // namespace

std::vector<std::string> tokens(std::string_view line, const std::string& tokenizer, Site site) {
  line = without_end(line);
  if (tokenizer == "13a") return tokens_13a(line);
  if (tokenizer == "char") return characters(line);
  if (tokenizer == "none") return split_at_spaces(line);
  const std::string near = nearest_word(tokenizer, {"13a", "char", "none"});
  throw UserError({.code = "bleu.unknown-tokenizer",
                   .what = "BLEU has no tokenizer '" + tokenizer + "'",
                   .where = site,
                   .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") +
                          std::string("The tokenizers are 13a, char and none")});
}

std::int64_t words(std::string_view text) { return static_cast<std::int64_t>(split_at_spaces(text).size()); }

}  // namespace weft::evaluate
