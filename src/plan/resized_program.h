// Reads a compiled program for ResizedCost: what each instruction does, with sizes that follow the mesh.
#pragma once

#include <vector>

#include "plan/resized.h"
#include "program/ir.h"
#include "program/memory_plan.h"

namespace weft {

class ResizedProgram {
 public:
  ResizedProgram(const Program& program, const Machine& machine, const Rates& rates);

  ResizedCost::Body body(const Program& p) const;
  ResizedCost::Pieces arena(const Program& p, const MemoryPlan& plan) const;
  std::vector<AxisExtent> flops(const Program& p) const;
  std::vector<AxisExtent> variable_bytes(const Program& p) const;
  std::vector<std::pair<std::int64_t, AxisSet>> divisions(const Program& p) const;

 private:
  double parts(AxisSet axes) const;  // into which the axes split a dim
  AxisExtent elements(const Value& value, double factor = 1) const;
  AxisExtent bytes(const Value& value) const;
  AxisExtent dim_extent(const Value& value, std::size_t i) const;
  std::vector<AxisExtent> bytes(const Program& p, const std::vector<ValueId>& ids) const;
  std::vector<AxisExtent> flops_of(const Program& p, const Instr& instr) const;
  ResizedCost::Product product(const Program& p, const Instr& instr,
                               const ByValue<std::vector<std::int64_t>>& strides) const;
  ResizedCost::Product convolution(const Program& p, const Instr& instr) const;
  double attend_rate(const Program& p, const Instr& instr) const;
  ResizedCost::Step computation(const Program& p, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides,
                                ResizedCost::Body& body) const;
  ResizedCost::Step collective(const Program& p, const Instr& instr, ResizedCost::Body& body) const;
  void add_touches(const Program& p, ResizedCost::Body& body, const std::vector<const Instr*>& instrs) const;
  void add_flops(const Program& p, double trips, std::vector<AxisExtent>& all) const;
  void add_divisions(const Program& p, std::vector<std::pair<std::int64_t, AxisSet>>& all) const;

  const Mesh& mesh_;
  const Machine& machine_;
  const Rates& rates_;
};

}  // namespace weft
