// BoundProgram: a program bound to one processor: storage for every value, a kernel for every instruction.
// Threads: made and run by the processor's own thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/wire.h"
#include "runtime/backend.h"

namespace weft {

struct RunContext {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  comm::Deadline deadline = {};
  std::function<void(const HostEvent&)> host = {};  // called on one processor only
  int host_processor = 0;
};

class BoundProgram {
 public:
  // `held`: where the variables lie. UserError listing all instructions that the backend lacks.
  BoundProgram(const Program& program, int processor, comm::Wire& wire, const Backend& backend,
               const std::map<ValueId, void*>& held);

  // Where a value lies: dense, unless it is a view.
  void* data(ValueId id) const { return views_[static_cast<std::size_t>(id)].data; }

  // Where an output lies after a run: the contents of a variable are those before the run.
  void* output(ValueId id) const { return outputs_.contains(id) ? outputs_.at(id) : data(id); }

  // Inputs lie in place already. Runs the body, then gives the variables their new contents. A failure aborts the wire, so
  // that no peer waits, and is thrown as a RunError with this processor's coordinates and the instruction's line.
  void run(const RunContext& context);

  // Where the last run is or ended, "all_reduce of 'loss', digits.cc:12 mean"; "" if all of it has been run. From any
  // thread.
  std::string doing() const;

  std::size_t arena_bytes() const { return arena_.bytes(); }

 private:
  void place_values(const std::map<ValueId, void*>& held);
  void bind_kernels(const Backend& backend);
  void bind_updates();
  TensorView saved(ValueId id);
  void run_kernel(const Instr& instr, const Kernel& kernel, const StepState& state);
  std::string place_of(const Instr& instr) const;
  [[noreturn]] void fail(const Instr& instr, const std::string& reason);

  std::string name_and_tensor(const Instr& instr) const;

  const Program& program_;
  int processor_;
  comm::Wire& wire_;
  comm::Arena arena_;
  std::vector<comm::Arena> workspaces_;
  std::map<Axes, std::unique_ptr<comm::Group>> groups_;
  std::vector<TensorView> views_;
  std::vector<std::pair<const Instr*, Kernel>> kernels_;
  std::vector<std::function<void()>> save_, commit_;  // what reads variables is saved before any is written
  std::map<ValueId, void*> outputs_;                  // that are saved
  std::atomic<const Instr*> current_ = nullptr;       // being run
};

}  // namespace weft
