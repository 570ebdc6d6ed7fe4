#include "weft/error.h"

#include "support/expect_error.h"

namespace weft::error_test {
namespace {

TEST(Error, ReadsAsThreeLines) {
  const UserError error({.what = "dim 'batch' is 5", .where = "layout", .fix = "make it 6"});
  EXPECT_STREQ(error.what(), "error: dim 'batch' is 5\nwhere: layout\nfix:   make it 6");
  EXPECT_EQ(error.text().what, "dim 'batch' is 5");
  EXPECT_EQ(error.text().where.text, "layout");
  EXPECT_EQ(error.text().fix, "make it 6");
}

TEST(Error, PlaceMayBeALineOfTheProgram) {
  const Site site = Site::current();
  const UserError error({.what = "a", .where = site, .fix = "b"});
  EXPECT_EQ(error.text().where.text, to_string(site));
}

TEST(Error, SiteIsRelativeToTheProject) {
  // The build maps the prefix away, so that messages are the same on every machine.
  const Site site = Site::current();
  EXPECT_EQ(to_string(site), "tests/base/error_test.cc:" + std::to_string(site.line()));
}

TEST(Error, KindsAreToldApart) {
  EXPECT_THROW(throw UserError(ErrorText{}), UserError);
  EXPECT_THROW(throw RunError(ErrorText{}), RunError);
  EXPECT_THROW(throw InternalError("x"), InternalError);
  try {
    throw RunError({.what = "the wire broke", .where = "processor data=1", .fix = "run again"});
  } catch (const UserError&) {
    FAIL() << "a RunError is not the user's fault";
  } catch (const std::runtime_error& error) {  // and it is a std::exception for those who know nothing of Weft
    EXPECT_STREQ(error.what(), "error: the wire broke\nwhere: processor data=1\nfix:   run again");
  }
}

TEST(Error, InternalErrorSaysWhereAndAsksForAReport) {
  EXPECT_INTERNAL_ERROR(throw InternalError("two owners"), "error: Weft broke one of its own rules: two owners",
                        "where: tests/base/error_test.cc:", "fix:   this is a bug in Weft; please report it");
}

TEST(Error, InternalCheckThrowsOnlyWhenFalse) {
  EXPECT_NO_THROW(internal_check(true, "never"));
  EXPECT_INTERNAL_ERROR(internal_check(false, "the sum is off"), "the sum is off", "tests/base/error_test.cc:");
}

TEST(ExpectError, NamesWhatIsMissing) {
  EXPECT_EQ(test::missing_pieces("abc def", {"abc", "def"}), "");
  EXPECT_EQ(test::missing_pieces("abc", {"abc", "xyz"}), "the error does not say \"xyz\"\nbut this:\nabc");
  EXPECT_FALSE(test::throws<UserError>([] {}, "UserError", {}));
  EXPECT_FALSE(test::throws<UserError>([] { throw RunError(ErrorText{}); }, "UserError", {}));
}

}  // namespace
}  // namespace weft::error_test
