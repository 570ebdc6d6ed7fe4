// A program outside of the tree of Weft: it sees the installed headers and library, nothing else.
#include <iostream>

#include "weft/dtype.h"
#include "weft/error.h"

int main() {
  try {
    weft::dtype_of("f23");
  } catch (const weft::UserError& error) {
    std::cout << error.what() << '\n';
    return weft::size_of(weft::DType::kBF16) == 2 ? 0 : 1;
  }
  return 1;
}
