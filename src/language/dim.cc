#include "weft/dim.h"

#include <algorithm>

#include "base/str.h"
#include "language/shape_math.h"
#include "weft/error.h"

namespace weft {

namespace {

bool is_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
           c == '/' || c == '#';
  });
}

void check_dims(const std::vector<Dim>& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!is_name(dims[i].name))
      throw UserError({.code = "dim.bad-name",
                       .what = str("'", dims[i].name, "' cannot be the name of a dim"),
                       .where = str("shape [", join(dims, " "), "]"),
                       .fix = "give it at least one character, and only letters, digits, '_', '.' and '/'"});
    if (dims[i].size < 1)
      throw UserError({.code = "dim.size-too-small",
                       .what = str("dim '", dims[i].name, "' has size ", dims[i].size),
                       .where = str("shape [", join(dims, " "), "]"),
                       .fix = "give it a size of at least 1"});
    if (dims[i].size > kMostElements)
      throw UserError({.code = "dim.size-too-large",
                       .what = str("dim '", dims[i].name, "' has size ", dims[i].size),
                       .where = str("shape [", join(dims, " "), "]"),
                       .fix = str("give it at most ", kMostElements)});
    for (std::size_t j = 0; j < i; ++j)
      if (dims[j].name == dims[i].name)
        throw UserError({.code = "dim.duplicate",
                         .what = str("dim '", dims[i].name, "' occurs twice in one shape"),
                         .where = str("shape [", join(dims, " "), "]"),
                         .fix = "rename one of the two dims with rename(): a name may occur once in a tensor"});
  }
}

}  // namespace

Shape::Shape(std::vector<Dim> dims) : dims_(std::move(dims)) { check_dims(dims_); }

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const Dim& dim : dims_)
    if (__builtin_mul_overflow(product, dim.size, &product))
      throw UserError({.code = "shape.too-many-elements",
                       .what = str("a tensor ", *this, " has ", volume(*this), " elements"),
                       .where = str("shape ", *this),
                       .fix = str("make its dims smaller: a tensor has at most ", kMostElements, " elements")});
  return product;
}

bool Shape::has(const Dim& dim) const {
  const auto position = find(dim.name);
  return position && dims_[*position] == dim;
}

std::optional<std::size_t> Shape::find(std::string_view name) const {
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i].name == name) return i;
  return std::nullopt;
}

std::size_t Shape::position(std::string_view name) const {
  const auto position = find(name);
  if (!position) throw InternalError(str("no dim '", name, "' in ", *this));
  return *position;
}

std::vector<std::string> Shape::names() const {
  std::vector<std::string> names;
  for (const Dim& dim : dims_) names.push_back(dim.name);
  return names;
}

Shape Shape::plus(const Shape& more) const {
  std::vector<Dim> dims = dims_;
  for (const Dim& dim : more)
    if (!has(dim.name)) dims.push_back(dim);
  return dims;
}

Shape Shape::minus(const Shape& fewer) const {
  std::vector<Dim> dims;
  for (const Dim& dim : dims_)
    if (!fewer.has(dim.name)) dims.push_back(dim);
  return dims;
}

Shape Shape::renamed(std::string_view from, std::string_view to) const {
  std::vector<Dim> dims = dims_;
  dims[position(from)].name = to;
  return dims;
}

Shape Shape::resized(std::string_view name, std::int64_t size) const {
  std::vector<Dim> dims = dims_;
  dims[position(name)].size = size;
  return dims;
}

Shape Shape::replaced(std::string_view name, const Shape& by) const {
  std::vector<Dim> dims = dims_;
  const auto at = dims.begin() + static_cast<std::ptrdiff_t>(position(name));
  dims.insert(dims.erase(at), by.begin(), by.end());
  return dims;
}

bool same_dims(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::all_of(a.begin(), a.end(), [&](const Dim& dim) { return b.has(dim); });
}

double volume(const Shape& shape) {
  double product = 1;
  for (const Dim& dim : shape) product *= static_cast<double>(dim.size);
  return product;
}

std::vector<std::int64_t> dense_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.rank());
  std::int64_t stride = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i].size;
  }
  return strides;
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) { return out << dim.name << "=" << dim.size; }
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << "[" << join(shape, " ") << "]"; }

}  // namespace weft
