#include "program/builder.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "language/shape_math.h"
#include "weft/error.h"

namespace weft {

namespace {

void append(Axes& axes, const Axes& more) { axes.insert(axes.end(), more.begin(), more.end()); }

void drop_minor(Axes& axes, const Axes& minor) {
  internal_check(axes.size() >= minor.size() && std::equal(minor.rbegin(), minor.rend(), axes.rbegin()),
                 "a collective gathers axes that are not the minor axes of the dim");
  axes.resize(axes.size() - minor.size());
}

void drop_partial(Sharding& sharding, const Axes& axes) {
  for (int axis : axes) {
    const auto found = std::find(sharding.partial.begin(), sharding.partial.end(), axis);
    internal_check(found != sharding.partial.end(), "a reduction over an axis that is not pending");
    sharding.partial.erase(found);
  }
  if (sharding.partial.empty()) sharding.pending = Reduce::kSum;
}

void split(ValueType& type, const std::string& dim, const Axes& axes, const Mesh& mesh) {
  const std::size_t position = type.shape.position(dim);
  append(type.sharding.dims[position], axes);
  const std::int64_t size = type.shape[position].size, parts = mesh.size(axes);
  internal_check(size % parts == 0, "a dim is split that does not divide");
  type.shape = type.shape.resized(dim, size / parts);
}

void gather(ValueType& type, const std::string& dim, const Axes& axes, const Mesh& mesh) {
  const std::size_t position = type.shape.position(dim);
  drop_minor(type.sharding.dims[position], axes);
  type.shape = type.shape.resized(dim, type.shape[position].size * mesh.size(axes));
}

// Strides of `shape` laid over storage that has `from` with `strides`, if row-major order permits: each group of
// merged or split dims must be contiguous among themselves.
std::optional<std::vector<std::int64_t>> reshaped_strides(const Shape& from, const std::vector<std::int64_t>& strides,
                                                          const Shape& shape) {
  std::vector<std::int64_t> result(shape.rank());
  std::size_t i = from.rank(), j = shape.rank();
  while (j > 0) {
    while (i > 0 && from[i - 1].size == 1) --i;
    if (shape[j - 1].size == 1) {
      --j;  // as if it were dense
      result[j] = j + 1 < shape.rank() ? result[j + 1] * shape[j + 1].size : 1;
      continue;
    }
    // One group: the last dims of both whose products agree.
    std::int64_t stride = strides[i - 1], old_size = from[i - 1].size, new_size = 1;
    std::int64_t next = stride * old_size;
    --i;
    while (new_size < old_size) {
      --j;
      result[j] = stride * new_size;
      new_size *= shape[j].size;
      while (new_size > old_size) {
        while (i > 0 && from[i - 1].size == 1) --i;
        if (i == 0 || strides[i - 1] != next) return std::nullopt;
        old_size *= from[i - 1].size;
        next = stride * old_size;
        --i;
      }
    }
  }
  return result;
}

}  // namespace

Builder::Builder(Mesh mesh, std::string layout) {
  program_.mesh = std::move(mesh);
  program_.layout = std::move(layout);
}

std::vector<std::int64_t> Builder::strides(ValueId id) const {
  return strides_[id].empty() ? dense_strides(value(id).shape) : strides_[id];
}

ValueType Builder::type(ValueId id) const { return {value(id).dtype, value(id).shape, value(id).sharding}; }

void Builder::begin(std::string name, Origin origin) {
  name_ = std::move(name);
  origin_ = std::move(origin);
}

ValueId Builder::add_value(ValueType type) {
  internal_check(type.shape.rank() == type.sharding.dims.size(), "a sharding that does not fit its shape");
  strides_.emplace_back();
  return program_.values.add({name_, type.dtype, std::move(type.shape), std::move(type.sharding)});
}

ValueId Builder::input(std::string name, ValueType type) {
  name_ = name;
  const ValueId id = add_value(std::move(type));
  program_.inputs.push_back({std::move(name), id});
  return id;
}

ValueId Builder::variable(std::string name, ValueType type, bool trainable) {
  name_ = name;
  const ValueId id = add_value(std::move(type));
  variables_.emplace(name, program_.variables.size());
  program_.variables.push_back({std::move(name), id, std::nullopt, trainable});
  return id;
}

void Builder::update(const std::string& variable, ValueId contents) {
  const auto found = variables_.find(variable);
  internal_check(found != variables_.end(), "an update of a variable that the program does not have");
  program_.variables[found->second].update = contents;
}

void Builder::output(std::string name, ValueId value) { program_.outputs.push_back({std::move(name), value}); }

std::vector<ValueId> Builder::emit(Operation operation, std::vector<ValueId> inputs, std::vector<ValueType> outputs) {
  std::vector<ValueId> ids;
  for (ValueType& type : outputs) ids.push_back(add_value(std::move(type)));
  program_.body.push_back({std::move(operation), std::move(inputs), ids, origin_});
  return ids;
}

ValueId Builder::emit_one(Operation operation, std::vector<ValueId> inputs, ValueType output) {
  const ValueId id = add_value(std::move(output));
  program_.body.push_back({std::move(operation), std::move(inputs), {id}, origin_});
  return id;
}

std::vector<MapNode> one_function(const std::string& function, const std::vector<DType>& inputs, DType out) {
  std::vector<MapNode> nodes;
  nodes.reserve(inputs.size() + 1);
  MapNode result{.op = function, .dtype = out};
  result.args.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    nodes.push_back({.op = "input", .dtype = inputs[i], .input = static_cast<int>(i)});
    result.args.push_back(static_cast<int>(i));
  }
  nodes.push_back(std::move(result));
  return nodes;
}

ValueId Builder::map(const std::string& function, const std::vector<ValueId>& inputs, ValueType out) {
  std::vector<DType> dtypes;
  for (ValueId id : inputs) dtypes.push_back(value(id).dtype);
  return map(one_function(function, dtypes, out.dtype), inputs, std::move(out));
}

ValueId Builder::map(std::vector<MapNode> nodes, const std::vector<ValueId>& inputs, ValueType out) {
  return emit_one(Map{std::move(nodes)}, inputs, std::move(out));
}

ValueId Builder::fill(const Number& number, ValueType out) {
  const DType dtype = out.dtype;
  return map({{.op = "literal", .dtype = dtype, .literal = number}}, {}, std::move(out));
}

ValueId Builder::cast(ValueId x, DType dtype) {
  if (value(x).dtype == dtype) return x;
  ValueType out = type(x);
  out.dtype = dtype;
  return map("cast", {x}, std::move(out));
}

ValueId Builder::dense(ValueId x, const Shape& order) {
  if (value(x).shape == order && (strides_[x].empty() || is_dense(order, strides_[x]))) return x;
  ValueType out = type(x);
  out.shape = order;
  for (std::size_t i = 0; i < order.rank(); ++i)
    out.sharding.dims[i] = value(x).sharding.dims[value(x).shape.position(order[i].name)];
  return emit_one(Copy{}, {x}, std::move(out));
}

ValueId Builder::concat(const std::string& dim, const std::vector<ValueId>& xs) {
  ValueType out = type(xs[0]);
  std::int64_t size = 0;
  for (ValueId x : xs) size += value(x).shape.size_of(dim);
  out.shape = out.shape.resized(dim, size);
  return emit_one(Concat{dim}, xs, std::move(out));
}

ValueId Builder::axis_index(const Axes& axes) {
  return emit_one(AxisIndex{axes}, {}, {.dtype = DType::kI64, .shape = {}, .sharding = {}});
}

ValueId Builder::rename(ValueId x, const std::string& from, const std::string& to) {
  ValueType out = type(x);
  out.shape = out.shape.renamed(from, to);
  std::vector<std::int64_t> strides = this->strides(x);
  const ValueId id = emit_one(View{0, strides}, {x}, std::move(out));
  strides_[id] = std::move(strides);
  return id;
}

ValueId Builder::slice(ValueId x, const std::string& dim, std::int64_t begin, std::int64_t size) {
  if (begin == 0 && size == value(x).shape.size_of(dim)) return x;
  ValueType out = type(x);
  std::vector<std::int64_t> strides = this->strides(x);
  const std::int64_t offset = begin * strides[out.shape.position(dim)];
  out.shape = out.shape.resized(dim, size);
  const ValueId id = emit_one(View{offset, strides}, {x}, std::move(out));
  strides_[id] = std::move(strides);
  return id;
}

ValueId Builder::reshape(ValueId x, const Shape& shape, const Sharding& sharding) {
  internal_check(shape.elements() == value(x).shape.elements(), "a reshape that changes the number of elements");
  std::optional<std::vector<std::int64_t>> strides = reshaped_strides(value(x).shape, this->strides(x), shape);
  if (!strides) {
    x = dense(x, value(x).shape);
    strides = dense_strides(shape);
  }
  const ValueId id = emit_one(View{0, *strides}, {x}, {value(x).dtype, shape, sharding});
  strides_[id] = *strides;
  return id;
}

ValueId Builder::relabel(ValueId x, const Sharding& sharding) {
  if (value(x).sharding == sharding) return x;
  const ValueId id = emit_one(View{0, strides(x)}, {x}, {value(x).dtype, value(x).shape, sharding});
  strides_[id] = strides(x);
  return id;
}

ValueId Builder::shard(ValueId x, const std::string& dim, const Axes& axes) {
  if (axes.empty()) return x;
  const Shard operation{dim, axes};
  const ValueId id = emit_one(operation, {x}, result_of(operation, type(x), mesh()));
  strides_[id] = strides(x);
  return id;
}

ValueId Builder::all_reduce(ValueId x, const Axes& axes) {
  const AllReduce operation{value(x).sharding.pending, axes};
  return emit_one(operation, {x}, result_of(operation, type(x), mesh()));
}

ValueId Builder::reduce_scatter(ValueId x, const std::string& dim, const Axes& axes) {
  const ReduceScatter operation{value(x).sharding.pending, dim, axes};
  return emit_one(operation, {x}, result_of(operation, type(x), mesh()));
}

ValueId Builder::all_gather(ValueId x, const std::string& dim, const Axes& axes) {
  const AllGather operation{dim, axes};
  return emit_one(operation, {x}, result_of(operation, type(x), mesh()));
}

ValueId Builder::all_to_all(ValueId x, const std::string& split, const std::string& gather, const Axes& axes) {
  const AllToAll operation{split, gather, axes};
  return emit_one(operation, {x}, result_of(operation, type(x), mesh()));
}

ValueId Builder::permute(ValueId x, const Axes& axes, std::vector<std::int64_t> to) {
  return emit_one(Permute{axes, std::move(to)}, {x}, type(x));
}

ValueType result_of(const Operation& operation, const ValueType& x, const Mesh& mesh) {
  ValueType out = x;
  if (const auto* w = std::get_if<Shard>(&operation)) {
    split(out, w->dim, w->axes, mesh);
  } else if (const auto* w = std::get_if<AllReduce>(&operation)) {
    drop_partial(out.sharding, w->axes);
  } else if (const auto* w = std::get_if<ReduceScatter>(&operation)) {
    drop_partial(out.sharding, w->axes);
    split(out, w->dim, w->axes, mesh);
  } else if (const auto* w = std::get_if<AllGather>(&operation)) {
    gather(out, w->dim, w->axes, mesh);
  } else if (const auto* w = std::get_if<AllToAll>(&operation)) {
    gather(out, w->gather, w->axes, mesh);
    split(out, w->split, w->axes, mesh);
  }
  return out;
}

bool is_dense(const Shape& shape, const std::vector<std::int64_t>& strides) {
  std::int64_t stride = 1;
  for (std::size_t i = shape.rank(); i-- > 0; stride *= shape[i].size)
    if (strides[i] != stride) return false;
  return true;
}

ByValue<std::vector<std::int64_t>> strides_of(const Program& program) {
  ByValue<std::vector<std::int64_t>> strides(program.values.size());
  for (const ValueId id : strides.ids()) strides[id] = dense_strides(program.values[id].shape);
  for (const Instr& instr : program.body) {
    if (const auto* view = instr.as<View>()) strides[instr.outputs[0]] = view->strides;
    if (instr.is<Shard>()) strides[instr.outputs[0]] = strides[instr.inputs[0]];
  }
  return strides;
}

}  // namespace weft
