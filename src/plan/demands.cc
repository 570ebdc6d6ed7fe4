#include "plan/demands.h"

#include <algorithm>
#include <chrono>

#include "base/index.h"
#include "base/str.h"
#include "weft/detail/progress.h"
#include "weft/detail/words.h"

namespace weft {

namespace {

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

std::string nearest_text(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : str("did you mean '", nearest, "'? ");
}

std::size_t dim_of(const std::string& dim, const std::string& option, const SplitRules& rules) {
  if (const int i = rules.find(dim); i >= 0) return at(i);
  const bool is_known = contains(rules.all_dims(), dim);
  if (is_known)
    throw UserError({.code = "plan.dim-cannot-be-split",
                     .what = str("dim '", dim, "' cannot be split: an op needs it whole, or its size is 1"),
                     .where = option,
                     .fix = str("name dims that can be split: ", join(rules.dims(), ", "))});
  throw UserError(
      {.code = "plan.unknown-dim",
       .what = str("no tensor of the graph has dim '", dim, "'"),
       .where = option,
       .fix = str(nearest_text(dim, rules.dims()), "the dims that can be split are: ", join(rules.dims(), ", "))});
}

}  // namespace

void check_processors(const Machine& machine, int processors, const std::optional<Mesh>& mesh) {
  const int meshed = mesh ? mesh->size() : processors;
  if (processors < 1 || meshed != processors)
    throw UserError({.code = "plan.bad-processors",
                     .what = str("cannot plan for ", processors, " processors",
                                 mesh ? str(" on a mesh of ", meshed) : std::string()),
                     .where = "--processors",
                     .fix = "give a number from 1 on, and as many as the mesh has if there is one"});
  if (processors > machine.processors)
    throw UserError(
        {.code = "plan.too-many-processors",
         .what = str("machine ", machine.name, " has ", machine.processors, " processors, not ", processors),
         .where = "--processors",
         .fix = str("ask for up to ", machine.processors, ", or give a larger machine")});
}

namespace {

// Collectives take the same along every axis of a size if all processors are joined alike.
bool order_matters(const Machine& machine) {
  if (machine.links.size() > 1) return true;
  return !machine.links.empty() && machine.links[0].topology != Topology::kSwitch &&
         machine.links[0].topology != Topology::kSharedMemory;
}

// On a ring or torus, collectives over two axes and over one axis in their place take different times.
bool merges_axes(const Machine& machine) {
  return std::ranges::none_of(machine.links, [](const Link& link) {
    return link.topology == Topology::kRing || link.topology == Topology::kTorus;
  });
}

// Every way to give the pinned axes' names to axes of the mesh.
void name_axes(const std::vector<int>& sizes, const std::vector<std::string>& names, std::size_t next,
               std::vector<std::string>& given, std::vector<MeshShape>& all) {
  if (next == names.size()) return all.push_back({sizes, given});
  for (std::string& place : given) {
    if (!place.empty()) continue;
    place = names[next];
    name_axes(sizes, names, next + 1, given, all);
    place.clear();
  }
}

std::vector<std::string> pinned_axes(const DemandSource& s, const Layout& fix) {
  std::vector<std::string> names;
  for (const LayoutRule& rule : fix.rules())
    for (const std::string& axis : rule.axes) {
      if (s.options.mesh && s.options.mesh->find(axis) < 0)
        throw UserError({.code = "plan.unknown-axis",
                         .what = str("the mesh has no axis '", axis, "'"),
                         .where = str("--fix \"", s.options.fix, "\", mesh ", *s.options.mesh),
                         .fix = "name an axis of the mesh, or leave the mesh out: then --fix names its axes"});
      if (!contains(names, axis)) names.push_back(axis);
    }
  if (names.size() > static_cast<std::size_t>(s.options.most_axes))
    throw UserError({.code = "plan.too-many-axes",
                     .what = str("the fixed rules name ", names.size(), " axes: ", join(names, ", ")),
                     .where = str("--fix \"", s.options.fix, "\""),
                     .fix = str("name at most ", s.options.most_axes, " axes")});
  return names;
}

std::vector<MeshShape> meshes_of(const DemandSource& s, const Layout& fix, bool order) {
  const std::vector<std::string> names = pinned_axes(s, fix);
  std::vector<MeshShape> all;
  if (s.options.mesh) {
    MeshShape& only = all.emplace_back();
    for (const Axis& axis : s.options.mesh->axes()) {
      if (axis.size == 1) continue;  // splits nothing
      only.sizes.push_back(axis.size);
      only.names.push_back(axis.name);
    }
    constexpr std::size_t kMostAxes = 8;  // sets of axes are counted
    if (only.sizes.size() > kMostAxes)
      throw UserError(
          {.code = "plan.too-large-mesh",
           .what = str("the mesh has ", only.sizes.size(), " axes, and a search goes through all sets of axes"),
           .where = str("--mesh \"", *s.options.mesh, "\""),
           .fix = str("give at most ", kMostAxes, " axes of more than one processor")});
    return all;
  }
  for (const std::vector<int>& sizes : factorisations(s.processors, s.options.most_axes, order)) {
    std::vector<std::string> given(sizes.size());
    name_axes(sizes, names, 0, given, all);
  }
  return all;
}

void check_contradiction(const DemandSource& s, const LayoutRule& rule) {
  const bool is_forbidden = contains(s.options.forbid, rule.dim);
  if (rule.axes.empty() || (!is_forbidden && (s.options.allow.empty() || contains(s.options.allow, rule.dim)))) return;
  throw UserError(
      {.code = "plan.contradiction",
       .what = str(
           "dim '", rule.dim, "' must be split by --fix \"", s.options.fix, "\", and must not be by ",
           is_forbidden ? str("--forbid ", join(s.options.forbid, ",")) : str("--allow ", join(s.options.allow, ","))),
       .where = str("--fix \"", s.options.fix, "\""),
       .fix = "give up one of the two"});
}

DimSet allowed_dims(const DemandSource& s) {
  DimSet allowed = 0;
  for (const std::string& dim : s.options.allow) allowed |= DimSet{1} << dim_of(dim, "--allow", s.rules);
  if (s.options.allow.empty())
    for (std::size_t i = 0; i < s.rules.dims().size(); ++i) allowed |= DimSet{1} << i;
  for (const std::string& dim : s.options.forbid) allowed &= ~(DimSet{1} << dim_of(dim, "--forbid", s.rules));
  return allowed;
}

}  // namespace

Demands demands_of(const DemandSource& s) {
  check_processors(s.machine, s.processors, s.options.mesh);
  const Layout fix = Layout::parse(s.options.fix);
  Demands demands;
  demands.order_matters = order_matters(s.machine);
  demands.merges_equal_axes = !s.options.mesh && merges_axes(s.machine);
  demands.allowed = allowed_dims(s);
  demands.meshes = meshes_of(s, fix, demands.order_matters);
  for (const LayoutRule& rule : fix.rules()) {
    const std::size_t dim = dim_of(rule.dim, str("--fix \"", s.options.fix, "\""), s.rules);
    check_contradiction(s, rule);
    demands.pinned.push_back({dim, rule.axes});
    demands.allowed |= DimSet{1} << dim;
  }
  demands.allow_store = s.options.allow_store;
  demands.memory_bytes = s.options.memory_bytes > 0 ? s.options.memory_bytes : s.machine.memory_bytes;
  demands.objective = s.options.objective;
  return demands;
}

namespace {

// The demands that the user can give up, one by one.
std::vector<std::string> demand_texts(const DemandSource& s, const Demands& demands) {
  std::vector<std::string> texts;
  if (demands.memory_bytes > 0) texts.push_back(str("memory of ", bytes_text(demands.memory_bytes)));
  const Layout fix = Layout::parse(s.options.fix);
  for (const LayoutRule& rule : fix.rules())
    texts.push_back(str("--fix \"", rule.dim, ":", rule.axes.empty() ? "-" : join(rule.axes, "+"), "\""));
  for (const std::string& dim : s.options.forbid) texts.push_back(str("--forbid ", dim));
  if (!s.options.allow.empty()) texts.push_back(str("--allow ", join(s.options.allow, ",")));
  if (s.options.mesh) texts.push_back(str("--mesh \"", *s.options.mesh, "\""));
  return texts;
}

// The options with only those demands whose bit is set, in the order of demand_texts.
PlanOptions only(const DemandSource& s, const Demands& demands, unsigned kept) {
  PlanOptions options = s.options;
  unsigned bit = 1;
  const auto keeps = [&] { return (kept & std::exchange(bit, bit << 1)) != 0; };
  constexpr std::int64_t kAnyMemory = std::int64_t{1} << 62;
  if (demands.memory_bytes > 0) options.memory_bytes = keeps() ? demands.memory_bytes : kAnyMemory;
  std::vector<std::string> rules, forbid;
  const Layout fix = Layout::parse(s.options.fix);
  for (const LayoutRule& rule : fix.rules())
    if (keeps()) rules.push_back(str(rule.dim, ":", rule.axes.empty() ? "-" : join(rule.axes, "+")));
  options.fix = join(rules, " ");
  for (const std::string& dim : s.options.forbid)
    if (keeps()) forbid.push_back(dim);
  options.forbid = forbid;
  if (!s.options.allow.empty() && !keeps()) options.allow.clear();
  if (s.options.mesh && !keeps()) options.mesh.reset();
  options.objective = Objective::kMemory;
  return options;
}

}  // namespace

UserError nothing_found_yet(const DemandSource& s, const Demands& demands, double seconds) {
  const std::string limit =
      demands.memory_bytes > 0 ? str(" that fits into ", bytes_text(demands.memory_bytes)) : std::string();
  return UserError(
      {.code = "plan.stopped-too-early",
       .what = str("the search was stopped after ", duration_text(seconds), ", before it found a candidate", limit),
       .where = str("machine ", s.machine.name, ", ", s.processors, " processors"),
       .fix = "give it more time (--seconds), more memory (--memory) or more processors"});
}

UserError nothing_fits(const DemandSource& s, const Demands& demands, const Found& found, Search& search) {
  const std::vector<std::string> texts = demand_texts(s, demands);
  constexpr double kSecondsPerCheck = 2;
  const auto is_refuted = [&](unsigned kept) {
    const PlanOptions options = only(s, demands, kept);
    const auto begin = std::chrono::steady_clock::now();
    const auto late = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > kSecondsPerCheck;
    };
    const Found one = search.run(demands_of({options, s.rules, s.machine, s.processors}), 1, late);
    return one.best.empty() && !one.stopped;
  };
  std::vector<std::string> conflict = texts;
  for (unsigned kept = 1; kept < 1U << texts.size(); ++kept) {
    if (static_cast<std::size_t>(std::popcount(kept)) >= conflict.size() || !is_refuted(kept)) continue;
    conflict.clear();
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (kept >> i & 1) conflict.push_back(texts[i]);
  }
  std::int64_t least = 0;
  for (const Priced& priced : found.priced)
    if (least == 0 || priced.predicted.bytes() < least) least = priced.predicted.bytes();
  const std::string unmet = conflict.empty() ? "the demands" : join(conflict, " and "),
                    smallest = least ? str("; the smallest that was compiled needs ", bytes_text(least)) : "",
                    first =
                        conflict.empty() ? "" : str("give up one of these demands: ", join(conflict, "; "), "; or ");
  return UserError(
      {.code = "plan.nothing-fits",
       .what = str("no candidate meets ", unmet, " on ", s.processors, " processors of ", s.machine.name, smallest),
       .where = str("machine ", s.machine.name, ", ", s.processors, " processors"),
       .fix = str(first, "use more processors")});
}

}  // namespace weft
