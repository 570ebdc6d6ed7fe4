// Positions in containers: plain numbers, enumerators, and ids of one kind of thing with the containers that they index.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/id.h"

namespace weft {

template <class I>
requires std::integral<I> || std::is_enum_v<I>
constexpr std::size_t at(I index) { return static_cast<std::size_t>(index); }

// The ids from `first` to before `end`, ascending.
template <class I>
constexpr auto ids(I first, I end) {
  return std::views::iota(first.number(), end.number()) | std::views::transform([](int i) { return I(i); });
}

// The first `count` ids of a kind.
template <class I, std::integral Count>
constexpr auto ids(Count count) {
  return ids(I(0), I(count));
}

// One T for every thing of a kind.
template <class I, class T, class Sequence = std::vector<T>>
class Indexed : public Sequence {
 public:
  using Sequence::Sequence;

  decltype(auto) operator[](I id) { return Sequence::operator[](id.index()); }
  decltype(auto) operator[](I id) const { return Sequence::operator[](id.index()); }
  bool has(I id) const { return id && id.index() < this->size(); }
  I end_id() const { return I(this->size()); }  // of the next thing that is added
  // All ids, ascending.
  auto ids() const { return weft::ids(I(0), end_id()); }
  I add(T thing) {
    this->push_back(std::move(thing));
    return I(this->size() - 1);
  }
};

// Every id for itself.
template <class I>
Indexed<I, I> identity(std::size_t count) {
  Indexed<I, I> all(count);
  for (const I id : all.ids()) all[id] = id;
  return all;
}

}  // namespace weft
