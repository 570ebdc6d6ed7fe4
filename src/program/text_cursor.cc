#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/str.h"
#include "program/text_detail.h"

namespace weft::text {

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' || c == '#' || c == '-';
}

std::string quoted(std::string_view word) {
  static constexpr const char* kHex = "0123456789abcdef";
  std::string out = "\"";
  for (char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 32 || byte == 127) {
      out += "\\x";
      out += kHex[byte / 16];
      out += kHex[byte % 16];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string word_or_quoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), is_word_char);
  return plain ? std::string(word) : quoted(word);
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

std::string number_text(const Number& number) {
  const bool is_long = number.is_whole() && std::abs(number.real()) >= 0x1p53;
  return is_long ? std::to_string(number.whole()) : number_text(number.real());
}

void Cursor::fail(ErrorCode code, const std::string& what, const std::string& fix) const {
  std::string shown(line_.substr(0, 100));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 32 || c == 127; }, ' ');
  throw UserError({.code = code, .what = what, .where = str("program text, line ", number_, ": ", shown), .fix = fix});
}

void Cursor::skip_space() {
  while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
}

bool Cursor::at_end() {
  skip_space();
  return at_ == line_.size();
}

bool Cursor::next_is(char c) { return !at_end() && line_[at_] == c; }

bool Cursor::accept(char c) {
  if (!next_is(c)) return false;
  ++at_;
  return true;
}

bool Cursor::accept_word(std::string_view word) {
  skip_space();
  const std::string_view rest = line_.substr(at_);
  if (!rest.starts_with(word) || (rest.size() > word.size() && is_word_char(rest[word.size()]))) return false;
  at_ += word.size();
  return true;
}

void Cursor::expect(char c) {
  if (accept(c)) return;
  const std::string found = at_ < line_.size() ? str("'", line_[at_], "'") : "the end of the line";
  fail("program.missing-character", str("expected '", c, "' in column ", at_ + 1, ", found ", found),
       "compare the line with what to_text prints");
}

std::string Cursor::word(const char* what) {
  skip_space();
  const std::size_t begin = at_;
  while (at_ < line_.size() && is_word_char(line_[at_])) ++at_;
  if (at_ == begin)
    fail("program.missing-word", str("expected ", what, " in column ", begin + 1),
         "compare the line with what to_text prints");
  return std::string(line_.substr(begin, at_ - begin));
}

std::string Cursor::name(const char* what) { return next_is('"') ? quoted_text() : word(what); }

std::string Cursor::quoted_text() {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : c - 'a' + 10; };
  expect('"');
  std::string out;
  while (at_ < line_.size() && line_[at_] != '"') {
    const std::string_view rest = line_.substr(at_);
    if (rest[0] != '\\') {
      out += rest[0];
      at_ += 1;
    } else if (rest.starts_with("\\n")) {
      out += '\n';
      at_ += 2;
    } else if (rest.starts_with("\\\"") || rest.starts_with("\\\\")) {
      out += rest[1];
      at_ += 2;
    } else if (rest.size() >= 4 && rest[1] == 'x' && std::isxdigit(static_cast<unsigned char>(rest[2])) &&
               std::isxdigit(static_cast<unsigned char>(rest[3]))) {
      out += static_cast<char>(digit(static_cast<char>(std::tolower(rest[2]))) * 16 +
                               digit(static_cast<char>(std::tolower(rest[3]))));
      at_ += 4;
    } else {
      fail("program.unknown-escape", str("unknown escape in column ", at_ + 1),
           "inside quotes write \\\" \\\\ \\n or \\xHH");
    }
  }
  if (at_ == line_.size()) fail("program.open-quote", "a quoted text does not end", "close it with \"");
  ++at_;
  return out;
}

std::string_view Cursor::number_token() {
  skip_space();
  const std::size_t begin = at_;
  const auto belongs = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.' || c == '_';
  };
  while (at_ < line_.size() && belongs(line_[at_])) ++at_;
  return line_.substr(begin, at_ - begin);
}

std::int64_t Cursor::integer(const char* what, std::int64_t least, std::int64_t most) {
  skip_space();
  std::int64_t number = 0;
  const char* begin = line_.data() + at_;
  const auto [end, error] = std::from_chars(begin, line_.data() + line_.size(), number);
  if (end == begin)
    fail("program.missing-number", str("expected ", what, " in column ", at_ + 1), "write a whole number there");
  if (error != std::errc() || number < least || number > most)
    fail("program.whole-number-out-of-range", str(what, " ", std::string(begin, end), " is out of range"),
         str("it may be ", least, " to ", most));
  at_ += static_cast<std::size_t>(end - begin);
  return number;
}

double Cursor::real() { return real_of(number_token()); }

Number Cursor::number_of(std::string_view token) {
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), whole);
  const bool exact = error == std::errc() && !token.empty() && end == token.data() + token.size();
  return exact && whole != 0 ? Number(whole) : Number(real_of(token));  // -0 is a float
}

double Cursor::real_of(std::string_view token) {
  double number = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (token.empty() || end != token.data() + token.size())
    fail("program.not-a-number", str("'", token, "' is not a number"), "write digits, inf or nan");
  if (error != std::errc())
    fail("program.number-out-of-range", str("the number ", token, " is out of range"),
         "write a number that a double can hold");
  return number;
}

}  // namespace weft::text
