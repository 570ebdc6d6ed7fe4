// Runner: one program on the processors of this process: feed, start, wait, fetch and failure, for Session, `weft run`
// and tests.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/processors.h"

namespace weft {

// One step: what its processors are given and what is read from them, each on its own thread. A processor that hangs
// may outlive all else: the functions and `owner` keep what it uses.
struct StepJob {
  StepArgs args = {};  // print() and metrics speak on the first processor of this process
  std::uint32_t times = 1;  // so many steps, one after another, with what was fed first; the last one's results are read
  std::function<void(ProcessorId processor, BoundProgram& program)> feed = {};
  std::function<void(ProcessorId processor, const BoundProgram& program)> fetch = {};  // before another step can begin
  std::function<void(bool failed)> ended = {};  // on the thread that waits for the step, once
  std::shared_ptr<const void> owner = {};       // of the variables
};

class Runner;

// A step that the processors have been given.
class PendingStep {
 public:
  PendingStep(std::shared_ptr<Runner> runner, StepJob job) : runner_(std::move(runner)), job_(std::move(job)) {}

  // Waits for the step and throws what it threw, if it did: the same every time.
  void finish();
  // Waits for the step and forgets what it threw.
  void end();

 private:
  friend class Runner;
  void run_on(ProcessorId processor);

  const std::shared_ptr<Runner> runner_;
  StepJob job_;
  bool is_over_ = false;
  std::exception_ptr failure_ = {};
};

class Runner : public std::enable_shared_from_this<Runner> {
 public:
  // Binds the program on every processor of this process. UserError listing all instructions that the engine lacks.
  // `variables`: in the program's order.
  Runner(std::shared_ptr<Processors> processors, std::shared_ptr<const Compiled> compiled,
         const std::vector<const VariableMemory*>& variables, const Checks& checks = {});

  Processors& processors() const { return *processors_; }
  const Compiled& compiled() const { return *compiled_; }
  const Program& program() const { return compiled_->program; }
  BoundProgram& bound(ProcessorId processor) const { return *bound_[processor]; }

  // Waits for the step before, which throws what it threw, and starts this one. A Runner that starts steps is owned by
  // a shared_ptr.
  std::shared_ptr<PendingStep> start(StepJob job);

  // Gives a processor its shards of whole arrays, one per input of the program, in its dim order and dtype.
  void feed(ProcessorId processor, const std::vector<Array>& arrays) const;
  // A processor's part in gathering the outputs of a step into whole arrays, one per output.
  void fetch(ProcessorId processor, std::vector<Array>& arrays) const;

 private:
  const std::shared_ptr<Processors> processors_;
  const std::shared_ptr<const Compiled> compiled_;
  Indexed<ProcessorId, std::unique_ptr<BoundProgram>> bound_;  // by processor; null for those of other processes
};

}  // namespace weft
