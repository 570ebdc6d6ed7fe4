// The rules of attend and attend_back.
#include "base/index.h"
#include "base/str.h"
#include "program/attend.h"
#include "program/verify_rules.h"

namespace weft {

namespace {

// Every dim of `shape` is in `all`, of the same size.
void within(const Checked& c, const Shape& shape, const Shape& all, const char* what) {
  for (const Dim& dim : shape) c.demand(all.has(dim), "dim '", dim.name, "' of ", what, " is a dim of the scores");
}

void lies_whole(const Checked& c, const Value& v, const std::string& dim) {
  const Axes& axes = v.sharding.dims[v.shape.position(dim)];
  c.demand(c.program.mesh.size(axes) == 1, "dim '", dim, "' is whole");
}

void check_roles(const Checked& c, const AttendRules& rules) {
  const Shape &q = c.in(0).shape, &k = c.in(1).shape, &v = c.in(2).shape;
  c.demand(is_float(c.in(0).dtype), "attends with floats");
  for (std::size_t i = 1; i < 3; ++i) c.demand(c.in(i).dtype == c.in(0).dtype, "q, k and v have one dtype");
  c.demand(q.has(rules.key) && k.has(rules.key) && q.size_of(rules.key) == k.size_of(rules.key),
           "q and k have the key");
  c.demand(k.has(rules.memory) && v.has(rules.memory) && k.size_of(rules.memory) == v.size_of(rules.memory),
           "k and v have the memory");
  c.demand(!q.has(rules.memory), "q has no memory");
  c.demand(v.has(rules.value) && rules.value != rules.memory, "v has the value");
  c.demand(rules.value == rules.key || !q.has(rules.value), "the value is v's own, or called like the key");
  const Shape shared = k.minus({{rules.memory, 1}, {rules.key, 1}});
  c.demand(same_dims(shared, v.minus({{rules.memory, 1}, {rules.value, 1}})), "k and v have the same other dims");
  for (const Dim& dim : shared) c.demand(q.has(dim), "dim '", dim.name, "' of k is in q, of the same size");
  c.demand(!rules.causal || !rules.length.empty(), "causal needs the length");
  c.demand(rules.length.empty() || (q.has(rules.length) && !k.has(rules.length) && rules.length != rules.key),
           "the length is a dim of q that k lacks");
  lies_whole(c, c.in(0), rules.key);
  for (const std::string& dim : {rules.key, rules.memory}) lies_whole(c, c.in(1), dim);
  for (const std::string& dim : {rules.value, rules.memory}) lies_whole(c, c.in(2), dim);
}

void check_masks(const Checked& c, const AttendOperands& operands, const Shape& rows, const Shape& memory) {
  const auto operand = [&](int i) -> const Value& { return c.in(at(i)); };
  if (operands.bias >= 0) {
    c.demand(is_float(operand(operands.bias).dtype), "a bias is a float");
    within(c, operand(operands.bias).shape, rows.plus(memory), "the bias");
  }
  if (operands.query_ids < 0) return;
  c.demand(is_integer(operand(operands.query_ids).dtype) && is_integer(operand(operands.memory_ids).dtype),
           "ids are integers");
  within(c, operand(operands.query_ids).shape, rows, "the ids of queries");
  within(c, operand(operands.memory_ids).shape, memory, "the ids of memory");
}

void check_memory(const Checked& c, const AttendRules& rules, const AttendOperands& operands, const Shape& memory) {
  const auto operand = [&](int i) -> const Value& { return c.in(at(i)); };
  if (operands.memory_end >= 0) {
    c.demand(is_integer(operand(operands.memory_end).dtype), "the memory's end is an integer");
    within(c, operand(operands.memory_end).shape, memory.minus({{rules.memory, 1}}), "the memory's end");
  }
  if (operands.sources < 0) return;
  const Shape& sources = operand(operands.sources).shape;
  c.demand(c.instr.is<Attend>(), "attend_back has no sources");
  c.demand(is_integer(operand(operands.sources).dtype), "sources are integers");
  c.demand(rules.sources != rules.memory && memory.has(rules.sources), "k has the dim of the sources");
  c.demand(sources.has(rules.sources) && sources.has(rules.memory), "sources have their dim and the memory");
  within(c, sources, memory, "the sources");
  for (std::size_t i = 0; i < 3; ++i) lies_whole(c, c.in(i), rules.sources);
}

void check_joined(const Checked& c, const AttendBack& operation) {
  const Shape& out = c.out().shape;
  c.demand(out.has(Dim{operation.joined, 3}), "the joined dim has size 3");
  c.demand(out.has(operation.length) && out.has(operation.key), "the joined value has the length and the key");
  for (int i = 0; i < 3; ++i)
    c.demand(same_dims(joined_part(operation, out, i), c.in(at(i)).shape),
             "the joined value has a place for each derivative");
  c.demand(c.out().dtype == c.in(0).dtype, "a derivative has the dtype of its operand");
}

void check_derivatives(const Checked& c, const AttendBack& operation, const AttendOperands& operands) {
  const int of_bias = bias_derivative(c.instr);
  const std::size_t others = operation.joined.empty() ? 3 : 1, count = others + (of_bias >= 0 ? 1 : 0);
  c.demand(c.instr.outputs.size() == count, "gives ", others, others == 1 ? " value" : " values",
           operation.biased ? ", and the bias's at most" : "");
  if (of_bias >= 0) {
    const Value& derivative = c.out(at(of_bias));
    c.demand(same_dims(derivative.shape, c.in(at(operands.bias)).shape) && is_float(derivative.dtype),
             "the bias's derivative is a float with its dims");
  }
  if (!operation.joined.empty()) return check_joined(c, operation);
  for (std::size_t i = 0; i < others; ++i)
    c.demand(same_dims(c.out(i).shape, c.in(i).shape) && c.out(i).dtype == c.in(i).dtype,
             "a derivative has the dims and the dtype of its operand");
}

}  // namespace

void check_attend(const Checked& c) {
  const AttendRules& rules = *attend_rules(c.instr);
  const AttendOperands operands = attend_operands(c.instr);
  c.demand(static_cast<int>(c.instr.inputs.size()) == operands.count, "takes ", operands.count, " operands");
  check_roles(c, rules);
  const Shape rows = c.in(0).shape.minus({{rules.key, 1}}), memory = c.in(1).shape.minus({{rules.key, 1}});
  const Shape y = rows.plus({c.in(2).shape.dim(rules.value)});
  check_masks(c, operands, rows, memory);
  check_memory(c, rules, operands, memory);
  if (c.instr.is<Attend>()) {
    c.demand(c.instr.outputs.size() == 2, "gives 2 values");
    c.demand(same_dims(c.out(0).shape, y) && c.out(0).dtype == c.in(0).dtype,
             "y has q's dims with the value for the key");
    c.demand(same_dims(c.out(1).shape, rows) && is_float(c.out(1).dtype), "the total has y's dims without the value");
    return;
  }
  for (int i : {operands.y, operands.dy})
    c.demand(same_dims(c.in(at(i)).shape, y) && c.in(at(i)).dtype == c.in(0).dtype,
             "y and dy have q's dims with the value for the key");
  const Value& total = c.in(at(operands.total));
  c.demand(same_dims(total.shape, rows) && is_float(total.dtype), "the total has y's dims without the value");
  check_derivatives(c, *c.instr.as<AttendBack>(), operands);
}

}  // namespace weft
