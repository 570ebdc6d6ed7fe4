// Id: the number of one thing among all things of its kind, such as a processor of a mesh.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <ostream>

namespace weft {

// Ids of different kinds are different types.
template <class Kind>
class Id {
 public:
  constexpr Id() = default;  // of nothing
  template <std::integral I>
  constexpr explicit Id(I number) : number_(static_cast<int>(number)) {}

  constexpr int number() const { return number_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(number_); }
  constexpr explicit operator bool() const { return number_ >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.number_; }

 private:
  int number_ = -1;
};

// A processor of a mesh, row-major over its axes.
using ProcessorId = Id<class Processor>;

}  // namespace weft

template <class Kind>
struct std::hash<weft::Id<Kind>> {
  std::size_t operator()(weft::Id<Kind> id) const { return std::hash<int>()(id.number()); }
};
