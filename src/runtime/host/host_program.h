// HostProgram: a program bound to the memory of one processor of a host engine. A step runs on the thread that starts it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/host/block.h"
#include "runtime/host/strided.h"

namespace weft {

class HostProgram : public BoundProgram {
 public:
  // Values lie at `arena` as the plan says, which has room for them.
  HostProgram(std::shared_ptr<const Compiled> compiled, HostDevice& device, std::byte* arena,
              const std::vector<void*>& variables, const Checks& checks);

  void* input(std::size_t i) const override;
  void* output(std::size_t i) const override;
  void start(const StepArgs& step) override;
  void wait() override {}  // a step is over when start returns
  std::string doing() const override { return binder_.doing(); }
  void trace_to(TraceLog* log) override { trace_ = log; }
  std::vector<RunInstr> instructions() const override;

 private:
  void bind_updates(std::byte* arena);

  const std::shared_ptr<const Compiled> compiled_;
  HostDevice& device_;
  Binder binder_;
  std::unique_ptr<Block> block_;
  std::vector<ElementCopy> save_, commit_;  // what reads variables is saved before any is written
  std::map<ValueId, void*> outputs_;        // that are saved
  TraceLog* trace_ = nullptr;
};

}  // namespace weft
