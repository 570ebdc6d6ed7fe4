// BoundProgram: a program bound to one processor: storage for every value, a kernel for every instruction.
// Threads: made and run by the processor's own thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/wire.h"
#include "runtime/engine.h"
#include "runtime/block.h"
#include "runtime/strided.h"

namespace weft {

// The workers of every processor of this process, by processor; null for others. `asked` for each, or, if that is 0, the
// cores of the process over its processors; the reference runtime has none but the processor's own thread.
std::vector<std::unique_ptr<Workers>> make_workers(const comm::Wire& wire, const Engine& engine, int asked = 0);

struct RunContext {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  comm::Deadline deadline = {};
  std::function<void(const HostEvent&)> host = {};  // called on one processor only
  int host_processor = 0;
};

class BoundProgram {
 public:
  // `held`: where the variables lie. `workers`, null for none, share the work and outlive this. A run fails at the
  // first instruction that does not pass the checks. UserError listing all instructions that the backend lacks.
  BoundProgram(const Program& program, int processor, comm::Wire& wire, const Engine& engine,
               const std::map<ValueId, void*>& held, Workers* workers = nullptr, const Checks& checks = {});

  // Where a value lies: dense, unless it is a view.
  void* data(ValueId id) const { return block_->view(id).data; }

  // Where an output lies after a run: the contents of a variable are those before the run.
  void* output(ValueId id) const { return outputs_.contains(id) ? outputs_.at(id) : data(id); }

  // Inputs lie in place already. Runs the body, then gives the variables their new contents. Fails as a Block does.
  void run(const RunContext& context);

  // Where the last run is or ended, "all_reduce of 'loss', digits.cc:12 mean"; "" if all of it has been run. From any
  // thread.
  std::string doing() const { return binder_.doing(); }

  // From now on runs that the log covers are noted in it; of this processor's workers too.
  void trace_to(TraceLog* log) { trace_ = log; }
  const std::vector<const BoundInstr*>& steps() const { return binder_.steps(); }  // by number

  double bind_seconds() const { return bind_seconds_; }  // what binding took; the arena apart
  std::size_t arena_bytes() const { return arena_.bytes(); }

 private:
  void bind_updates(const MemoryPlan& plan);

  const Program& program_;
  Workers alone_{1};
  Binder binder_;
  comm::Arena arena_;
  std::unique_ptr<Block> block_;
  std::vector<ElementCopy> save_, commit_;  // what reads variables is saved before any is written
  std::map<ValueId, void*> outputs_;        // that are saved
  TraceLog* trace_ = nullptr;
  double bind_seconds_ = 0;
};

}  // namespace weft
