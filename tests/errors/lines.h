// The lines of an error but its code, for tests that pin all of them.
#pragma once

#include <string>

#include "base/str.h"
#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::test {

// "file:line" of the line it is called on. Inside one EXPECT_USER_ERROR that is also the site of the statement.
inline std::string here(Site site = Site::current()) { return to_string(site); }

inline std::string lines(const std::string& what, const std::string& where, const std::string& fix) {
  return str("error: ", what, "\nwhere: ", where, "\nfix:   ", fix);
}

}  // namespace weft::test
