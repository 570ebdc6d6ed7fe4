// Positions in containers: plain signed numbers, and ids of one kind of thing with the containers that they index.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <ostream>
#include <ranges>
#include <utility>
#include <vector>

namespace weft {

template <std::integral I>
constexpr std::size_t at(I index) {
  return static_cast<std::size_t>(index);
}

// The number of one thing among those of its kind. Ids of different kinds are different types.
template <class Kind>
class Id {
 public:
  constexpr Id() = default;  // of nothing
  template <std::integral I>
  constexpr explicit Id(I number) : number_(static_cast<int>(number)) {}

  constexpr int number() const { return number_; }
  constexpr explicit operator bool() const { return number_ >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
  constexpr Id& operator++() {
    ++number_;
    return *this;
  }
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.number_; }

 private:
  int number_ = -1;
};

// One T for every thing of a kind.
template <class I, class T>
class Indexed : public std::vector<T> {
 public:
  using std::vector<T>::vector;

  decltype(auto) operator[](I id) { return std::vector<T>::operator[](at(id.number())); }
  decltype(auto) operator[](I id) const { return std::vector<T>::operator[](at(id.number())); }
  bool has(I id) const { return id && at(id.number()) < this->size(); }
  // All ids, ascending.
  auto ids() const {
    return std::views::iota(std::size_t{0}, this->size()) | std::views::transform([](std::size_t i) { return I(i); });
  }
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

template <class Kind>
struct std::hash<weft::Id<Kind>> {
  std::size_t operator()(weft::Id<Kind> id) const { return std::hash<int>()(id.number()); }
};
