#include <algorithm>

#include "base/str.h"
#include "layout/words.h"
#include "weft/error.h"
#include "weft/mesh.h"

namespace weft {

namespace {

// The axes of a rule's right side, "-" being none.
std::vector<std::string> axes_of(const Source& source, const Word& right) {
  std::vector<std::string> axes;
  if (right.text == "-") return axes;
  std::size_t begin = 0;
  while (begin <= right.text.size()) {
    const std::size_t end = std::min(right.text.find('+', begin), right.text.size());
    const Word axis{right.text.substr(begin, end - begin), right.column + begin};
    if (axis.text.empty())
      throw UserError({.what = str("the layout lacks an axis beside '+' in '", right.text, "'"),
                       .where = source.at(axis.column),
                       .fix = "write axis+axis, major to minor, as in \"batch:pod+data\""});
    check_name(source, axis, "axis", "");
    if (std::find(axes.begin(), axes.end(), axis.text) != axes.end())
      throw UserError({.what = str("the layout names axis '", axis.text, "' twice in one rule"),
                       .where = source.at(axis.column),
                       .fix = "name each axis of a rule once"});
    axes.push_back(axis.text);
    begin = end + 1;
  }
  return axes;
}

void check_dim(const Source& source, const std::vector<LayoutRule>& before, const Word& dim) {
  check_name(source, dim, "dim", "./#");
  for (const LayoutRule& rule : before)
    if (rule.dim == dim.text)
      throw UserError({.what = str("the layout lays dim '", dim.text, "' twice"),
                       .where = source.at(dim.column),
                       .fix = "keep one of the rules; to split a dim over two axes write dim:axis+axis"});
}

}  // namespace

Layout Layout::parse(std::string_view text) {
  const Source source{.kind = "layout", .text = text, .example = "batch:data heads,d_ff:model"};
  Layout layout;
  layout.text_ = text;
  std::vector<Word> waiting;  // dims before a comma, which join the next rule
  for (Word& word : words_of(source)) {
    if (word.comma && word.text.find(':') == std::string::npos) {
      waiting.push_back(word);
      continue;
    }
    const bool optional = word.text.size() > 1 && word.text.back() == '?';
    if (optional) word.text.pop_back();
    const Pair rule = pair_of(source, word, "dim", "axis");
    const std::vector<std::string> axes = axes_of(source, rule.right);
    waiting.push_back(rule.left);
    for (const Word& dim : waiting) {
      check_dim(source, layout.rules_, dim);
      layout.rules_.push_back({dim.text, axes, optional});
    }
    waiting.clear();
  }
  internal_check(waiting.empty(), "a comma at the end of a layout");
  return layout;
}

}  // namespace weft
