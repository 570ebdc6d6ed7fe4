// From layout text to axes: which axes each dim name is split over on a given mesh, and whether a tensor can be split
// so.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/sharding.h"
#include "weft/error.h"
#include "weft/mesh.h"

namespace weft {

// Dim name -> axes, for the dims that a layout splits or (empty axes) declares unsplit.
// Sorted by name; there are few, so they lie in one list.
class DimAxes {
 public:
  using Item = std::pair<std::string, Axes>;
  using const_iterator = std::vector<Item>::const_iterator;

  DimAxes() = default;
  DimAxes(std::initializer_list<Item> items) {
    for (const auto& [dim, axes] : items) set(dim, axes);
  }

  const_iterator begin() const { return items_.begin(); }
  const_iterator end() const { return items_.end(); }
  const_iterator find(std::string_view dim) const;
  bool contains(std::string_view dim) const { return find(dim) != end(); }
  const Axes& at(std::string_view dim) const;  // InternalError if absent
  // The item of the dim, and whether it is new: a dim that is there keeps its axes.
  std::pair<const_iterator, bool> try_emplace(const std::string& dim, const Axes& axes);
  void set(const std::string& dim, const Axes& axes);
  void reserve(std::size_t dims) { items_.reserve(dims); }
  bool operator==(const DimAxes&) const = default;

 private:
  std::vector<Item> items_;
};

// Checks every rule: UserError for an unknown dim (not in `known_dims`) or axis. An optional rule is dropped if its dim
// is absent, and loses the axes that are absent; with none left it is dropped. Rules for axes of size 1 are kept.
DimAxes resolve(const Layout& layout, const Mesh& mesh, const std::vector<std::string>& known_dims);

// The same for a storage layout; the axes of `*` have the key kEveryDim.
inline const std::string kEveryDim = "*";
DimAxes resolve(const Store& store, const Mesh& mesh, const std::vector<std::string>& known_dims);

// The subject of the errors below: "tensor 'scores'" or "einsum", its place, and the layout's text if there is one.
struct Subject {
  std::string name;
  Place where = {};
  std::string layout = {};
};

using SubjectMaker = std::function<Subject()>;  // called only if there is an error

// The sharding of a (global) shape under these axes. UserError, with the fix, if two dims would be on one axis or a
// size does not divide.
Sharding sharding_of(const DimAxes& axes, const Shape& shape, const Mesh& mesh, const SubjectMaker& subject);

// UserError if two dims of `dims` (all dims of one op) are on one axis.
void check_one_dim_per_axis(const DimAxes& axes, const Shape& dims, const Mesh& mesh, const SubjectMaker& subject);

}  // namespace weft
