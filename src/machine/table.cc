#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "weft/error.h"
#include "weft/machine.h"

namespace weft {

namespace {

// The two neighbours of a size on an axis, and how far it is from the first to the second.
struct Place1d {
  std::size_t first = 0, second = 0;
  double share = 0;
};

Place1d place_on(const std::vector<double>& axis, double size) {
  if (size <= axis.front()) return {};
  if (size >= axis.back()) return {axis.size() - 1, axis.size() - 1, 0};
  const auto above = static_cast<std::size_t>(std::upper_bound(axis.begin(), axis.end(), size) - axis.begin());
  return {above - 1, above, std::log(size / axis[above - 1]) / std::log(axis[above] / axis[above - 1])};
}

double logarithm_at(const Table& table, std::span<const double> sizes, std::size_t axis, std::size_t row) {
  if (axis == table.axes.size()) return std::log(table.values[row]);
  const Place1d place = place_on(table.axes[axis], sizes[axis]);
  const std::size_t inner = row * table.axes[axis].size();
  const double first = logarithm_at(table, sizes, axis + 1, inner + place.first);
  if (place.share == 0) return first;
  return first + place.share * (logarithm_at(table, sizes, axis + 1, inner + place.second) - first);
}

}  // namespace

double Table::at(std::span<const double> sizes) const {
  internal_check(sizes.size() == axes.size(), "a table is asked for another number of sizes");
  return std::exp(logarithm_at(*this, sizes, 0, 0));
}

}  // namespace weft
