// The StableHLO text of a program: one module that every processor runs, for XLA through PJRT plugins and for JAX.
//
// @main takes the inputs in the program's order, then all variables, then the seed and the step. It gives the fetched
// outputs, then the new contents of the variables that the program updates, then the operands of `host` instructions.
// All shapes are local, dense and row-major in the value's dim order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/ir.h"

namespace weft::stablehlo {

// How the module's collectives number processors. kReplicas: replica r is processor r, for our engine. kPartitions:
// partition p is processor p, with manual shardings and channels; JAX runs this form.
enum class Mode : std::uint8_t { kReplicas, kPartitions };

// What the module may use besides StableHLO. kCuda: cuDNN's fused attention, for NVIDIA cards of compute capability 8.0 or
// later.
enum class Platform : std::uint8_t { kAny, kCuda };

struct EmitOptions {
  Mode mode = Mode::kReplicas;
  Platform platform = Platform::kAny;
  // Attention works on blocks of queries, whose scores take about this many bytes; a block has 32 queries or more.
  std::int64_t attend_block_bytes = std::int64_t{16} << 20;
};

// An argument of @main. The seed is u32 [word=2], the low word first; the step is a u32 scalar. Both are always there.
struct Argument {
  enum class Role : std::uint8_t { kInput, kVariable, kSeed, kStep };
  std::string name;
  ValueId value;  // -1 for seed and step
  Role role = Role::kInput;
  Shape shape;  // local
  DType dtype = DType::kF32;
  int donated_to = -1;  // the position of the result that may overwrite it: a variable's new contents
};

// A result of @main. kHost: the operand of a `host` instruction; `what` and `name` are the instruction's texts.
struct Result {
  enum class Role : std::uint8_t { kFetched, kVariable, kHost };
  std::string name;
  ValueId value;
  Role role = Role::kFetched;
  Shape shape;  // local
  DType dtype = DType::kF32;
  std::string what = {};  // of kHost: "print" or "metric"
};

struct Module {
  std::string text;
  std::vector<Argument> arguments;
  std::vector<Result> results;
};

// UserError that lists every instruction without a StableHLO form, with the reason.
Module emit(const Program& program, const EmitOptions& options = {});

}  // namespace weft::stablehlo
