#include <algorithm>

#include "base/str.h"
#include "language/shape_math.h"
#include "layout/words.h"
#include "weft/dim.h"
#include "weft/error.h"
#include "weft/mesh.h"

namespace weft {

namespace {

// The axes on the right side of a rule; "-" gives none.
std::vector<std::string> axes_of(const Source& source, const Word& right) {
  std::vector<std::string> axes;
  if (right.text == "-") return axes;
  std::size_t begin = 0;
  while (begin <= right.text.size()) {
    const std::size_t end = std::min(right.text.find('+', begin), right.text.size());
    const Word axis{right.text.substr(begin, end - begin), right.column + begin};
    if (axis.text.empty())
      throw UserError({.code = "layout.missing-axis",
                       .what = str("the ", source.kind, " lacks an axis before or after '+' in '", right.text, "'"),
                       .where = source.at(axis.column),
                       .fix = "write axis+axis, major to minor, as in \"batch:pod+data\""});
    check_name(source, axis, "axis", "");
    if (std::find(axes.begin(), axes.end(), axis.text) != axes.end())
      throw UserError({.code = "layout.axis-twice-in-rule",
                       .what = str("the ", source.kind, " names axis '", axis.text, "' twice in one rule"),
                       .where = source.at(axis.column),
                       .fix = "name each axis of a rule once"});
    axes.push_back(axis.text);
    begin = end + 1;
  }
  return axes;
}

void check_dim(const Source& source, const std::vector<LayoutRule>& before, const Word& dim, bool star) {
  if (!star || dim.text != "*") check_name(source, dim, "dim", "./#");
  if (is_own_dim(dim.text))
    throw UserError({.code = "layout.reserved-dim",
                     .what = str("the ", source.kind, " lays dim '", dim.text, "', but dim names that begin with '",
                                 kOwnDim, "' are reserved for the library"),
                     .where = source.at(dim.column),
                     .fix = "remove the rule; to split this dim, rename() it first"});
  for (const LayoutRule& rule : before)
    if (rule.dim == dim.text)
      throw UserError({.code = "layout.dim-twice",
                       .what = str("the ", source.kind, " lays dim '", dim.text, "' twice"),
                       .where = source.at(dim.column),
                       .fix = "keep one of the rules; to split a dim over two axes write dim:axis+axis"});
}

// `*` must be the only dim of its rule.
void check_star(const Source& source, const std::vector<Word>& dims, const std::vector<std::string>& axes) {
  for (const Word& dim : dims) {
    if (dim.text != "*") continue;
    if (dims.size() > 1)
      throw UserError(
          {.code = "layout.star-with-names",
           .what = str("the ", source.kind, " has '*' and dims by name in one rule"),
           .where = source.at(dim.column),
           .fix = "write a separate rule for '*', as in \"*:data\"; rules that name dims are applied first"});
    if (axes.empty())
      throw UserError({.code = "layout.star-without-axis",
                       .what = str("the ", source.kind, " gives '*' no axis"),
                       .where = source.at(dim.column),
                       .fix = "write *:axis, as in \"*:data\", or leave the rule out"});
  }
}

}  // namespace

std::vector<LayoutRule> rules_of(const Source& source, bool star) {
  std::vector<LayoutRule> rules;
  std::vector<Word> waiting;  // dims before a comma; they belong to the next rule
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
    if (star) check_star(source, waiting, axes);
    for (const Word& dim : waiting) {
      check_dim(source, rules, dim, star);
      rules.push_back({dim.text, axes, optional});
    }
    waiting.clear();
  }
  internal_check(waiting.empty(), "a comma at the end of a layout");
  return rules;
}

Layout Layout::parse(std::string_view text) {
  Layout layout;
  layout.rules_ = rules_of({.kind = "layout", .text = text, .example = "batch:data heads,d_ff:model"}, false);
  layout.text_ = text;
  return layout;
}

Store Store::parse(std::string_view text, int level) {
  const Source source{.kind = "storage layout", .text = text, .example = "*:data"};
  if (level < 1 || level > 3)
    throw UserError({.code = "store.unknown-level",
                     .what = str("there is no storage level ", level),
                     .where = str("storage layout \"", text, "\""),
                     .fix = "give 1 (optimizer state), 2 (and gradients) or 3 (and parameters)"});
  Store store;
  store.rules_ = rules_of(source, true);
  if (store.rules_.empty())
    throw UserError({.code = "store.level-without-rule",
                     .what = str("the storage layout has no rule, but level ", level),
                     .where = str("storage layout \"", text, "\""),
                     .fix = "write which axis is to split variables, as in \"*:data\", or give no storage layout"});
  store.text_ = text;
  store.level_ = level;
  return store;
}

}  // namespace weft
