#include "plan/patterns.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/str.h"
#include "language/op_def.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr const char* kOwnMesh = "!";  // ends the key of programs that one mesh has for itself

bool is_stored(const Choice& choice, std::size_t axis) { return choice.stored >> axis & 1; }

Choice resized(const Choice& choice, const std::vector<int>& sizes) {
  Choice result = choice;
  for (std::size_t i = 0; i < sizes.size(); ++i) result.axes[i].size = sizes[i];
  return result;
}

// The seconds of a step whose programs have these weights: see WeightedSum.
Price price_of(const ResizedStep& sum) {
  Price price{.predicted = {}, .floor = sum.floor};
  Prediction& p = price.predicted;
  p.compute = sum.compute;
  p.wire = sum.wire;
  p.exposed = std::max(0.0, sum.exposed);
  p.flops = sum.flops;
  p.seconds = p.compute + p.exposed + sum.rest;
  p.variable_bytes = std::llround(sum.variable_bytes);
  p.arena_bytes = std::llround(sum.arena_bytes);
  return price;
}

}  // namespace

Patterns::Patterns(const Facts& facts) : facts_(facts) {
  std::set<std::string> seen;
  const WantedGraph& graph = *facts_.graphs.parts(1, false)->front().graph;
  for (const NodeId n : nodes_for(graph.data(), graph.wanted())) {
    const Node& node = graph.data().nodes[n];
    if (node.op->name != "variable") continue;
    const auto& options = node.attrs.get<VariableOptions>("options");
    const bool is_slot = !options.slot_of.empty();
    if ((is_slot || options.trainable) && seen.insert(str(node.outputs[0].shape)).second)
      variables_.push_back(variable_dims(node.outputs[0].shape, facts_.rules));
  }
}

// Sorts neighbouring axes that share no dim. A dim lists its axes from major to minor, so others keep their order.
Patterns::Ordered Patterns::ordered(const Choice& choice) const {
  Ordered result{choice, std::vector<std::size_t>(choice.axes.size())};
  result.choice.names.clear();
  std::iota(result.from.begin(), result.from.end(), 0);
  const auto rank = [&](std::size_t i) { return std::pair(choice.axes[i].dims, is_stored(choice, i)); };
  std::vector<std::size_t>& from = result.from;
  for (std::size_t pass = 0; pass < from.size() && !facts_.own_mesh; ++pass)
    for (std::size_t i = 0; i + 1 < from.size(); ++i)
      if (!(choice.axes[from[i]].dims & choice.axes[from[i + 1]].dims) && rank(from[i + 1]) < rank(from[i]))
        std::swap(from[i], from[i + 1]);
  result.choice.stored = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    result.choice.axes[i] = choice.axes[from[i]];
    if (is_stored(choice, from[i])) result.choice.stored |= AxisSet{1} << i;
  }
  return result;
}

// For each variable the dim that `*` splits.
std::string Patterns::split_variables(const Choice& choice) const {
  std::string text;
  if (choice.level == 0) return text;
  for (const VariableDims& variable : variables_) text += static_cast<char>('0' + stored_dim(choice, variable));
  return text;
}

std::string Patterns::key_of(const Choice& choice) const {
  std::string key = str(choice.level, "|", choice.microbatches, "|", static_cast<int>(choice.recompute), "|");
  for (std::size_t i = 0; i < choice.axes.size(); ++i) {
    key += str(choice.axes[i].dims, is_stored(choice, i) ? "s" : "", ",");
    if (facts_.own_mesh) key += str(choice.axes[i].size, "x");
  }
  return key + split_variables(choice);
}

// The mesh with as many axes on which the pattern is legal and whose largest axis is the smallest. `shares`: whether the
// program for these sizes is the one that is asked for.
Choice Patterns::reference_of(const Choice& choice, const std::function<bool(const Choice&)>& shares) const {
  if (facts_.own_mesh) return choice;
  const std::vector<int> sizes = sizes_of(choice.axes);
  const int processors = std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
  Choice best = choice;
  int least = sizes.empty() ? 0 : std::ranges::max(sizes);
  for (const std::vector<int>& other : factorisations(processors, static_cast<int>(sizes.size()), true)) {
    if (other.size() != sizes.size()) continue;
    const int largest = other.empty() ? 0 : std::ranges::max(other);
    if (largest > least || (largest == least && other >= sizes_of(best.axes))) continue;
    const Choice candidate = resized(choice, other);
    if (!divides(facts_.rules, candidate.axes, facts_.rules.find(facts_.graphs.family().batch), choice.microbatches) ||
        !shares(candidate))
      continue;
    least = largest;
    best = candidate;
  }
  return best;
}

const Patterns::Programs* Patterns::find(const std::string& key) const {
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : &found->second;
}

// The programs of a pattern may not suit every mesh of it. A choice that they do not suit has the programs of those meshes
// for which the same values do not divide.
Patterns::Place Patterns::place_of(const Choice& choice) const {
  const std::vector<int> sizes = sizes_of(choice.axes);
  Place place{key_of(choice)};
  while ((place.programs = find(place.key)) && !facts_.own_mesh) {
    if (place.programs->parts.empty()) {
      if (!place.programs->is_uneven || place.key.ends_with(kOwnMesh)) break;
      place.key += str("@", join(sizes, "x"), kOwnMesh);
      continue;
    }
    std::string uneven;
    for (const Part& part : place.programs->parts) uneven += part.cost->uneven(sizes);
    if (uneven.empty()) break;
    place.key += "/" + uneven;
  }
  return place;
}

std::optional<Patterns::Request> Patterns::missing(const Choice& choice) {
  const Choice in_order = ordered(choice).choice;
  Place place = place_of(in_order);
  if (place.programs) return std::nullopt;
  const auto shares = [&](const Choice& other) { return place_of(other).key == place.key; };
  return Request{place.key, place.key.ends_with(kOwnMesh) ? in_order : reference_of(in_order, shares)};
}

std::string Patterns::needs(const Choice& choice) {
  const std::optional<Request> request = missing(choice);
  return request ? request->key : "";
}

Patterns::Programs Patterns::compiled_on(const Choice& choice) {
  const PlanChoice by_name = named(choice, facts_.rules, facts_.graphs.family().batch);
  Programs programs;
  try {
    for (const FoldedGraphs::Part& part :
         *facts_.graphs.parts(choice.microbatches, choice.recompute == Recompute::kLayers)) {
      const Program program = compiled_for(*part.graph, by_name, facts_.target);
      Part& made = programs.parts.emplace_back();
      made.weight = part.weight;
      made.cost.emplace(program, facts_.machine, facts_.target);
    }
  } catch (const UserError& error) {
    programs.parts.clear();
    programs.is_uneven = error.text().code.text == "layout.uneven-split";
  } catch (const InternalError& error) {
    programs.parts.clear();
    const std::lock_guard lock(mutex_);
    failures_.push_back(str(by_name.text(), ": ", error.text().what));
  }
  const std::lock_guard lock(mutex_);
  compiled_ += static_cast<std::int64_t>(programs.parts.size());
  return programs;
}

void Patterns::prepare(const std::vector<Choice>& choices, Workers& workers) {
  std::vector<Choice> open = choices;
  while (!open.empty()) {
    std::map<std::string, Choice> wanted;
    std::vector<Choice> still_open;
    for (const Choice& choice : open)
      if (const std::optional<Request> request = missing(choice)) {
        wanted.try_emplace(request->key, request->choice);
        still_open.push_back(choice);
      }
    const std::vector<std::pair<std::string, Choice>> jobs(wanted.begin(), wanted.end());
    std::vector<Programs> made(jobs.size());
    if (!jobs.empty()) workers.run(jobs.size(), [&](std::size_t i) { made[i] = compiled_on(jobs[i].second); });
    for (std::size_t i = 0; i < jobs.size(); ++i) programs_[jobs[i].first] = std::move(made[i]);
    open = std::move(still_open);
  }
}

const MeshGroups& Patterns::groups(const std::vector<int>& sizes) {
  const std::lock_guard lock(mutex_);
  return groups_.try_emplace(sizes, facts_.machine, sizes).first->second;
}

ResizedMesh Patterns::mesh_of(const Choice& choice, const Ordered& ordered) {
  ResizedMesh mesh;
  const AxisSet count = AxisSet{1} << choice.axes.size();
  mesh.shares.assign(count, 1);
  mesh.sets.assign(count, 0);
  for (AxisSet set = 0; set < count; ++set)
    for (std::size_t i = 0; i < ordered.from.size(); ++i)
      if (set >> i & 1) {
        mesh.shares[set] /= ordered.choice.axes[i].size;
        mesh.sets[set] |= AxisSet{1} << ordered.from[i];
      }
  mesh.groups = &groups(sizes_of(choice.axes));
  return mesh;
}

std::optional<Price> Patterns::price(const Choice& choice) {
  const Ordered in_order = ordered(choice);
  while (const std::optional<Request> request = missing(choice)) programs_[request->key] = compiled_on(request->choice);
  const Programs* programs = place_of(in_order.choice).programs;
  if (programs->parts.empty()) return std::nullopt;
  const ResizedMesh mesh = mesh_of(choice, in_order);
  ResizedStep sum;
  for (const Part& part : programs->parts) sum.add(part.weight, part.cost->at(mesh));
  return price_of(sum);
}

std::vector<double> Patterns::update_seconds(const Choice& choice) {
  const Ordered in_order = ordered(choice);
  const Programs& programs = *place_of(in_order.choice).programs;
  const ResizedMesh mesh = mesh_of(choice, in_order);
  std::vector<double> seconds(mesh.sets.size());
  for (AxisSet set = 0; set < mesh.sets.size(); ++set)
    for (const Part& part : programs.parts)
      seconds[mesh.sets[set]] += part.weight * part.cost->update_seconds(mesh, set);
  return seconds;
}

}  // namespace weft
