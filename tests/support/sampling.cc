#include "support/sampling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/philox.h"
#include "base/str.h"
#include "ops/rules.h"

namespace weft::test {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Array filled(const Shape& shape, const Fill& fill, DType dtype, std::uint64_t stream) {
  Array array(shape, is_float(dtype) ? DType::kF64 : dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double unit = static_cast<double>(mixed(mixed(stream) + static_cast<std::uint64_t>(i)) >> 11) * 0x1p-53;
    const double value = fill.low + unit * (fill.high - fill.low);
    array.set(i, fill.whole ? std::floor(value) : value);
  }
  return array;
}

BuiltSample build_sample(const OpDef& op, const Sample& sample) {
  BuiltSample built;
  built.specs = sample.inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const SampleInput& spec = sample.inputs[i];
    built.inputs.push_back(built.graph.input(str("x", i), spec.shape, spec.dtype));
    built.feeds.emplace_back(built.inputs[i], filled(spec.shape, spec.fill, spec.dtype, 17 + i));
  }
  built.results =
      sample.build ? sample.build(built.graph, built.inputs) : apply_all(op, built.inputs, {}, Site::current());
  Tensors parts;
  for (std::size_t i = 0; i < built.results.size(); ++i) {
    const Tensor& y = built.results[i];
    if (!is_float(y.dtype())) continue;
    const Tensor weights = built.graph.input(str("dy", i), y.shape(), y.dtype());
    built.feeds.emplace_back(weights, filled(y.shape(), uniform(-1, 1), y.dtype(), 91 + i));
    parts.push_back(cast(reduce_sum(y * weights), DType::kF32));
  }
  if (parts.empty()) return built;
  built.weighted_sum = add_n(parts);
  Tensors floats;
  for (const Tensor& x : built.inputs)
    if (is_float(x.dtype())) floats.push_back(x);
  if (floats.empty() || (!op.no_gradient.empty() && !sample.build)) return built;
  if (op.name == "assign") return built;
  built.floats = floats;
  const Tensors derivatives = gradients({built.weighted_sum}, floats);
  for (std::size_t i = 0; i < floats.size(); ++i)
    if (derivatives[i]) {
      built.derivatives.push_back(derivatives[i]);
      built.differentiated.push_back(floats[i]);
    }
  return built;
}

Tensors fetched(const BuiltSample& built) {
  Tensors all = built.results;
  all.insert(all.end(), built.derivatives.begin(), built.derivatives.end());
  return all;
}

std::vector<std::string> dims_of(const GraphData& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes)
    for (const TensorType& type : node.outputs)
      for (const Dim& dim : type.shape)
        if (dim.name[0] != '#') names.insert(dim.name);
  return {names.begin(), names.end()};
}

std::vector<std::string> every_layout(const std::vector<std::string>& dims, const Mesh& mesh) {
  const std::size_t axes = mesh.axes().size(), choices = dims.size() + 1;
  std::size_t count = 1;
  for (std::size_t a = 0; a < axes; ++a) count *= choices;
  std::set<std::string> layouts;
  for (std::size_t code = 0; code < count; ++code) {
    std::map<std::string, std::vector<std::string>> rules;
    std::size_t rest = code;
    for (std::size_t a = 0; a < axes; ++a, rest /= choices)
      if (rest % choices > 0) rules[dims[rest % choices - 1]].push_back(mesh.axes()[a].name);
    const auto text = [&](bool reversed) {
      std::vector<std::string> words;
      for (auto [dim, names] : rules) {
        if (reversed) std::reverse(names.begin(), names.end());
        words.push_back(str(dim, ":", join(names, "+")));
      }
      return join(words, " ");
    };
    layouts.insert(text(false));
    layouts.insert(text(true));
  }
  for (std::size_t i = 0; axes > 0 && i + 1 < dims.size(); ++i)
    layouts.insert(str(dims[i], ",", dims[i + 1], ":", mesh.axes()[0].name));
  return {layouts.begin(), layouts.end()};
}

namespace {

// All ways to exchange axes of one size: for each axis, in order, the name that it gets.
std::vector<std::map<std::string, std::string>> exchanges(const Mesh& mesh) {
  std::vector<std::size_t> order(mesh.axes().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::map<std::string, std::string>> all;
  do {
    std::map<std::string, std::string> names;
    bool alike = true;
    for (std::size_t a = 0; a < order.size(); ++a) {
      const Axis &from = mesh.axes()[a], &to = mesh.axes()[order[a]];
      alike = alike && from.size == to.size;
      names[from.name] = to.name;
    }
    if (alike) all.push_back(names);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

}  // namespace

std::vector<std::string> unlike_layouts(const std::vector<std::string>& dims, const Mesh& mesh, const std::string& by) {
  std::map<std::string, std::vector<std::string>> classes;  // by the first text of all exchanges
  const std::vector<std::map<std::string, std::string>> names = exchanges(mesh);
  for (const std::string& layout : every_layout(dims, mesh)) {
    const Layout parsed = Layout::parse(layout);
    std::set<std::string> texts;
    for (const auto& name : names) {
      std::string text;
      for (const LayoutRule& rule : parsed.rules()) {
        text += rule.dim + ":";
        for (const std::string& axis : rule.axes) text += name.at(axis) + "+";
      }
      texts.insert(text);
    }
    classes[*texts.begin()].push_back(layout);
  }
  std::vector<std::string> some;
  for (const auto& [first, alike] : classes) some.push_back(alike[hash_key(by + first, 0) % alike.size()]);
  return some;
}

bool is_legal(const GraphData& graph, const Mesh& mesh, const std::string& layout) {
  const Layout rules = Layout::parse(layout);
  const auto lies_well = [&](const Shape& dims) {
    std::set<std::string> used;
    for (const Dim& dim : dims)
      for (const LayoutRule& rule : rules.rules()) {
        if (rule.dim != dim.name) continue;
        std::int64_t parts = 1;
        for (const std::string& axis : rule.axes) {
          if (!used.insert(axis).second) return false;
          parts *= mesh.axes()[static_cast<std::size_t>(mesh.find(axis))].size;
        }
        if (dim.size % parts != 0) return false;
      }
    return true;
  };
  const auto is_split = [&](const std::string& dim) {
    for (const LayoutRule& rule : rules.rules())
      for (const std::string& axis : rule.axes)
        if (rule.dim == dim && mesh.axes()[static_cast<std::size_t>(mesh.find(axis))].size > 1) return true;
    return false;
  };
  for (const Node& node : graph.nodes) {
    OpCall call{.op = node.op, .inputs = {}, .outputs = node.outputs, .attrs = &node.attrs, .site = node.site};
    Shape together;
    for (TensorId id : node.inputs) {
      call.inputs.push_back(graph.type(id));
      together = together.plus(graph.type(id).shape);
    }
    for (const TensorType& type : node.outputs) {
      if (!lies_well(type.shape)) return false;
      together = together.plus(type.shape);
    }
    const ShardingRule rule = node.op->sharding(call);
    if (!rule.reshards_output && !lies_well(together)) return false;
    for (const auto& [dim, how] : rule.dims)
      if (how.kind == DimRule::Kind::kWhole && is_split(dim)) return false;
  }
  return true;
}

}  // namespace weft::test
