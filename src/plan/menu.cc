#include "plan/menu.h"

#include <algorithm>
#include <bit>
#include <ranges>

namespace weft {

namespace {

// As many dims as one axis can split besides the batch, in every way; also without the dims of small variables.
std::vector<DimSet> model_roles(const MenuSource& source, int size, DimSet allowed) {
  std::vector<DimSet> roles = source.rules.roles(size, allowed);
  const auto count = [](DimSet role) { return std::popcount(role); };
  const int most = std::ranges::max(roles | std::views::transform(count));
  std::erase_if(roles, [&](DimSet role) { return count(role) < most; });
  for (std::size_t i = 0, largest = roles.size(); i < largest; ++i)
    if (const DimSet heavy = roles[i] & source.heavy; std::ranges::find(roles, heavy) == roles.end())
      roles.push_back(heavy);
  return roles;
}

}  // namespace

std::vector<Choice> menu_of(const MenuSource& source, const std::vector<int>& sizes, DimSet allowed, bool allow_store) {
  const int found = source.rules.find(source.batch);
  const DimSet data = found < 0 ? 0 : (DimSet{1} << found) & allowed, others = found < 0 ? allowed : allowed & ~data;
  std::vector<Choice> all;
  if (sizes.size() == 1) {
    for (const DimSet model : model_roles(source, sizes[0], others)) all.push_back({.axes = {{sizes[0], model}}});
    if (data)
      for (int level = 0; level <= (allow_store ? 3 : 0); ++level)
        all.push_back({.axes = {{sizes[0], data}}, .stored = level ? AxisSet{1} : AxisSet{0}, .level = level});
  } else if (sizes.size() == 2 && data) {
    for (const DimSet model : model_roles(source, sizes[1], others))
      all.push_back({.axes = {{sizes[0], data}, {sizes[1], model}}});
    for (const DimSet model : model_roles(source, sizes[0], others))
      all.push_back({.axes = {{sizes[0], model}, {sizes[1], data}}});
  }
  std::erase_if(all, [&](const Choice& choice) { return !divides(source.rules, choice.axes); });
  return all;
}

}  // namespace weft
