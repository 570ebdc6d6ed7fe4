// Layout: the grammar of rules and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/str.h"
#include "support/expect_error.h"
#include "weft/error.h"
#include "weft/mesh.h"

namespace weft::layout_test {

std::ostream& operator<<(std::ostream& out, const LayoutRule& rule) {
  out << rule.dim << ":";
  for (const std::string& axis : rule.axes) out << axis << "+";
  return out << (rule.optional ? "?" : "");
}

namespace {

using Rules = std::vector<LayoutRule>;

Rules rules_of(const char* text) { return Layout::parse(text).rules(); }

TEST(Layout, RulesStandBetweenAnySeparators) {
  const Rules want = {{"a", {"x"}}, {"b", {"y"}}};
  for (const char* text : {"a:x b:y", "a:x,b:y", "a:x;b:y", " a:x ; b:y ", "a:x,\n\tb:y"})
    EXPECT_EQ(rules_of(text), want) << text;
  EXPECT_EQ(rules_of(""), Rules{});
  EXPECT_EQ(Layout::parse("a:x,b:y").text(), "a:x,b:y");
}

TEST(Layout, DimsBeforeACommaJoinTheNextRule) {
  const Rules want = {{"heads", {"model"}}, {"d_ff", {"model"}}, {"vocab", {"model"}}};
  EXPECT_EQ(rules_of("heads,d_ff,vocab:model"), want);
  EXPECT_EQ(rules_of("heads, d_ff , vocab:model"), want);
  EXPECT_EQ(rules_of("batch:data,heads,d_ff:model"),
            (Rules{{"batch", {"data"}}, {"heads", {"model"}}, {"d_ff", {"model"}}}));
}

TEST(Layout, AxesMultiplyInOrder) {
  EXPECT_EQ(rules_of("batch:pod+data"), (Rules{{"batch", {"pod", "data"}}}));
  EXPECT_NE(rules_of("batch:pod+data"), rules_of("batch:data+pod"));
}

TEST(Layout, MinusIsUnsplitAndQuestionMarkIsOptional) {
  EXPECT_EQ(rules_of("length:-"), (Rules{{"length", {}}}));
  EXPECT_EQ(rules_of("experts:expert? batch:data"), (Rules{{"experts", {"expert"}, true}, {"batch", {"data"}}}));
  EXPECT_EQ(rules_of("a,b:x+y?"), (Rules{{"a", {"x", "y"}, true}, {"b", {"x", "y"}, true}}));
  EXPECT_EQ(rules_of("a:-?"), (Rules{{"a", {}, true}}));
}

TEST(Layout, DotsAndSlashesBelongToNames) {
  EXPECT_EQ(rules_of("layer.0/d_ff:model"), (Rules{{"layer.0/d_ff", {"model"}}}));
}

TEST(Store, HasRulesAndALevel) {
  EXPECT_EQ(Store().level(), 0);
  EXPECT_EQ(Store::parse("*:data").level(), 1);
  const Store store = Store::parse("*:pod+data d_model,vocab:model? d_kv:-", 3);
  EXPECT_EQ(store.level(), 3);
  EXPECT_EQ(store.text(), "*:pod+data d_model,vocab:model? d_kv:-");
  EXPECT_EQ(store.rules(),
            (Rules{{"*", {"pod", "data"}}, {"d_model", {"model"}, true}, {"vocab", {"model"}, true}, {"d_kv", {}}}));
}

TEST(StoreErrors, PointAtTheWord) {
  EXPECT_USER_ERROR(Store::parse("d_model,*:data"),
                    "error: the storage layout has '*' and dims by name in one rule\n"
                    "where: storage layout \"d_model,*:data\", column 9\n"
                    "fix:   write a separate rule for '*', as in \"*:data\"; rules that name dims are applied first");
  EXPECT_USER_ERROR(Store::parse("d_model:data *:-"),
                    "error: the storage layout gives '*' no axis\n"
                    "where: storage layout \"d_model:data *:-\", column 14\n"
                    "fix:   write *:axis, as in \"*:data\", or leave the rule out");
  EXPECT_USER_ERROR(Store::parse("*:pod *:data"),
                    "error: the storage layout lays dim '*' twice\nwhere: storage layout \"*:pod *:data\", column 7\n");
  EXPECT_USER_ERROR(Store::parse("*:data+data"), "error: the storage layout names axis 'data' twice in one rule\n");
  EXPECT_USER_ERROR(Store::parse("*"),
                    "error: the storage layout has a word without ':': '*'\n"
                    "where: storage layout \"*\", column 1\n"
                    "fix:   write dim:axis, as in \"*:data\"");
  EXPECT_USER_ERROR(Store::parse("**:data"), "the name of dim '**' has the character '*'");
  EXPECT_USER_ERROR(Layout::parse("*:data"), "the name of dim '*' has the character '*'");
}

TEST(StoreErrors, LevelsAndEmptyTexts) {
  for (int level : {-1, 0, 4})
    EXPECT_USER_ERROR(Store::parse("*:data", level),
                      str("error: there is no storage level ", level, "\nwhere: storage layout \"*:data\"\n",
                          "fix:   give 1 (optimizer state), 2 (and gradients) or 3 (and parameters)"));
  EXPECT_USER_ERROR(Store::parse(" ", 2),
                    "error: the storage layout has no rule, but level 2\nwhere: storage layout \" \"\n"
                    "fix:   write which axis is to split variables, as in \"*:data\", or give no storage layout");
}

TEST(LayoutErrors, PointAtTheWord) {
  EXPECT_USER_ERROR(Layout::parse("a:x,,b:y"),
                    "error: the layout has an empty word\n"
                    "where: layout \"a:x,,b:y\", column 5\n"
                    "fix:   put one comma, semicolon or space between words, as in \"batch:data heads,d_ff:model\"");
  EXPECT_USER_ERROR(Layout::parse("heads,"), "the layout has an empty word\nwhere: layout \"heads,\", column 7\n");
  EXPECT_USER_ERROR(Layout::parse("heads d_ff:model"),
                    "error: the layout has a word without ':': 'heads'\n"
                    "where: layout \"heads d_ff:model\", column 1\n"
                    "fix:   write dim:axis, as in \"batch:data heads,d_ff:model\"");
  EXPECT_USER_ERROR(Layout::parse("a:x,b"), "a word without ':': 'b'\nwhere: layout \"a:x,b\", column 5\n");
  EXPECT_USER_ERROR(Layout::parse("a:x.b:y"),
                    "error: the layout has a word with two ':': 'a:x.b:y'\n"
                    "where: layout \"a:x.b:y\", column 6\n"
                    "fix:   divide it with a space, comma or semicolon ('.' is part of a name, not a separator)");
  EXPECT_USER_ERROR(Layout::parse("a:x :y"),
                    "error: the layout has a word that lacks its dim: ':y'\nwhere: layout \"a:x :y\", column 5\n");
  EXPECT_USER_ERROR(Layout::parse("a:"),
                    "error: the layout has a word that lacks its axis: 'a:'\nwhere: layout \"a:\", column 3\n");
  EXPECT_USER_ERROR(Layout::parse("a:?"),
                    "error: the layout has a word that lacks its axis: 'a:'\nwhere: layout \"a:?\", column 3\n");
  EXPECT_USER_ERROR(Layout::parse("a:x ?"), "error: the layout has a word without ':': '?'\n");
}

TEST(LayoutErrors, RefuseBadNames) {
  EXPECT_USER_ERROR(Layout::parse("b@tch:data"),
                    "error: the name of dim 'b@tch' has the character '@'\n"
                    "where: layout \"b@tch:data\", column 2\n"
                    "fix:   write the name with letters, digits, '_', '.', '/', '#'");
  EXPECT_USER_ERROR(Layout::parse("batch:da.ta"),
                    "error: the name of axis 'da.ta' has the character '.'\n"
                    "where: layout \"batch:da.ta\", column 9\n"
                    "fix:   write the name with letters, digits, '_'");
  EXPECT_USER_ERROR(Layout::parse("größe:x"), "the name of dim 'größe' has the character 'ö'\n");
  EXPECT_USER_ERROR(Layout::parse("a?:x"), "the name of dim 'a?' has the character '?'");
  EXPECT_USER_ERROR(Layout::parse("a:-+x"), "the name of axis '-' has the character '-'");
}

TEST(LayoutErrors, RefuseNamesThatTheLibraryKeeps) {
  EXPECT_USER_ERROR(
      Layout::parse("batch:data #trips0:data"),
      "error: the layout lays dim '#trips0', but dim names that begin with '#' are reserved for the library\n"
      "where: layout \"batch:data #trips0:data\", column 12\n"
      "fix:   remove the rule; to split this dim, rename() it first");
  EXPECT_USER_ERROR(Store::parse("#k:data", 1), "error: the storage layout lays dim '#k', but dim names");
}

TEST(LayoutErrors, RefuseRepetition) {
  EXPECT_USER_ERROR(Layout::parse("batch:pod++data"),
                    "error: the layout lacks an axis before or after '+' in 'pod++data'\n"
                    "where: layout \"batch:pod++data\", column 11\n"
                    "fix:   write axis+axis, major to minor, as in \"batch:pod+data\"");
  EXPECT_USER_ERROR(Layout::parse("batch:data+data"),
                    "error: the layout names axis 'data' twice in one rule\n"
                    "where: layout \"batch:data+data\", column 12\n"
                    "fix:   name each axis of a rule once");
  EXPECT_USER_ERROR(Layout::parse("batch:data batch:pod"),
                    "error: the layout lays dim 'batch' twice\n"
                    "where: layout \"batch:data batch:pod\", column 12\n"
                    "fix:   keep one of the rules; to split a dim over two axes write dim:axis+axis",
                    "code:  layout.dim-twice");
}

}  // namespace
}  // namespace weft::layout_test
