#include "plan/repeated_layers.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/index.h"
#include "base/str.h"
#include "language/op_def.h"
#include "plan/split_rules.h"

namespace weft {

namespace {

constexpr int kPeriodsPerNode = 8;  // that are tried: distances to the next nodes that are alike
constexpr std::int64_t kHead = 2;   // layers before the cut: runs may begin one layer apart
constexpr std::int64_t kFewestRepeats = RepeatedLayers::kFewest + 2;  // layers: of fewer not enough are cut

std::string label_of(const GraphData& graph, const Node& node) {
  std::string text = str(node.op->name, " ", node.site.file_name(), ":", node.site.line(), " ",
                         static_cast<int>(node.phase), node.recompute != 0);
  const auto add = [&](const TensorType& type) { text += str(" ", type.shape, type.dtype); };
  for (const TensorId id : node.inputs) add(graph.type(id));
  text += " =";
  for (const TensorType& type : node.outputs) add(type);
  if (node.op->name == "variable") {
    const auto& options = node.attrs.get<VariableOptions>("options");
    text += str(" ", options.trainable, !options.slot_of.empty());
  }
  return text;
}

std::vector<TensorId> wanted_of(const StepGraph& step) {
  std::vector<TensorId> all;
  for (const Tensor& x : step.fetch) all.push_back(x.id());
  for (const Tensor& x : step.update) all.push_back(x.id());
  if (step.metrics) all.insert(all.end(), step.graph.data()->metrics.begin(), step.graph.data()->metrics.end());
  return all;
}

}  // namespace

RepeatedLayers::RepeatedLayers(const StepGraph& step) : step_(step) {
  const GraphData& graph = *step.graph.data();
  std::unordered_map<std::string, int> numbers;
  std::map<NodeId, std::size_t> positions;
  for (const NodeId n : nodes_for(graph, wanted_of(step))) {
    const Node& node = graph.nodes[n];
    positions[n] = ids_.size();
    ids_.push_back(n.number());
    labels_.push_back(numbers.try_emplace(label_of(graph, node), static_cast<int>(numbers.size())).first->second);
    std::vector<std::size_t>& from = from_.emplace_back();
    for (const TensorId id : node.inputs) from.push_back(positions.at(id.node));
  }
  places_.resize(ids_.size());
}

// The runs that repeat as often as most nodes do, or once less.
void RepeatedLayers::find_runs() {
  const std::size_t nodes = labels_.size();
  std::vector<std::size_t> next(nodes, nodes);  // node that is alike
  std::unordered_map<int, std::size_t> seen;
  for (std::size_t i = nodes; i-- > 0; seen[labels_[i]] = i)
    if (const auto found = seen.find(labels_[i]); found != seen.end()) next[i] = found->second;
  const auto repeats = [&](std::size_t begin, std::size_t period) {
    std::size_t end = begin;
    while (end + period < nodes && labels_[end] == labels_[end + period]) ++end;
    return static_cast<std::int64_t>((end - begin) / period) + 1;
  };
  // The period with which most nodes repeat from here on, `times` times or more.
  const auto best_at = [&](std::size_t begin, std::int64_t times) {
    std::pair<std::int64_t, std::size_t> best{0, 0};  // how often, period
    std::size_t most = 0, other = next[begin];
    for (int i = 0; i < kPeriodsPerNode && other < nodes; ++i, other = next[other]) {
      const std::size_t period = other - begin;
      const std::int64_t often = repeats(begin, period);
      if (often < times || static_cast<std::size_t>(often) * period <= most) continue;
      most = static_cast<std::size_t>(often) * period;
      best = {often, period};
    }
    return best;
  };
  std::map<std::int64_t, std::size_t> covered;  // nodes of runs that repeat so often
  for (std::size_t i = 0; i < nodes;) {
    const auto [often, period] = best_at(i, kFewestRepeats);
    covered[often] += static_cast<std::size_t>(often) * period;
    i += std::max<std::size_t>(1, static_cast<std::size_t>(often) * period);
  }
  const auto most = std::ranges::max_element(covered, {}, [](const auto& item) { return item.second; });
  if (most == covered.end()) return;
  count_ = most->first;
  if (covered.contains(count_ - 1)) --count_;  // the backward pass of the first layer may lack some nodes
  for (std::size_t i = 0; i < nodes && count_ > 0;) {
    const auto [often, period] = best_at(i, count_);
    if (often == 0) {
      ++i;
      continue;
    }
    for (std::size_t k = 0; k < static_cast<std::size_t>(count_) * period; ++k)
      places_[i + k] = {static_cast<int>(runs_.size()), static_cast<std::int64_t>(k / period), k % period};
    runs_.push_back({i, period});
    i += static_cast<std::size_t>(count_) * period;
  }
}

std::int64_t RepeatedLayers::layer(const Place& place) const {
  const Run& run = runs_[at(place.run)];
  return run.sign * place.block + run.offset;
}

// The node of the place in another layer.
std::size_t RepeatedLayers::node_at(const Place& place, std::int64_t layer) const {
  const Run& run = runs_[at(place.run)];
  const std::int64_t block = (layer - run.offset) * run.sign;
  if (block < 0 || block >= count_) return labels_.size();
  return run.begin + static_cast<std::size_t>(block) * run.period + place.slot;
}

// Gives `from` the layers of `to`, if its blocks read from blocks of `to`, or are read by them, in order or in reverse.
bool RepeatedLayers::align(Run& from, const Run& to,
                           const std::vector<std::pair<std::int64_t, std::int64_t>>& blocks) const {
  if (static_cast<std::int64_t>(blocks.size()) + 2 < count_) return false;
  for (const std::int64_t sign : {1, -1}) {
    const auto& [b, other] = blocks[blocks.size() / 2];
    const std::int64_t sum = other - sign * b;
    std::int64_t same = 0;
    for (const auto& [block, with] : blocks) same += with - sign * block == sum;
    if (same + 2 < count_) continue;
    from.sign = to.sign * sign;
    from.offset = to.sign * sum + to.offset;
    return from.is_aligned = true;
  }
  return false;
}

bool RepeatedLayers::align_runs() {
  if (runs_.empty()) return false;
  // The blocks of two runs that are joined by the same input of the same slot.
  std::map<std::array<std::size_t, 5>, std::vector<std::pair<std::int64_t, std::int64_t>>> joined;
  for (std::size_t i = 0; i < places_.size(); ++i)
    for (std::size_t k = 0; k < from_[i].size(); ++k) {
      const Place &reader = places_[i], &read = places_[from_[i][k]];
      if (reader.run < 0 || read.run < 0 || reader.run == read.run) continue;
      joined[{at(reader.run), at(read.run), reader.slot, read.slot, k}].emplace_back(reader.block, read.block);
    }
  const auto largest = std::ranges::max_element(runs_, {}, &Run::period);
  largest->is_aligned = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [key, blocks] : joined) {
      Run &reader = runs_[key[0]], &read = runs_[key[1]];
      if (reader.is_aligned == read.is_aligned) continue;
      if (read.is_aligned) {
        changed |= align(reader, read, blocks);
        continue;
      }
      std::vector<std::pair<std::int64_t, std::int64_t>> turned;
      for (const auto& [block, other] : blocks) turned.emplace_back(other, block);
      changed |= align(read, reader, turned);
    }
  }
  return std::ranges::all_of(runs_, &Run::is_aligned);
}

// Whether the same slot of the next layer reads from the very same node.
bool RepeatedLayers::is_fixed(std::size_t reader, std::size_t input) const {
  const Place& place = places_[reader];
  const std::size_t read = from_[reader][input];
  if (places_[read].run < 0) return true;
  const std::int64_t own = layer(place);
  for (const std::int64_t other : {own + 1, own - 1})
    if (const std::size_t node = node_at(place, other); node < from_.size() && from_[node][input] == read) return true;
  return false;
}

// Every layer but the first and the last reads as its neighbours do.
bool RepeatedLayers::is_regular() const {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.run < 0 || place.block < 2 || place.block + 1 >= count_) continue;
    const std::size_t before = i - runs_[at(place.run)].period;
    for (std::size_t k = 0; k < from_[i].size(); ++k) {
      const std::size_t read = from_[i][k], read_before = from_[before][k];
      if (read == read_before) continue;
      const Place &a = places_[read], &b = places_[read_before];
      if (a.run < 0 || a.run != b.run || a.slot != b.slot) return false;
      if (layer(a) - layer(place) != layer(b) - layer(places_[before])) return false;
    }
  }
  return true;
}

// The layers kHead to kHead + cut - 1 are cut.
bool RepeatedLayers::is_kept(std::size_t node, std::int64_t cut) const {
  if (places_[node].run < 0) return true;
  const std::int64_t own = layer(places_[node]);
  return own < kHead || own >= kHead + cut;
}

// What a node that is kept reads when layers are cut; empty: it reads of one layer that is cut.
std::optional<std::size_t> RepeatedLayers::source(std::size_t reader, std::size_t input, std::int64_t cut) const {
  const std::size_t read = from_[reader][input];
  const auto if_kept = [&](std::size_t node) {
    return node < places_.size() && is_kept(node, cut) && labels_[node] == labels_[read] ? std::optional(node)
                                                                                         : std::nullopt;
  };
  if (places_[reader].run < 0 || is_fixed(reader, input)) return if_kept(read);
  const auto shifted = [&](std::int64_t layer) { return layer < kHead ? layer : layer - cut; };
  const std::int64_t own = layer(places_[reader]), other = layer(places_[read]);
  const std::int64_t now = shifted(own) + other - own;
  return if_kept(node_at(places_[read], now < kHead ? now : now + cut));
}

std::optional<StepGraph> RepeatedLayers::without(std::int64_t cut) const {
  const GraphData& whole = *step_.graph.data();
  auto made = std::make_shared<GraphData>();
  std::map<NodeId, NodeId> renamed;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (!is_kept(i, cut)) continue;
    const NodeId id(ids_[i]);
    Node node = whole.nodes[id];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const std::optional<std::size_t> read = source(i, k, cut);
      if (!read || !renamed.contains(NodeId(ids_[*read]))) return std::nullopt;
      node.inputs[k].node = renamed.at(NodeId(ids_[*read]));
    }
    renamed[id] = made->nodes.add(std::move(node));
  }
  const auto tensor = [&](TensorId id) { return TensorId{renamed.at(id.node), id.output}; };
  const auto copy = [&](const std::vector<TensorId>& from, std::vector<TensorId>& to) {
    for (const TensorId id : from)
      if (renamed.contains(id.node)) to.push_back(tensor(id));
  };
  copy(whole.variables, made->variables);
  copy(whole.metrics, made->metrics);
  for (const auto& [name, id] : whole.inputs)
    if (renamed.contains(id)) made->inputs[name] = renamed.at(id);
  for (const auto& [name, id] : whole.variable_nodes)
    if (renamed.contains(id)) made->variable_nodes[name] = renamed.at(id);
  StepGraph step{Graph(made), {}, {}, step_.metrics, step_.compute_as};
  for (const Tensor& x : step_.fetch)
    if (renamed.contains(x.id().node)) step.fetch.emplace_back(made, tensor(x.id()));
  for (const Tensor& x : step_.update)
    if (renamed.contains(x.id().node)) step.update.emplace_back(made, tensor(x.id()));
  return step;
}

std::optional<RepeatedLayers> RepeatedLayers::find(const StepGraph& step) {
  if (!step.graph.data()->loops.empty()) return std::nullopt;
  RepeatedLayers layers(step);
  layers.find_runs();
  if (layers.count_ < kFewestRepeats || !layers.align_runs() || !layers.is_regular()) return std::nullopt;
  for (const Run& run : layers.runs_) {
    const std::int64_t last = run.offset + run.sign * (layers.count_ - 1);
    if (std::min(run.offset, last) >= kHead || std::max(run.offset, last) + 1 < layers.count_) return std::nullopt;
  }
  for (const std::int64_t count : {RepeatedLayers::kFewest, RepeatedLayers::kFewest + 1})
    if (!layers.without(layers.count_ - count)) return std::nullopt;
  return layers;
}

StepGraph RepeatedLayers::with(std::int64_t count) const { return count == count_ ? step_ : *without(count_ - count); }

}  // namespace weft
