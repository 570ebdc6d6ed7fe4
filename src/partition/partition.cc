#include "partition/partition.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/index.h"
#include "base/philox.h"
#include "base/str.h"
#include "ops/rules.h"
#include "partition/reshard.h"
#include "partition/store.h"

namespace weft {

namespace {

std::vector<std::string> dim_names(const GraphData& graph) {
  std::unordered_set<std::string_view> names;
  for (const Node& node : graph.nodes)
    for (const TensorType& type : node.outputs)
      for (const Dim& dim : type.shape) names.insert(dim.name);
  std::vector<std::string> sorted(names.begin(), names.end());
  std::ranges::sort(sorted);
  return sorted;
}

// The nodes that the requested tensors depend on, ascending.
std::vector<NodeId> needed_nodes(const PartitionRequest& request) {
  std::vector<NodeId> open;
  const auto want = [&](const std::vector<TensorId>& ids) {
    for (TensorId id : ids) open.push_back(id.node);
  };
  want(request.fetch);
  want(request.update);
  if (request.metrics) want(request.graph->metrics);
  Indexed<NodeId, bool> is_needed(request.graph->nodes.size());
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (is_needed[n]) continue;
    is_needed[n] = true;
    for (TensorId input : request.graph->nodes[n].inputs) open.push_back(input.node);
  }
  std::vector<NodeId> needed;
  std::ranges::copy_if(is_needed.ids(), std::back_inserter(needed), [&](NodeId n) { return is_needed[n]; });
  return needed;
}

class Partitioner : private LoweringContext {
 public:
  explicit Partitioner(const PartitionRequest& request)
      : request_(request),
        graph_(*request.graph),
        names_(dim_names(graph_)),
        builder_(request.mesh, request.layout.text()),
        global_(resolve(request.layout, request.mesh, names_)) {}

  Program run() {
    check_updates();
    const std::vector<NodeId> needed = needed_nodes(request_);
    if (request_.store.level() > 0) {
      const DimAxes rules = resolve(request_.store, request_.mesh, names_);
      plan_ = StorePlan({graph_, needed, request_.mesh, request_.layout, global_, request_.store, rules});
    }
    for (const NodeId n : needed) lower(n);
    for (TensorId id : request_.fetch) {
      const Node& node = graph_.node(id);
      builder_.begin(node.name, origin(node));
      builder_.output(node.name, builder_.dense(for_update(id), builder_.value(for_update(id)).shape));
    }
    return std::move(builder_).finish();
  }

 private:
  void check_updates() const {
    std::map<std::string, const Node*> seen;
    for (TensorId id : request_.update) {
      const Node& node = graph_.node(id);
      if (node.op->name != "assign")
        throw UserError({.code = "compile.update-not-assignment",
                         .what = str("'", node.name, "' was given as an update, but it is not an assignment"),
                         .where = str(node.op->name, " at ", to_string(node.site)),
                         .fix = "give the results of assign(), assign_add(), assign_sub() or an optimizer"});
      const std::string& variable = node.attrs.get<std::string>("name");
      if (const Node* other = std::exchange(seen[variable], &node))
        throw UserError({.code = "compile.variable-assigned-twice",
                         .what = str("variable '", variable, "' is assigned twice in one step"),
                         .where = str(to_string(other->site), " and ", to_string(node.site)),
                         .fix = "give one update for each variable"});
    }
  }

  void promote(TensorType& type) const {
    if (request_.compute_as && is_float(type.dtype)) type.dtype = *request_.compute_as;
  }

  // Nodes in the body of a recomputed loop are recomputed too.
  Origin origin(const Node& node) const {
    Origin origin{.phase = node.phase, .recompute = node.recompute};
    origin.causes.push_back(str(node.site.file_name(), ":", node.site.line(), " ", node.op->name));
    if (around_ && around_->recompute && !node.recompute) {
      origin.recompute = around_->recompute;
      if (origin.phase == Phase::kForward) origin.phase = Phase::kRecompute;
    }
    return origin;
  }

  Subject subject(const Node& node, const std::string& name) const {
    return {name, node.op->name + " at " + to_string(node.site), request_.layout.text()};
  }

  // The axes of the op's dims: those of the operands, if the operands agree and no axis is used twice; otherwise all
  // operands go to the global layout, which must be legal for this op.
  DimAxes axes_for(const Node& node, const OpCall& call, const ShardingRule& rule,
                   const std::vector<ValueId>& operands) const {
    std::vector<const TensorType*> types;
    for (const TensorType& type : call.inputs) types.push_back(&type);
    if (!rule.reshards_output)
      for (const TensorType& type : call.outputs) types.push_back(&type);
    if (std::optional<DimAxes> followed = follow(operands, types)) return *std::move(followed);
    Shape dims;
    for (const TensorType* type : types) dims = dims.plus(type->shape);
    if (!rule.reshards_output)  // else each operand keeps its sharding
      check_one_dim_per_axis(global_, dims, request_.mesh,
                             [&] { return subject(node, str(node.op->name, " '", node.name, "'")); });
    DimAxes axes;
    for (const Dim& dim : dims) axes.set(dim.name, global_axes(dim.name));
    return axes;
  }

  void check_whole(const Node& node, const ShardingRule& rule, const DimAxes& axes) const {
    for (const auto& [dim, how] : rule.dims)
      if (how.kind == DimRule::Kind::kWhole && request_.mesh.size(axes.at(dim)) > 1)
        throw UserError({.code = "layout.dim-must-be-unsplit",
                         .what = str(node.op->name, " '", node.name, "' needs dim '", dim,
                                     "' whole, but it is split over axis '", text_of(axes.at(dim), request_.mesh), "'"),
                         .where = str(node.op->name, " at ", to_string(node.site), ", layout \"",
                                      request_.layout.text(), "\", mesh ", request_.mesh),
                         .fix = str("leave '", dim, "' out of the layout, or rename() the dim before ", node.op->name,
                                    " to a name that the layout does not split: the rename gathers the tensor")});
  }

  const Axes& global_axes(const std::string& dim) const {
    static const Axes kNone;
    const auto found = global_.find(dim);
    return found == global_.end() ? kNone : found->second;
  }

  std::optional<DimAxes> follow(const std::vector<ValueId>& operands,
                                const std::vector<const TensorType*>& types) const {
    DimAxes axes;
    axes.reserve(8);
    for (ValueId x : operands) {
      const Value& value = builder_.value(x);
      for (std::size_t i = 0; i < value.shape.rank(); ++i) {
        const auto [item, is_new] = axes.try_emplace(value.shape[i].name, value.sharding.dims[i]);
        if (!is_new && item->second != value.sharding.dims[i]) return std::nullopt;
      }
    }
    for (const TensorType* type : types)
      for (const Dim& dim : type->shape) axes.try_emplace(dim.name, global_axes(dim.name));
    std::vector<bool> used(request_.mesh.axes().size());
    for (const auto& [dim, list] : axes)
      for (int axis : list) {
        if (used[at(axis)]) return std::nullopt;
        used[at(axis)] = true;
      }
    return axes;
  }

  // The axes that with_layout() gives its value; an error names its line, not only its text.
  DimAxes own_axes(const Node& node, const Shape& shape) const {
    try {
      return resolve(node.attrs.get<Layout>("layout"), request_.mesh, shape.names());
    } catch (const UserError& error) {
      throw UserError({.code = error.text().code,
                       .what = error.text().what,
                       .where = str("with_layout at ", to_string(node.site), ", ", error.text().where.text),
                       .fix = error.text().fix});
    }
  }

  // The sharding of each output: from the op's axes, or, if the op reshards_output, from the global layout and the op's
  // attributes.
  std::vector<Sharding> wanted(const Node& node, const OpCall& call, const ShardingRule& rule,
                               const DimAxes& axes) const {
    std::vector<Sharding> result;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const auto who = [&] { return subject(node, str("tensor '", node.name, "'")); };
      if (!rule.reshards_output || !node.attrs.has("layout")) {
        result.push_back(sharding_of(rule.reshards_output ? global_ : axes, call.out(i), request_.mesh, who));
        continue;
      }
      DimAxes by = global_;
      for (const auto& [dim, list] : own_axes(node, call.out(i))) by.set(dim, list);
      result.push_back(sharding_of(by, call.out(i), request_.mesh, who));
    }
    return result;
  }

  ValueId reshard(ValueId x, const Sharding& want) override { return weft::reshard(builder_, x, want); }

  std::int64_t bytes(const TensorType& global, const Sharding& have, const Sharding& want) const override {
    std::int64_t sum = 0;
    for (const ReshardStep& step : reshard_path(global.shape, global.dtype, have, want, request_.mesh))
      sum += step.bytes;
    return sum;
  }

  Program body(const BodyRequest& request) override {
    Builder outer = std::exchange(builder_, Builder(request_.mesh, request_.layout.text()));
    auto outer_values = std::exchange(values_, {});
    auto outer_gathered = std::exchange(gathered_, {});
    auto outer_updates = std::exchange(for_update_, {});
    std::vector<ValueId> inputs, results;
    for (const BodyRequest::Input& input : request.inputs) {
      const bool named = bool(input.tensor.node);
      inputs.push_back(builder_.input(named ? graph_.node(input.tensor).name : "", input.type));
      if (named) values_[input.tensor] = inputs.back();
    }
    for (const NodeId n : nodes_of_body(request)) lower(n);
    for (TensorId id : request.results) results.push_back(values_.at(id));
    request.finish(inputs, results);
    Program program = std::move(builder_).finish();
    builder_ = std::move(outer);
    values_ = std::move(outer_values);
    gathered_ = std::move(outer_gathered);
    for_update_ = std::move(outer_updates);
    return program;
  }

  // The nodes that the results depend on and that are not given.
  std::set<NodeId> nodes_of_body(const BodyRequest& request) const {
    std::vector<TensorId> open = request.results;
    std::set<NodeId> needed;
    while (!open.empty()) {
      const TensorId id = open.back();
      open.pop_back();
      if (values_.contains(id) || !needed.insert(id.node).second) continue;
      const std::vector<TensorId>& inputs = graph_.node(id).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return needed;
  }

  ValueId laid_out(ValueId x, const DimAxes& axes) {
    const Value& value = builder_.value(x);
    const auto wanted = [&](std::size_t i) -> const Axes& { return axes.at(value.shape[i].name); };
    std::size_t same = 0;
    while (same < value.shape.rank() && value.sharding.dims[same] == wanted(same)) ++same;
    if (same == value.shape.rank()) return x;
    Sharding want = value.sharding;
    for (std::size_t i = same; i < want.dims.size(); ++i) want.dims[i] = wanted(i);
    return reshard(x, want);
  }

  // The value as the update reads it: in the shards that the update requests, if they differ from the layout's.
  ValueId for_update(TensorId id) const {
    const auto found = for_update_.find(id);
    return found == for_update_.end() ? values_.at(id) : found->second;
  }

  // A variable that is stored in smaller shards than the layout's is gathered before its first use in the forward pass,
  // and again in the backward pass, so that it need not be kept in between. It is cast to its activation dtype before
  // the gather. A loop gathers it in its body.
  ValueId operand(const Node& node, TensorId id) {
    if (is_update(node)) return for_update(id);
    const bool passes_it_on = node.op->name == "cast" || node.op->name == "loop";
    if (!plan_.is_held_split(graph_, id) || passes_it_on) return values_.at(id);
    const auto [copy, is_new] = gathered_.try_emplace({id, node.phase != Phase::kForward}, 0);
    if (!is_new) return copy->second;
    const Node& variable = graph_.node(id);
    builder_.begin(variable.name, origin(node));
    const auto who = [&] { return subject(variable, str("tensor '", variable.name, "'")); };
    return copy->second = reshard(values_.at(id), sharding_of(global_, graph_.type(id).shape, request_.mesh, who));
  }

  void lower(NodeId n) {
    const Node& node = graph_.nodes[n];
    OpCall call = call_of(graph_, node);
    for (auto* types : {&call.inputs, &call.outputs})
      for (TensorType& type : *types) promote(type);
    const ShardingRule rule = node.op->sharding(call);
    std::vector<ValueId> operands, inputs;
    for (TensorId id : node.inputs) operands.push_back(operand(node, id));
    const DimAxes* planned = plan_.axes(n);
    DimAxes axes = planned ? *planned : axes_for(node, call, rule, operands);
    check_whole(node, rule, axes);
    std::vector<Sharding> want = wanted(node, call, rule, axes);
    for (std::size_t i = 0; i < want.size(); ++i)
      if (const TensorId id{n, static_cast<int>(i)}; plan_.is_summed_in_shards(id)) want[i] = *plan_.want(id);
    if (node.op->name == "assign") want[0] = builder_.value(values_.at(node.inputs[0])).sharding;
    builder_.begin(node.name, origin(node));
    for (ValueId x : operands) inputs.push_back(rule.reshards_output ? x : laid_out(x, axes));
    Lowering lowering(builder_, call, rule, std::move(inputs), std::move(axes), std::move(want),
                      hash_key(node.full_name, node.ordinal), *this);
    const Node* around = std::exchange(around_, &node);
    const std::vector<ValueId> results = node.op->lower(lowering);
    around_ = around;
    internal_check(results.size() == node.outputs.size(), "a lowering gave another number of results than its op");
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorId id{n, static_cast<int>(i)};
      values_[id] = reshard(results[i], lowering.wanted[i]);
      if (const Sharding* shards = plan_.want(id))
        for_update_[id] = reshard(plan_.is_used_elsewhere(id) ? values_[id] : results[i], *shards);
    }
  }

  const PartitionRequest& request_;
  const GraphData& graph_;
  const std::vector<std::string> names_;  // of all dims
  Builder builder_;
  DimAxes global_;
  StorePlan plan_;
  std::map<TensorId, ValueId> values_;
  std::map<TensorId, ValueId> for_update_;  // for tensors that the update reads in other shards
  std::map<std::pair<TensorId, bool>, ValueId>
      gathered_;                  // variables stored in smaller shards; whether for the forward pass
  const Node* around_ = nullptr;  // the op being lowered: a loop, if it asks for its body
};

}  // namespace

Program partition(const PartitionRequest& request) { return Partitioner(request).run(); }

}  // namespace weft
