// Dim and Shape: the named dims of a tensor.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The largest number of elements of a tensor: the bytes of very many tensors of this size still fit 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 44;

// A tensor dimension: a name of letters, digits, '_', '.', '/' or '#', which does not begin with '#', and a size from
// one to kMostElements.
struct Dim {
  std::string name;
  std::int64_t size = 1;
  bool operator==(const Dim&) const = default;
};

// An ordered list of dims with different names. The order is the row-major order of storage.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : Shape(std::vector<Dim>(dims)) {}
  Shape(std::vector<Dim> dims);  // UserError for a repeated or malformed name or a size out of range

  const std::vector<Dim>& dims() const { return dims_; }
  std::size_t rank() const { return dims_.size(); }
  bool empty() const { return dims_.empty(); }
  std::int64_t elements() const;  // UserError if it does not fit 64 bits
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  const Dim& operator[](std::size_t i) const { return dims_[i]; }

  bool has(std::string_view name) const { return find(name).has_value(); }
  bool has(const Dim& dim) const;  // name and size
  std::optional<std::size_t> find(std::string_view name) const;
  std::size_t position(std::string_view name) const;  // InternalError if absent
  const Dim& dim(std::string_view name) const { return dims_[position(name)]; }
  std::int64_t size_of(std::string_view name) const { return dim(name).size; }
  std::vector<std::string> names() const;

  Shape plus(const Shape& more) const;    // these dims, then the dims of `more` whose names are new
  Shape minus(const Shape& fewer) const;  // without the dims that `fewer` names
  Shape renamed(std::string_view from, std::string_view to) const;
  Shape resized(std::string_view name, std::int64_t size) const;
  // These dims with the dim `name` replaced by the dims of `by`.
  Shape replaced(std::string_view name, const Shape& by) const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<Dim> dims_;
};

bool same_dims(const Shape& a, const Shape& b);  // equal up to order

std::ostream& operator<<(std::ostream& out, const Dim& dim);      // batch=64
std::ostream& operator<<(std::ostream& out, const Shape& shape);  // [batch=64 heads=16]

}  // namespace weft
