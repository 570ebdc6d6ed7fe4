#include "api/print_text.h"

#include <algorithm>
#include <vector>

#include "base/str.h"

namespace weft {

std::string print_text(const std::string& label, const Array& array) {
  std::vector<std::string> numbers;
  constexpr std::int64_t kMost = 64;
  for (std::int64_t i = 0; i < std::min(array.elements(), kMost); ++i) numbers.push_back(str(array.number(i)));
  if (array.elements() > kMost) numbers.push_back(str("… ", array.elements() - kMost, " more"));
  return str(label, " ", array.dtype(), " ", array.shape(), ": ", join(numbers, " "));
}

}  // namespace weft
