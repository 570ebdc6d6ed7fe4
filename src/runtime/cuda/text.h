// Pieces of the CUDA source that instructions are turned into.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/reduce.h"
#include "program/ir.h"

namespace weft::cuda {

const char* stored_type(DType dtype);    // in memory: "BF16"
const char* register_type(DType dtype);  // "float"
const char* wide_type(DType dtype);      // that sums are kept in: "float", "double" or "long long"
std::size_t wide_size(DType dtype);

std::string literal(const Number& number, DType dtype);  // of register_type
std::string real_literal(double number);                 // a double
std::string join_type(Reduce how);                       // "JoinSum"
std::string join_start(Reduce how, DType dtype);         // of wide_type

// The statements that compute the nodes of a map. `operands[k]`: text of the register of operand k; `index(dim)`: text of
// the global index along it, a long long. The last node is called `result`.
struct MapText {
  std::string statements;
  std::string result;
};
template <class Index>
MapText map_text(const std::vector<MapNode>& nodes, const std::vector<std::string>& operands, const std::string& prefix,
                 const Index& index);

std::string node_text(const MapNode& node, const std::vector<std::string>& args, DType operand);

template <class Index>
MapText map_text(const std::vector<MapNode>& nodes, const std::vector<std::string>& operands, const std::string& prefix,
                 const Index& index) {
  MapText text;
  std::vector<std::string> names;
  for (const MapNode& node : nodes) {
    if (node.op == "input") {
      names.push_back(operands[static_cast<std::size_t>(node.input)]);
      continue;
    }
    if (node.op == "literal") {
      names.push_back(literal(node.literal, node.dtype));
      continue;
    }
    std::vector<std::string> args;
    for (const int arg : node.args) args.push_back(names[static_cast<std::size_t>(arg)]);
    const DType operand = node.args.empty() ? DType::kI64 : nodes[static_cast<std::size_t>(node.args[0])].dtype;
    if (node.op == "index") args.push_back(index(node.dim));
    names.push_back(prefix + "_" + std::to_string(names.size()));
    text.statements += std::string("const ") + register_type(node.dtype) + " " + names.back() + " = " +
                       node_text(node, args, operand) + ";\n";
  }
  text.result = names.back();
  return text;
}

// Dims that are walked as one: a size and a stride of every operand.
struct Run {
  std::int64_t size = 1;
  std::vector<std::int64_t> strides;
};
// The dims in order, neighbours joined where all operands step evenly; `strides[k][d]`: of operand k along dim d.
std::vector<Run> joined_runs(const std::vector<Dim>& dims, const std::vector<std::vector<std::int64_t>>& strides);
// "(i / 6 % 4) * 12ll + …": the offset of operand k at the row-major index `i` over the runs; "0" where it stays.
std::string offset_text(const std::vector<Run>& runs, std::size_t k, const std::string& i);

std::int64_t divided_up(std::int64_t a, std::int64_t b);
std::int64_t power_of_two_above(std::int64_t n);  // the least that is not below n

}  // namespace weft::cuda
