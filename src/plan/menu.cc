#include "plan/menu.h"

#include <algorithm>
#include <bit>

namespace weft {

namespace {

// As many dims as one axis can split besides the batch.
DimSet model_dims(const SplitRules& rules, int size, DimSet allowed) {
  const std::vector<DimSet> roles = rules.roles(size, allowed);
  return *std::ranges::max_element(roles, {}, [](DimSet role) { return std::popcount(role); });
}

}  // namespace

std::vector<Choice> menu_of(const SplitRules& rules, const std::string& batch, const std::vector<int>& sizes,
                            DimSet allowed, bool allow_store) {
  const int found = rules.find(batch);
  const DimSet data = found < 0 ? 0 : (DimSet{1} << found) & allowed, others = found < 0 ? allowed : allowed & ~data;
  const auto model = [&](std::size_t axis) { return AxisRole{sizes[axis], model_dims(rules, sizes[axis], others)}; };
  std::vector<Choice> all;
  if (sizes.size() == 1) {
    all.push_back({.axes = {model(0)}});
    if (data)
      for (int level = 0; level <= (allow_store ? 3 : 0); ++level)
        all.push_back({.axes = {{sizes[0], data}}, .stored = level ? AxisSet{1} : AxisSet{0}, .level = level});
  } else if (sizes.size() == 2 && data) {
    all.push_back({.axes = {{sizes[0], data}, model(1)}});
    all.push_back({.axes = {model(0), {sizes[1], data}}});
  }
  std::erase_if(all, [&](const Choice& choice) { return !divides(rules, choice.axes); });
  return all;
}

}  // namespace weft
