// XlaProgram: a program on all devices of a client: one executable, its inputs and outputs. It reads and replaces the
// buffers of the variables.
//
// Threads: one at a time; Devices see to that. doing() is for any thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/engine.h"
#include "runtime/xla/compiler.h"
#include "runtime/xla/shard.h"
#include "stablehlo/emit.h"

namespace weft::xla {

// By processor: where each variable of the program lies, in the program's order.
using VariableShards = Indexed<ProcessorId, std::vector<Shard*>>;

class XlaProgram {
 public:
  XlaProgram(std::shared_ptr<const Compiled> compiled, const Client& client, VariableShards variables);

  Shard* input(ProcessorId processor, std::size_t i) { return &inputs_[processor][i]; }
  Shard* output(ProcessorId processor, std::size_t i) { return &outputs_[processor][i]; }

  void start(const StepArgs& step);
  void wait();  // FailureError
  bool is_running() const { return is_running_; }
  const CompiledMemory& memory() const { return built_.memory; }
  double compile_seconds() const { return built_.seconds; }

 private:
  const Program& program() const { return compiled_->program; }
  std::vector<std::vector<PJRT_Buffer*>> arguments(const StepArgs& step);
  void take_results(std::vector<std::vector<Buffer>> results);
  void finish_inputs();
  void hand_over() const;
  [[noreturn]] void fail(const RunError& error);

  const std::shared_ptr<const Compiled> compiled_;
  const Client& client_;
  const VariableShards variables_;
  stablehlo::Module module_;
  BuiltProgram built_;
  Indexed<ProcessorId, std::vector<Shard>> inputs_, outputs_, hosts_;  // hosts_: of print() and metrics
  Indexed<ProcessorId, Shard> seeds_, steps_;
  std::optional<std::uint64_t> seed_;  // that seeds_ have
  std::vector<Event> done_;
  StepArgs step_;
  int runs_ = 0;
  std::atomic<bool> is_running_ = false;
};

}  // namespace weft::xla
