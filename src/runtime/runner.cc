#include "runtime/runner.h"

#include "base/str.h"

namespace weft {

Runner::Runner(std::shared_ptr<Processors> processors, std::shared_ptr<const Compiled> compiled,
               const std::vector<const VariableMemory*>& variables, const Checks& checks)
    : processors_(std::move(processors)),
      compiled_(std::move(compiled)),
      bound_(static_cast<std::size_t>(processors_->mesh().size())) {
  check_engine(program(), processors_->engine());
  processors_->on_each([&](ProcessorId p) {
    std::vector<void*> places;
    for (const VariableMemory* variable : variables) places.push_back(variable->on(p));
    bound_[p] = processors_->device(p).bind(compiled_, places, checks);
  });
}

std::shared_ptr<PendingStep> Runner::start(StepJob job) {
  processors_->make_ready();
  const auto step = std::make_shared<PendingStep>(shared_from_this(), std::move(job));
  processors_->begin_step(step, [step](ProcessorId processor) { step->run_on(processor); });
  return step;
}

void Runner::feed(ProcessorId processor, const std::vector<Array>& arrays) const {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Value& value = program().values[program().inputs[i].value];
    processors_->device(processor).upload(arrays[i], value, bound(processor).input(i));
  }
}

void Runner::fetch(ProcessorId processor, std::vector<Array>& arrays) const {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Value& value = program().values[program().outputs[i].value];
    processors_->gather_on(processor, value, bound(processor).output(i), str("of '", value.name, "', a fetched tensor"),
                           arrays[i]);
  }
}

void PendingStep::run_on(ProcessorId processor) {
  BoundProgram& bound = runner_->bound(processor);
  StepArgs args = job_.args;
  if (processor != runner_->processors().first()) args.host = {};
  if (job_.feed) job_.feed(processor, bound);
  for (std::uint32_t left = job_.times; left > 0; --left, ++args.step) {
    bound.start(args);
    if (left == 1 || !bound.queues()) bound.wait();
  }
  if (job_.fetch) job_.fetch(processor, bound);
}

void PendingStep::end() {
  if (is_over_) return;
  is_over_ = true;
  try {
    runner_->processors().end_step([&](ProcessorId p) { return runner_->bound(p).doing(); });
  } catch (...) {
    failure_ = std::current_exception();
  }
  if (job_.ended) job_.ended(failure_ != nullptr);
}

void PendingStep::finish() {
  end();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace weft
