// Every pointwise function, once. Floats are computed in double here and rounded to their dtype; integers in int64,
// wrapping; bools are 0 and 1.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

// The functions of one name over each kind of number; null where it has none.
struct Pointwise {
  std::string_view name;
  int arity = 1;
  double (*f1)(double) = nullptr;
  double (*f2)(double, double) = nullptr;
  std::int64_t (*i1)(std::int64_t) = nullptr;
  std::int64_t (*i2)(std::int64_t, std::int64_t) = nullptr;
};

// Null if there is none; "select" and "cast" belong to the map itself.
const Pointwise* find_pointwise(std::string_view name);

}  // namespace weft
