// Random choices that are the same on every machine: splitmix64, and no standard distributions.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace weft::random_graphs {

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(mixed(seed)) {}

  std::uint64_t next() { return mixed(state_++); }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }  // both included
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  const char* pick(std::initializer_list<const char*> from) { return pick(std::vector<const char*>(from)); }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[static_cast<std::size_t>(below(static_cast<int>(i)))]);
  }

 private:
  std::uint64_t state_;
};

// Numbers in [low, high), whole ones if `whole`; the emitted C++ holds a copy of this function.
inline Array filled(const Shape& shape, DType dtype, double low, double high, bool whole, std::int64_t stream) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double unit =
        static_cast<double>(mixed(mixed(static_cast<std::uint64_t>(stream)) + static_cast<std::uint64_t>(i)) >> 11) *
        0x1p-53;
    const double value = low + unit * (high - low);
    array.set(i, whole ? std::floor(value) : value);
  }
  return array;
}

// Ordinary numbers, and among them zeros of both signs, infinities, subnormals and numbers close to the ends of f32. Copied
// into the emitted C++ as well.
inline Array extremes(const Shape& shape, DType dtype, double low, double high, std::int64_t stream) {
  static const double kSpecial[] = {0, -0.0, INFINITY, -INFINITY, 1e30, -1e30, 1e-30, 1e-40, -1e-42, 1, -1, 1e15};
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const std::uint64_t word = mixed(mixed(static_cast<std::uint64_t>(stream)) + static_cast<std::uint64_t>(i));
    const double unit = static_cast<double>(word >> 11) * 0x1p-53;
    array.set(i, word % 3 == 0 ? kSpecial[word / 3 % 12] : low + unit * (high - low));
  }
  return array;
}

}  // namespace weft::random_graphs
