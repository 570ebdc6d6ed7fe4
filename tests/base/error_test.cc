#include "weft/error.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/expect_error.h"

namespace weft::error_test {
namespace {

TEST(Error, ReadsAsFourLines) {
  const UserError error({.code = "test.dim", .what = "dim 'batch' is 5", .where = "layout", .fix = "make it 6"});
  EXPECT_STREQ(error.what(), "error: dim 'batch' is 5\nwhere: layout\nfix:   make it 6\ncode:  test.dim");
  EXPECT_EQ(error.text().code, "test.dim");
  EXPECT_EQ(error.text().what, "dim 'batch' is 5");
  EXPECT_EQ(error.text().where.text, "layout");
  EXPECT_EQ(error.text().fix, "make it 6");
}

TEST(Error, PlaceMayBeALineOfTheProgram) {
  const Site site = Site::current();
  const UserError error({.code = "test.a", .what = "a", .where = site, .fix = "b"});
  EXPECT_EQ(error.text().where.text, to_string(site));
}

TEST(Error, SiteIsRelativeToTheProject) {
  // The build maps the prefix away, so that messages are the same on every machine.
  const Site site = Site::current();
  EXPECT_EQ(to_string(site), "tests/base/error_test.cc:" + std::to_string(site.line()));
}

TEST(Error, KindsAreToldApart) {
  const ErrorText text{.code = "test.kind", .what = "a", .where = "b", .fix = "c"};
  EXPECT_THROW(throw UserError(text), UserError);
  EXPECT_THROW(throw RunError(text), RunError);
  EXPECT_THROW(throw InternalError("x"), InternalError);
  try {
    throw RunError({.code = "test.wire", .what = "the wire broke", .where = "processor data=1", .fix = "run again"});
  } catch (const UserError&) {
    FAIL() << "a RunError is not the user's fault";
  } catch (const std::runtime_error& error) {  // and it is a std::exception for those who know nothing of Weft
    EXPECT_STREQ(error.what(), "error: the wire broke\nwhere: processor data=1\nfix:   run again\ncode:  test.wire");
  }
}

TEST(Error, InternalErrorSaysWhereAndAsksForAReport) {
  EXPECT_INTERNAL_ERROR(throw InternalError("two owners"), "error: Weft broke one of its own rules: two owners",
                        "where: tests/base/error_test.cc:", "fix:   this is a bug in Weft; please report it",
                        "code:  internal.broken-rule");
}

TEST(Error, InternalCheckThrowsOnlyWhenFalse) {
  EXPECT_NO_THROW(internal_check(true, "never"));
  EXPECT_INTERNAL_ERROR(internal_check(false, "the sum is off"), "the sum is off", "tests/base/error_test.cc:");
}

// In a separate process: the variable is read once.
TEST(Error, CodesAreRecordedOncePerProcess) {
  const std::string path = ::testing::TempDir() + "recorded_codes.txt";
  std::filesystem::remove(path);
  for (int process = 0; process < 2; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("WEFT_RECORD_ERRORS", path.c_str(), 1);
      execl("/proc/self/exe", "error_test", "--gtest_filter=Error.MayBeMadeAgain", static_cast<char*>(nullptr));
      _exit(1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "test.one\ntest.two\ntest.one\ntest.two\n");
}

// The test above runs it with WEFT_RECORD_ERRORS.
TEST(Error, MayBeMadeAgain) {
  for (const char* code : {"test.one", "test.two", "test.one"})
    EXPECT_THROW(throw UserError({.code = code, .what = "", .where = "", .fix = ""}), UserError);
  EXPECT_THROW(throw RunError({.code = "test.run", .what = "", .where = "", .fix = ""}), RunError);
}

TEST(ExpectError, NamesWhatIsMissing) {
  EXPECT_EQ(test::missing_pieces("abc def", {"abc", "def"}), "");
  EXPECT_EQ(test::missing_pieces("abc", {"abc", "xyz"}), "the error does not say \"xyz\"\nbut this:\nabc");
  EXPECT_FALSE(test::throws<UserError>([] {}, "UserError", {}));
  EXPECT_FALSE(test::throws<UserError>([] { throw RunError({.code = "test.run", .what = "", .where = "", .fix = ""}); },
                                       "UserError", {}));
}

}  // namespace
}  // namespace weft::error_test
