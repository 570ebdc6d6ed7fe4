// Builder: appends instructions to a program, derives types and gives each value a name and an origin. The shorthands
// derive the output type if the instruction determines it; otherwise the caller states it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "program/ir.h"

namespace weft {

struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;  // local
  Sharding sharding;
};

class Builder {
 public:
  explicit Builder(Mesh mesh, std::string layout = {});

  const Mesh& mesh() const { return program_.mesh; }
  const Value& value(ValueId id) const { return program_.values[id]; }
  ValueType type(ValueId id) const;
  // The name and origin of what is appended from now on.
  void begin(std::string name, Origin origin);

  ValueId input(std::string name, ValueType type);
  ValueId variable(std::string name, ValueType type, bool trainable);
  void update(const std::string& variable, ValueId contents);
  void output(std::string name, ValueId value);
  Program finish() && { return std::move(program_); }

  std::vector<ValueId> emit(Operation operation, std::vector<ValueId> inputs, std::vector<ValueType> outputs);
  ValueId emit_one(Operation operation, std::vector<ValueId> inputs, ValueType output);

  // out = function(inputs…), broadcast to the output by name.
  ValueId map(const std::string& function, const std::vector<ValueId>& inputs, ValueType out);
  ValueId map(std::vector<MapNode> nodes, const std::vector<ValueId>& inputs, ValueType out);
  ValueId fill(const Number& number, ValueType out);
  ValueId cast(ValueId x, DType dtype);
  ValueId reduce(Reduce how, ValueId x, ValueType out) { return emit_one(ReduceDims{how}, {x}, std::move(out)); }
  ValueId contract(ValueId x, ValueId y, ValueType out) { return emit_one(Contract{}, {x, y}, std::move(out)); }
  // Dense, in the given dim order; `x` itself if it is so already.
  ValueId dense(ValueId x, const Shape& order);
  ValueId concat(const std::string& dim, const std::vector<ValueId>& xs);
  ValueId axis_index(const Axes& axes);

  // --- Views: no work, shared storage ---
  ValueId rename(ValueId x, const std::string& from, const std::string& to);
  ValueId slice(ValueId x, const std::string& dim, std::int64_t begin, std::int64_t size);
  // The same elements in row-major order under another local shape; copies first if the strides do not allow a view.
  ValueId reshape(ValueId x, const Shape& shape, const Sharding& sharding);
  // The same storage under another sharding of the same local shape: for values that the caller knows to lie so.
  ValueId relabel(ValueId x, const Sharding& sharding);
  ValueId shard(ValueId x, const std::string& dim, const Axes& axes);

  // --- Collectives. For reductions `axes` must be pending in x; others must be minor axes of the dim. ---
  ValueId all_reduce(ValueId x, const Axes& axes);
  ValueId reduce_scatter(ValueId x, const std::string& dim, const Axes& axes);
  ValueId all_gather(ValueId x, const std::string& dim, const Axes& axes);
  ValueId all_to_all(ValueId x, const std::string& split, const std::string& gather, const Axes& axes);
  ValueId permute(ValueId x, const Axes& axes, std::vector<std::int64_t> to);

 private:
  ValueId add_value(ValueType type);
  std::vector<std::int64_t> strides(ValueId id) const;

  Program program_;
  ByValue<std::vector<std::int64_t>> strides_;              // in elements, of views; empty for what is dense
  std::unordered_map<std::string, std::size_t> variables_;  // positions by name
  std::string name_;
  Origin origin_;
};

// The type of a collective's or shard's output; also what the verifier demands.
ValueType result_of(const Operation& operation, const ValueType& x, const Mesh& mesh);

// Whether these are the strides of dense storage.
bool is_dense(const Shape& shape, const std::vector<std::int64_t>& strides);

// Element strides of every value of a program: dense but for views.
ByValue<std::vector<std::int64_t>> strides_of(const Program& program);

// Nodes of a map that is one function of its inputs.
std::vector<MapNode> one_function(const std::string& function, const std::vector<DType>& inputs, DType out);

}  // namespace weft
