// StoredProgram: a program in its text form, run on threads without its graph: for bug reports. The text comes from
// Executable::text() or `weft explain --program`; docs/run.md.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/mesh.h"

namespace weft {

struct StoredRunOptions {
  int steps = 1;           // each with the same inputs; variables keep their values between steps
  std::uint64_t seed = 0;  // of random ops
  // Fill values that are not given, by name and this seed: floats uniform in [-1, 1), integers 0 to 9, random bools.
  // Without them every input must be given, and variables start at zero.
  std::optional<std::uint64_t> random_inputs = {}, random_variables = {};
  double deadline_seconds = 600;  // how long a processor waits in a collective
  std::int64_t most_bytes = 0;    // the limit for the memory of the run; 0: the memory of this machine
  std::function<void(const std::string& line)> print = {};  // receives the lines of print(); default: standard output
};

struct StoredRunResults {
  std::vector<std::pair<std::string, Array>> outputs;  // unsplit, of the last step
  std::map<std::string, Array> variables;              // unsplit, after the last step
  std::vector<std::map<std::string, double>> metrics;  // per step
};

class StoredProgram {
 public:
  struct Slot {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;  // unsplit
  };

  // UserError, with the line, for a text that is not a program, or that breaks a rule of programs.
  static StoredProgram parse(std::string_view text);
  static StoredProgram load(const std::string& path);

  const Mesh& mesh() const;
  int instructions() const;
  const std::vector<Slot>& inputs() const;
  const std::vector<Slot>& variables() const;
  const std::vector<Slot>& outputs() const;
  // The memory of all processors together, and of the unsplit arrays on the host.
  std::int64_t bytes() const;

  // `values`: unsplit inputs and variables by name; floats and integers are cast to the slot's dtype. UserError, before
  // anything is allocated, for missing, unknown or misshapen values and for a program that this machine cannot hold.
  StoredRunResults run(const std::map<std::string, Array>& values, const StoredRunOptions& options = {}) const;

 private:
  struct State;
  explicit StoredProgram(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace weft
