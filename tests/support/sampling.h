// Building the graph of an op's sample, filling its inputs, and listing layouts: for tests over all ops.
#pragma once

#include <string>
#include <vector>

#include "language/op_def.h"
#include "weft/weft.h"

namespace weft::test {

// One op's sample: its graph, inputs with values, results, and derivatives of a fixed weighted sum of the float results.
struct BuiltSample {
  Graph graph;
  Tensors inputs;  // of the sample itself
  std::vector<SampleInput> specs;
  Tensors results;
  Tensor weighted_sum;     // empty if no result is a float
  Tensors floats;          // the inputs that the weighted sum is differentiated by
  Tensors derivatives;     // by each of them that has one
  Tensors differentiated;  // those inputs
  Feeds feeds;             // f64 values for floats
};

// Deterministic numbers of a sample's fill.
Array filled(const Shape& shape, const Fill& fill, DType dtype, std::uint64_t stream);

BuiltSample build_sample(const OpDef& op, const Sample& sample);

// Everything to fetch: results and derivatives.
Tensors fetched(const BuiltSample& built);

// Every way to lay these dims on the mesh's axes: each axis on one dim or none, products of axes in both orders, and,
// so that refusals are seen too, two dims on one axis.
std::vector<std::string> every_layout(const std::vector<std::string>& dims, const Mesh& mesh);

// Of every_layout, one of those that differ only in which of several axes of one size they name. A text (the name of a
// sample) decides which one, so that all axes have their turn.
std::vector<std::string> unlike_layouts(const std::vector<std::string>& dims, const Mesh& mesh, const std::string& by);

// All dim names of a graph that a layout can name.
std::vector<std::string> dims_of(const GraphData& graph);

// Whether a layout should work: every tensor and every op's dims divide and lie on axes of their own. Written without
// the partitioner's help.
bool is_legal(const GraphData& graph, const Mesh& mesh, const std::string& layout);

}  // namespace weft::test
