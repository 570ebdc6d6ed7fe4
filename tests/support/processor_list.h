// Lists of processors from their numbers.
#pragma once

#include <initializer_list>
#include <vector>

#include "weft/id.h"

namespace weft::test {

inline std::vector<ProcessorId> processors(std::initializer_list<int> numbers) {
  return std::vector<ProcessorId>(numbers.begin(), numbers.end());
}

}  // namespace weft::test
