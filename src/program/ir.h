// The program that every processor runs. Straight-line code on shards; one text for all processors.
//
// A value is defined once, by an input, a variable or an instruction, and has a local shape and a sharding. Dims are
// matched by name. A `view` or `shard` shares the storage of its operand and costs nothing; every other instruction
// writes new, dense, row-major storage. Variables keep their old contents until the program has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/index.h"
#include "base/phase.h"
#include "layout/sharding.h"
#include "program/operation.h"
#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/mesh.h"

namespace weft {

struct Value;
using ValueId = Id<Value>;
template <class T>
using ByValue = Indexed<ValueId, T>;

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // local
  Sharding sharding;
};

// Where an instruction comes from: its phase and the user's lines, each "file:line op".
struct Origin {
  Phase phase = Phase::kForward;
  std::vector<std::string> causes = {};
  int recompute = 0;  // which recomputation it belongs to; 0: none. Instructions of two are never merged.
};

struct Instr {
  Operation operation;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Origin origin;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&operation);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(operation);
  }
};

struct ProgramInput {
  std::string name;
  ValueId value;
};
struct ProgramVariable {
  std::string name;
  ValueId value;                  // the contents at the start of the step
  std::optional<ValueId> update;  // the contents after it
  bool trainable = true;
};
struct ProgramOutput {
  std::string name;
  ValueId value;
};

struct Program {
  Mesh mesh;
  std::string layout;
  ByValue<Value> values;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramVariable> variables;
  std::vector<Instr> body;
  std::vector<ProgramOutput> outputs;
};

// The program inside a loop or a fused instruction; null for others.
Program* body_of(const Instr& instr);
// A view or shard: shares its operand's storage.
bool is_view(const Instr& instr);
bool is_collective(const Instr& instr);
// The axes a collective talks along; empty for other instructions.
Axes axes_of(const Instr& instr);
const char* name_of(const Instr& instr);
const char* name_of(Distribution distribution);
// What a convolve or pool calls x, y and filter, operand or output (a pool has no filter: -1).
struct WindowRoles {
  ValueId x, y, filter;
};
WindowRoles roles_of(const Instr& instr);

}  // namespace weft
