// Which setting of a config an error is about.
#include "train/error_setting.h"

#include <gtest/gtest.h>

namespace weft::train::error_setting_test {
namespace {

std::string where_of(const SettingOfError& blame, const std::string& code, const std::string& where,
                     const std::string& what = "no") {
  return at_setting(Config{}, blame, UserError({.code = code, .what = what, .where = where, .fix = "none"}))
      .text()
      .where.text;
}

const SettingOfError kBlame{.codes = {{"test.rule", "optimizer.rules"}, {"test-store.", "mesh.store"}},
                            .section = "optimizer",
                            .otherwise = "optimizer.name"};

TEST(SettingOfError, IsThatOfItsCodeOrArea) {
  EXPECT_EQ(where_of(kBlame, "test.rule", ""), "optimizer.rules");
  EXPECT_EQ(where_of(kBlame, "test.rules", ""), "optimizer.name");
  EXPECT_EQ(where_of(kBlame, "test-store.any", "storage layout \"x\""), "mesh.store, storage layout \"x\"");
  EXPECT_EQ(where_of(kBlame, "test-store.any", "momentum"), "mesh.store, momentum");
}

TEST(SettingOfError, IsTheOneThatItsPlaceNames) {
  EXPECT_EQ(where_of(kBlame, "test.x", "batch.length"), "batch.length");
  EXPECT_EQ(where_of(kBlame, "test.x", "momentum"), "optimizer.momentum");
  EXPECT_EQ(where_of(kBlame, "test.x", "momentum at src/train/parts.cc:3"), "optimizer.momentum");
  EXPECT_EQ(where_of(kBlame, "test.x", "momentum at user.cc:3"), "optimizer.momentum, momentum at user.cc:3");
}

TEST(SettingOfError, IsTheOneThatItsCodeNames) {
  EXPECT_EQ(where_of(kBlame, "test.bad-beta1", ""), "optimizer.beta1");
  EXPECT_EQ(where_of(kBlame, "test.bad-clip-norm", ""), "optimizer.clip_norm");
  EXPECT_EQ(where_of(kBlame, "test.bad-heads", ""), "optimizer.name");
}

// Words of a text may be about anything.
TEST(SettingOfError, IsNotReadFromItsText) {
  EXPECT_EQ(where_of(kBlame, "test.x", "", "beta1 and momentum of the storage layout"), "optimizer.name");
}

TEST(SettingOfError, TheErrorKeepsItsCode) {
  const UserError error({.code = "test.x", .what = "no", .where = "", .fix = "none"});
  EXPECT_EQ(at_setting(Config{}, kBlame, error).text().code, "test.x");
}

}  // namespace
}  // namespace weft::train::error_setting_test
