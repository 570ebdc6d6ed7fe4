#include "plan/choice.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"

namespace weft {

namespace {

std::string unused_name(const std::string& name, const std::vector<std::string>& used) {
  if (std::ranges::find(used, name) == used.end()) return name;
  for (int i = 2;; ++i)
    if (const std::string next = str(name, i); std::ranges::find(used, next) == used.end()) return next;
}

// The axes of the storage layout, those that split the batch last. The order depends on that of the mesh only where axes
// split the same dims.
std::vector<std::size_t> stored_in_order(const Choice& choice, DimSet batch) {
  std::vector<std::size_t> stored;
  for (std::size_t i = 0; i < choice.axes.size(); ++i)
    if (choice.stored >> i & 1) stored.push_back(i);
  const auto key = [&](std::size_t i) { return std::pair((choice.axes[i].dims & batch) != 0, ~choice.axes[i].dims); };
  std::ranges::stable_sort(stored, {}, key);
  return stored;
}

// "data" splits the batch, "model" other dims, "spare" nothing.
std::vector<std::string> axis_names(const Choice& choice, DimSet batch) {
  std::vector<std::string> names = choice.names;
  names.resize(choice.axes.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) continue;
    const DimSet dims = choice.axes[i].dims;
    const bool splits_nothing = dims == 0 && !(choice.stored >> i & 1);
    names[i] = unused_name(dims & batch ? "data" : splits_nothing ? "spare" : dims ? "model" : "store", names);
  }
  return names;
}

void factorise(int rest, int most_axes, bool order_matters, std::vector<int>& axes,
               std::vector<std::vector<int>>& all) {
  if (rest == 1) return all.push_back(axes);
  if (most_axes == 0) return;
  const int least = order_matters || axes.empty() ? 2 : axes.back();
  for (int size = least; size <= rest; ++size) {
    if (rest % size != 0) continue;
    axes.push_back(size);
    factorise(rest / size, most_axes - 1, order_matters, axes, all);
    axes.pop_back();
  }
}

}  // namespace

VariableDims variable_dims(const Shape& shape, const SplitRules& rules) {
  VariableDims dims;
  for (const Dim& dim : shape) dims.emplace_back(dim.size, rules.find(dim.name));
  return dims;
}

AxisSet stored_axes(const Choice& choice, const VariableDims& dims) {
  if (choice.level == 0) return 0;
  DimSet own = 0;
  for (const auto& [size, dim] : dims)
    if (dim >= 0) own |= DimSet{1} << dim;
  AxisSet axes = 0;
  for (std::size_t i = 0; i < choice.axes.size(); ++i)
    if ((choice.stored >> i & 1) && !(choice.axes[i].dims & own)) axes |= AxisSet{1} << i;
  return axes;
}

std::size_t stored_dim(const Choice& choice, const VariableDims& dims) {
  const AxisSet axes = stored_axes(choice, dims);
  const auto divides = [&](const std::pair<std::int64_t, int>& dim) {
    std::int64_t parts = 1;
    for (std::size_t i = 0; i < choice.axes.size(); ++i)
      if ((axes >> i & 1) || (dim.second >= 0 && (choice.axes[i].dims >> dim.second & 1))) parts *= choice.axes[i].size;
    return dim.first % parts == 0;
  };
  return static_cast<std::size_t>(std::ranges::find_if(dims, divides) - dims.begin());
}

bool divides(const SplitRules& rules, const std::vector<AxisRole>& axes, int dim, std::int64_t more) {
  for (std::size_t d = 0; d < rules.dims().size(); ++d) {
    std::int64_t parts = dim == static_cast<int>(d) ? more : 1;
    for (const AxisRole& axis : axes)
      if (axis.dims >> d & 1) parts *= axis.size;
    if (rules.divisor(d) % parts != 0) return false;
  }
  return true;
}

std::vector<int> sizes_of(const std::vector<AxisRole>& axes) {
  std::vector<int> sizes;
  for (const AxisRole& axis : axes) sizes.push_back(axis.size);
  return sizes;
}

PlanChoice named(const Choice& choice, const SplitRules& rules, const std::string& batch) {
  const int batch_dim = rules.find(batch);
  const DimSet batch_dims = batch_dim < 0 ? 0 : DimSet{1} << batch_dim;
  const std::vector<std::string> names = axis_names(choice, batch_dims);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < names.size(); ++i) axes.push_back({names[i], choice.axes[i].size});
  std::vector<std::string> stored;
  for (const std::size_t i : stored_in_order(choice, batch_dims)) stored.push_back(names[i]);
  std::vector<std::pair<std::string, std::string>> groups;  // axes, dims: dims with the same axes share a rule
  for (std::size_t d = 0; d < rules.dims().size(); ++d) {
    std::vector<std::string> over;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (choice.axes[i].dims >> d & 1) over.push_back(names[i]);
    if (over.empty()) continue;
    const std::string text = join(over, "+");
    const auto found = std::ranges::find(groups, text, &std::pair<std::string, std::string>::first);
    if (found == groups.end()) groups.emplace_back(text, rules.dims()[d]);
    else found->second += "," + rules.dims()[d];
  }
  std::vector<std::string> words;
  for (const auto& [over, dims] : groups) words.push_back(str(dims, ":", over));
  PlanChoice result;
  result.mesh = Mesh(axes);
  result.layout = Layout::parse(join(words, " "));
  if (choice.level > 0) result.store = Store::parse(str("*:", join(stored, "+")), choice.level);
  result.microbatches = choice.microbatches;
  result.recompute = choice.recompute;
  return result;
}

std::vector<std::vector<int>> factorisations(int processors, int most_axes, bool order_matters) {
  std::vector<std::vector<int>> all;
  std::vector<int> axes;
  factorise(processors, most_axes, order_matters, axes, all);
  return all;
}

}  // namespace weft
