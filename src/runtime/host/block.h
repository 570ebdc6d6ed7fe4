// Block: the instructions of a program, or of a loop's body, bound to storage: a place for every value and a kernel for
// every instruction. Threads: the processor's thread makes and runs it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/wire.h"
#include "program/memory_plan.h"
#include "runtime/host/host_device.h"
#include "runtime/trace.h"

namespace weft {

// One kernel and the instruction it belongs to; for a done, the collective that it finishes.
struct BoundInstr : RunInstr {
  Kernel kernel = {};
  std::int64_t number = 0;  // among all of the program, for the trace
};

// What the blocks of one program share on one processor: its groups, and where it is.
class Binder {
 public:
  Binder(HostDevice& device, const Checks& checks) : device_(device), checks_(checks) {}

  ProcessorId processor() const { return device_.processor(); }
  comm::Wire& wire() const { return device_.wire(); }
  const KernelTable& table() const { return device_.engine().table(); }
  const std::string& engine_name() const { return device_.engine().name(); }
  Workers& workers() const { return device_.workers(); }
  const Checks& checks() const { return checks_; }
  comm::Group& group(const Mesh& mesh, const Axes& axes);
  void number(std::vector<BoundInstr>& steps);  // gives each its number; they stay where they are from now on
  const std::vector<const BoundInstr*>& steps() const { return steps_; }  // by number

  // Where the steps of the present run are noted; null: nowhere.
  TraceLog* trace() const { return trace_; }
  void trace_to(TraceLog* log) { trace_ = log; }

  // What is being run: from any thread. Empty text if nothing is.
  void now_at(const BoundInstr* step) { current_.store(step, std::memory_order_relaxed); }
  std::string doing() const;

 private:
  HostDevice& device_;
  const Checks checks_;
  std::map<Axes, std::unique_ptr<comm::Group>> groups_;
  std::atomic<const BoundInstr*> current_ = nullptr;
  std::vector<const BoundInstr*> steps_;
  TraceLog* trace_ = nullptr;
};

class Block {
 public:
  // Values lie at `arena` as the plan says; `held` says where those lie that the plan leaves out.
  Block(const Program& program, const MemoryPlan& plan, std::byte* arena, const std::map<ValueId, void*>& held,
        Binder& binder);

  const TensorView& view(ValueId id) const { return views_[id]; }

  // Throws a FailureError. The failure of an instruction names the processor, the instruction, its tensor and the
  // user's lines, and aborts the wire, so that no peer waits.
  void run(const StepState& state) const;

 private:
  void bind(const MemoryPlan& plan, std::byte* arena);
  Kernel bound_loop(const Instr& instr, const MemoryPlan& plan, std::byte* arena);
  KernelArgs args_of(int position, const MemoryPlan& plan, std::byte* arena) const;
  Kernel checked(Kernel kernel, const Instr& instr) const;
  Kernel with_finite_check(Kernel kernel, const Instr& instr) const;
  void run_step(const BoundInstr& step, const StepState& state) const;
  [[noreturn]] void fail(const BoundInstr& step, const std::string& cause, const std::string& code = {}) const;

  const Program& program_;
  Binder& binder_;
  const ByValue<TensorView> views_;
  std::vector<BoundInstr> steps_;
};

}  // namespace weft
