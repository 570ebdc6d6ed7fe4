// A fused body as one list of terms: the nodes of its maps, its reductions and its operands, each computed only as far as
// it varies (per row, per column, in full or once).
#pragma once

#include <string>
#include <vector>

#include "program/fusible.h"
#include "kernels/pointwise.h"

namespace weft::cpu {

struct Term {
  enum class Kind : std::uint8_t {
    kOperand,
    kLiteral,
    kIndex,
    kApply,  // a pointwise function
    kSelect,
    kCast,
    kSpread,       // its arg, repeated to this extent
    kJoinColumns,  // of a full term: one per row
    kJoinRows,     // of a full term: one per column
    kJoinAll,      // of a full term or one per row: a scalar
  };
  Kind kind = Kind::kOperand;
  DType dtype = DType::kF32;
  Extent extent = Extent::kScalar;
  std::vector<int> args = {};
  const Pointwise* function = nullptr;  // kApply
  int operand = 0;                      // kOperand
  Number literal = 0;                   // kLiteral
  std::string dim = {};                 // kIndex
  std::int64_t begin = 0;               // kIndex: the first global index of the dim
  Reduce how = Reduce::kSum;            // of a join

  bool joins_rows() const { return kind == Kind::kJoinRows || kind == Kind::kJoinAll; }
};

struct Terms {
  std::vector<Term> all;     // args come first
  std::vector<int> outputs;  // of the body's outputs: computed terms of the extents that the plan says
};

Terms terms_of(const Program& body, const RowPlan& plan, ProcessorId processor);

}  // namespace weft::cpu
