// EXPECT_USER_ERROR(statement, "piece of what", "piece of fix"): the statement must throw that kind of error and its
// lines must hold every piece. Likewise EXPECT_RUN_ERROR and EXPECT_INTERNAL_ERROR.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "weft/error.h"

namespace weft::test {

// "" if `text` holds every piece, else a sentence that says which ones are missing.
std::string missing_pieces(const std::string& text, std::initializer_list<std::string> pieces);

template <class Kind>
::testing::AssertionResult throws(const std::function<void()>& statement, const char* kind,
                                  std::initializer_list<std::string> pieces) {
  try {
    statement();
  } catch (const Kind& error) {
    const std::string missing = missing_pieces(error.what(), pieces);
    if (missing.empty()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << missing;
  } catch (const std::exception& error) {
    return ::testing::AssertionFailure() << "expected " << kind << ", but this was thrown:\n" << error.what();
  }
  return ::testing::AssertionFailure() << "expected " << kind << ", but nothing was thrown";
}

}  // namespace weft::test

#define WEFT_EXPECT_THROWS(Kind, statement, ...) \
  EXPECT_TRUE(::weft::test::throws<::weft::Kind>([&] { statement; }, #Kind, {__VA_ARGS__}))
#define EXPECT_USER_ERROR(statement, ...) WEFT_EXPECT_THROWS(UserError, statement, __VA_ARGS__)
#define EXPECT_RUN_ERROR(statement, ...) WEFT_EXPECT_THROWS(RunError, statement, __VA_ARGS__)
#define EXPECT_INTERNAL_ERROR(statement, ...) WEFT_EXPECT_THROWS(InternalError, statement, __VA_ARGS__)
