#include "layout/resolve.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/index.h"
#include "base/str.h"
#include "language/region.h"

namespace weft {

namespace {

std::vector<std::string> names_of(const Mesh& mesh) {
  std::vector<std::string> names;
  for (const Axis& axis : mesh.axes()) names.push_back(axis.name);
  return names;
}

// Without the dims that a rule cannot name.
std::vector<std::string> without_reserved(std::vector<std::string> dims) {
  std::erase_if(dims, [](const std::string& dim) { return dim.starts_with('#'); });
  return dims;
}

// "did you mean 'batch'? The dims are batch, heads; …"
std::string advice(std::string_view kind, std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  const std::string question = nearest.empty() ? "" : str("did you mean '", nearest, "'? ");
  return str(question, "the ", kind, " are: ", known.empty() ? "none" : join(known, ", "),
             "; end the rule with '?' if the dim or axis may be absent");
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::string_view kStorageLayout = "storage layout";

// The text of a layout or storage layout.
struct RuleText {
  std::string_view kind;
  const std::string& text;
  const std::vector<LayoutRule>& rules;
};

Place place_of(const RuleText& text, const Mesh& mesh) {
  return str(text.kind, " \"", text.text, "\", mesh ", mesh.axes().empty() ? "of one processor" : mesh.text());
}

Place place_of(const Subject& subject, const Mesh& mesh) {
  std::vector<std::string> parts;
  if (!subject.where.text.empty()) parts.push_back(subject.where.text);
  if (!subject.layout.empty()) parts.push_back(str("layout \"", subject.layout, "\""));
  parts.push_back(str("mesh ", mesh));
  return join(parts, ", ");
}

// The multiples of `parts` nearest to `size`: "8 or 12".
std::string nearest_multiples(std::int64_t size, std::int64_t parts) {
  const std::int64_t below = size / parts * parts;
  return below == 0 ? str(parts) : str(below, " or ", below + parts);
}

// The divisors of `size`, above one, nearest to `parts`: "2 or 5".
std::string nearest_divisors(std::int64_t size, std::int64_t parts) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = parts; d > 1; --d)
    if (size % d == 0) {
      divisors.push_back(d);
      break;
    }
  for (std::int64_t d = parts + 1; d <= size; ++d)
    if (size % d == 0) {
      divisors.push_back(d);
      break;
    }
  return join(divisors, " or ");
}

void check_divides(const Dim& dim, const Axes& axes, const Shape& shape, const Mesh& mesh,
                   const SubjectMaker& make_subject) {
  const int parts = mesh.size(axes);
  if (dim.size % parts == 0) return;
  const Subject subject = make_subject();
  // The dim of a microbatch is the user's dim divided by the number of microbatches; the dim after it counts them.
  const std::size_t next = shape.position(dim.name) + 1;
  const bool is_cut = next < shape.rank() && shape[next].name == kMicrobatchPart;
  const std::int64_t microbatches = is_cut ? shape[next].size : 1;
  const std::string of_batch =
      is_cut ? str(" (", dim.size * microbatches, " in ", microbatches, " microbatches)") : std::string();
  const std::string divisors = nearest_divisors(dim.size, parts);
  const std::string other_axes = divisors.empty() ? "" : str(", or lay it over ", divisors, " processors");
  throw UserError({.code = "layout.uneven-split",
                   .what = str(subject.name, " ", shape, " cannot be split evenly: dim ", dim.name, " of size ",
                               dim.size, of_batch, " over axis '", text_of(axes, mesh), "' of ", parts, " processors"),
                   .where = place_of(subject, mesh),
                   .fix = str("give ", dim.name, " a size of ",
                              nearest_multiples(dim.size * microbatches, parts * microbatches), other_axes)});
}

bool uses_an_axis_twice(const Sharding& sharding) {
  for (auto dim = sharding.dims.begin(); dim != sharding.dims.end(); ++dim)
    for (auto axis = dim->begin(); axis != dim->end(); ++axis) {
      const auto has_it = [&](const Axes& axes) { return std::ranges::find(axes, *axis) != axes.end(); };
      if (std::find(dim->begin(), axis, *axis) != axis || std::any_of(sharding.dims.begin(), dim, has_it)) return true;
    }
  return false;
}

DimAxes resolve(const RuleText& text, const Mesh& mesh, const std::vector<std::string>& known_dims) {
  DimAxes result;
  for (const LayoutRule& rule : text.rules) {
    if (rule.dim != kEveryDim && !contains(known_dims, rule.dim)) {
      if (rule.optional) continue;
      throw UserError({.code = text.kind == kStorageLayout ? "store.unknown-dim" : "layout.unknown-dim",
                       .what = str("the ", text.kind, " names dim '", rule.dim, "', which no tensor has"),
                       .where = place_of(text, mesh),
                       .fix = advice("dims", rule.dim, without_reserved(known_dims))});
    }
    Axes axes;
    for (const std::string& name : rule.axes) {
      const int axis = mesh.find(name);
      if (axis >= 0) axes.push_back(axis);
      if (axis < 0 && !rule.optional)
        throw UserError({.code = text.kind == kStorageLayout ? "store.unknown-axis" : "layout.unknown-axis",
                         .what = str("the ", text.kind, " names axis '", name, "', which the mesh does not have"),
                         .where = place_of(text, mesh),
                         .fix = advice("axes", name, names_of(mesh))});
    }
    if (!axes.empty() || rule.axes.empty()) result.set(rule.dim, axes);
  }
  return result;
}

}  // namespace

DimAxes::const_iterator DimAxes::find(std::string_view dim) const {
  return std::ranges::find(items_, dim, &Item::first);
}

const Axes& DimAxes::at(std::string_view dim) const {
  const auto found = find(dim);
  internal_check(found != end(), "the axes of a dim that has none");
  return found->second;
}

std::pair<DimAxes::const_iterator, bool> DimAxes::try_emplace(const std::string& dim, const Axes& axes) {
  const auto place = std::ranges::lower_bound(items_, dim, {}, &Item::first);
  if (place != items_.end() && place->first == dim) return {place, false};
  return {items_.emplace(place, dim, axes), true};
}

void DimAxes::set(const std::string& dim, const Axes& axes) {
  const auto [place, is_new] = try_emplace(dim, axes);
  if (!is_new) items_[static_cast<std::size_t>(place - begin())].second = axes;
}

DimAxes resolve(const Layout& layout, const Mesh& mesh, const std::vector<std::string>& known_dims) {
  return resolve({"layout", layout.text(), layout.rules()}, mesh, known_dims);
}

DimAxes resolve(const Store& store, const Mesh& mesh, const std::vector<std::string>& known_dims) {
  return resolve({kStorageLayout, store.text(), store.rules()}, mesh, known_dims);
}

void check_one_dim_per_axis(const DimAxes& axes, const Shape& dims, const Mesh& mesh,
                            const SubjectMaker& make_subject) {
  std::vector<std::vector<std::string_view>> laid(mesh.axes().size());
  bool twice = false;
  for (const Dim& dim : dims)
    if (const auto found = axes.find(dim.name); found != axes.end())
      for (int axis : found->second) {
        laid[at(axis)].push_back(dim.name);
        twice = twice || laid[at(axis)].size() > 1;
      }
  if (!twice) return;
  const Subject subject = make_subject();
  std::vector<std::string> free;
  for (std::size_t i = 0; i < laid.size(); ++i)
    if (laid[i].empty()) free.push_back(mesh.axes()[i].name);
  for (std::size_t i = 0; i < laid.size(); ++i)
    if (laid[i].size() > 1)
      throw UserError({.code = "layout.axis-used-twice",
                       .what = str(subject.name, " ", dims, " would be split twice over axis '", mesh.axes()[i].name,
                                   "': dims ", join(laid[i], " and "), " are both laid on it"),
                       .where = place_of(subject, mesh),
                       .fix = str("lay one of them on another axis (free: ", free.empty() ? "none" : join(free, ", "),
                                  "), or rename one dim with rename()")});
}

Sharding sharding_of(const DimAxes& axes, const Shape& shape, const Mesh& mesh, const SubjectMaker& subject) {
  Sharding sharding = unsplit(shape);
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (const auto found = axes.find(shape[i].name); found != axes.end()) sharding.dims[i] = found->second;
  if (uses_an_axis_twice(sharding)) check_one_dim_per_axis(axes, shape, mesh, subject);
  for (std::size_t i = 0; i < shape.rank(); ++i) check_divides(shape[i], sharding.dims[i], shape, mesh, subject);
  return sharding;
}

}  // namespace weft
