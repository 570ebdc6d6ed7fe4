// Counts flops, bytes and collectives of one step on each processor, from the instructions of a program.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program/ir.h"

namespace weft {

struct Cost {
  double flops = 0;
  double bytes = 0;  // operands read and outputs written; for a collective, what enters it; none for a view
};

// contract: 2 per product; map: 1 per function and element, 8 if it is transcendental; reduce, scan, scatter_add and
// reducing collectives: 1 per element that enters; loop: what all its trips do, collectives apart. attend: what queries
// see alone, a causal triangle to the element and spread evenly over processors (kernels go by blocks and so do a
// little more): 2 per product, 12 per score, 1 more for the gradient of the bias; attend_back makes the scores again.
Cost cost_of(const Program& program, const Instr& instr);

// All collectives of one kind, group, dtype and phase.
struct CollectiveCost {
  std::string kind;  // "all_reduce", …
  std::string axes;  // "data+model"
  DType dtype = DType::kF32;
  Phase phase = Phase::kForward;
  std::int64_t elements = 0;  // that enter, per processor
  std::int64_t bytes = 0;
  int count = 0;
  std::vector<std::string> causes;  // "file:line op", each once
};

struct ProgramCost {
  // By phase: of contract and convolve, and the products of attention as if no mask spared any: two forward, four back.
  std::array<double, 4> contract_flops{};
  double flops = 0;                         // of all instructions
  double recomputed_flops = 0;              // of those among them that are done again
  double bytes = 0;                         // that instructions other than collectives read and write
  std::vector<CollectiveCost> collectives;  // in the order in which they first occur
};

ProgramCost summarize(const Program& program);

// The program itself, and the bodies of its loops with how often they run in a step.
void visit_bodies(const Program& program, const std::function<void(const Program& body, std::int64_t times)>& visit);

}  // namespace weft
