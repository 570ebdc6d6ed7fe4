// Shared by the printer and the parser of the text form; nothing else includes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/ir.h"
#include "weft/error.h"

namespace weft::text {

// Letters, digits, '_', '.', '/', '#' and '-': what needs no quotes.
bool is_word_char(char c);
// `word` as it is, or in quotes with \" \\ \n and \xHH where it holds anything else or nothing.
std::string quoted(std::string_view word);
std::string word_or_quoted(std::string_view word);
// The shortest digits that read back as the same number; inf, -inf, nan.
std::string number_text(double number);
std::string number_text(const Number& number);

// Reads one line from left to right. Every failure is a UserError that names the line.
class Cursor {
 public:
  Cursor(std::string_view line, int number) : line_(line), number_(number) {}

  int number() const { return number_; }
  bool at_end();
  bool next_is(char c);
  bool accept(char c);
  bool accept_word(std::string_view word);  // as a whole word
  void expect(char c);
  std::string word(const char* what);  // word characters
  std::string name(const char* what);  // a word or a quoted text
  std::string quoted_text();
  std::string_view number_token();  // letters, digits, '+', '-', '.': of a number or a function; may be empty
  std::int64_t integer(const char* what, std::int64_t least, std::int64_t most);
  double real();
  double real_of(std::string_view token);
  Number number_of(std::string_view token);  // whole numbers exactly
  [[noreturn]] void fail(ErrorCode code, const std::string& what, const std::string& fix) const;

  // Runs f; a UserError in it is thrown on with this line as its place.
  template <class F>
  auto located(F f) const {
    try {
      return f();
    } catch (const UserError& error) {
      fail(error.text().code, error.text().what, error.text().fix);
    }
  }

 private:
  void skip_space();
  std::string_view line_;
  std::size_t at_ = 0;
  int number_;
};

// Map expressions. `inputs` are the dtypes of the operands; a broken tree prints with '?' where it is broken.
std::string expression_text(const std::vector<MapNode>& nodes);
std::vector<MapNode> read_expression(Cursor& cursor, const std::vector<DType>& inputs);

}  // namespace weft::text
