#include "plan/menu.h"

#include <algorithm>
#include <bit>
#include <ranges>

namespace weft {

namespace {

// As many dims as one axis can split besides the batch, in every way.
std::vector<DimSet> model_roles(const SplitRules& rules, int size, DimSet allowed) {
  std::vector<DimSet> roles = rules.roles(size, allowed);
  const auto count = [](DimSet role) { return std::popcount(role); };
  const int most = std::ranges::max(roles | std::views::transform(count));
  std::erase_if(roles, [&](DimSet role) { return count(role) < most; });
  return roles;
}

}  // namespace

std::vector<Choice> menu_of(const SplitRules& rules, const std::string& batch, const std::vector<int>& sizes,
                            DimSet allowed, bool allow_store) {
  const int found = rules.find(batch);
  const DimSet data = found < 0 ? 0 : (DimSet{1} << found) & allowed, others = found < 0 ? allowed : allowed & ~data;
  std::vector<Choice> all;
  if (sizes.size() == 1) {
    for (const DimSet model : model_roles(rules, sizes[0], others)) all.push_back({.axes = {{sizes[0], model}}});
    if (data)
      for (int level = 0; level <= (allow_store ? 3 : 0); ++level)
        all.push_back({.axes = {{sizes[0], data}}, .stored = level ? AxisSet{1} : AxisSet{0}, .level = level});
  } else if (sizes.size() == 2 && data) {
    for (const DimSet model : model_roles(rules, sizes[1], others))
      all.push_back({.axes = {{sizes[0], data}, {sizes[1], model}}});
    for (const DimSet model : model_roles(rules, sizes[0], others))
      all.push_back({.axes = {{sizes[0], model}, {sizes[1], data}}});
  }
  std::erase_if(all, [&](const Choice& choice) { return !divides(rules, choice.axes); });
  return all;
}

}  // namespace weft
