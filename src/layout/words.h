// The words of mesh and layout texts, and the errors that point into them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/error.h"
#include "weft/mesh.h"

namespace weft {

// A text given by the user: kind is "mesh", "layout" or "storage layout", example is a correct text for the fix.
struct Source {
  std::string_view kind;
  std::string_view text;
  std::string_view example;

  Place at(std::size_t column) const;  // layout "a:x", column 3
};

struct Word {
  std::string text;
  std::size_t column = 1;
  bool comma = false;  // a comma follows
};

// Splits at spaces, commas and semicolons. UserError for an empty word.
std::vector<Word> words_of(const Source& source);

// "a:b" -> {a, b} with their columns. UserError unless there is exactly one ':' with text on both sides.
struct Pair {
  Word left, right;
};
Pair pair_of(const Source& source, const Word& word, std::string_view left, std::string_view right);

// The rules of a layout's text, or, with `star`, of a storage layout's, in which a dim may be "*". UserError, with the
// column, for any other text.
std::vector<LayoutRule> rules_of(const Source& source, bool star);

// UserError unless the name consists of letters, digits, '_' and `more`. `what` is "dim" or "axis".
void check_name(const Source& source, const Word& name, std::string_view what, std::string_view more);

}  // namespace weft
