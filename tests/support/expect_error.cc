#include "support/expect_error.h"

namespace weft::test {

std::string missing_pieces(const std::string& text, std::initializer_list<std::string> pieces) {
  std::string missing;
  for (const std::string& piece : pieces)
    if (text.find(piece) == std::string::npos) missing += "the error does not say \"" + piece + "\"\n";
  return missing.empty() ? missing : missing + "but this:\n" + text;
}

}  // namespace weft::test
