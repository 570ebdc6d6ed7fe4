#include "runtime/xla/program.h"

#include <cstring>

#include "base/str.h"
#include "runtime/processor_names.h"

namespace weft::xla {

using stablehlo::Argument;
using stablehlo::Result;

namespace {

template <class Number>
std::vector<std::byte> bytes_of_numbers(std::initializer_list<Number> numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(Number));
  std::memcpy(bytes.data(), numbers.begin(), bytes.size());
  return bytes;
}

Value value_of(const std::string& name, const Shape& shape, DType dtype) {
  return {.name = name, .dtype = dtype, .shape = shape, .sharding = {}};
}

}  // namespace

XlaProgram::XlaProgram(std::shared_ptr<const Compiled> compiled, const Client& client, VariableShards variables)
    : compiled_(std::move(compiled)),
      client_(client),
      variables_(std::move(variables)),
      module_(stablehlo::emit(program(), {.platform = platform_of(client_)})),
      built_(build(client_, module_.text)) {
  internal_check(built_.program.results() == module_.results.size(), "an executable has other results than its module");
  for (const ProcessorId p : program().mesh.processors()) {
    const int device = p.number();
    std::vector<Shard>&inputs = inputs_.emplace_back(), &outputs = outputs_.emplace_back(),
    &hosts = hosts_.emplace_back();
    for (std::size_t v = 0; v < program().variables.size(); ++v)
      variables_[p][v]->set_type(program().values[program().variables[v].value]);
    for (const Argument& a : module_.arguments) {
      const Value value = value_of(a.name, a.shape, a.dtype);
      if (a.role == Argument::Role::kInput) inputs.emplace_back(client_, device, value).defer_copies();
      if (a.role == Argument::Role::kSeed) seeds_.emplace_back(client_, device, value);
      if (a.role == Argument::Role::kStep) steps_.emplace_back(client_, device, value).defer_copies();
    }
    for (const Result& r : module_.results) {
      const Value value = value_of(r.name, r.shape, r.dtype);
      if (r.role == Result::Role::kFetched) outputs.emplace_back(client_, device, value);
      if (r.role == Result::Role::kHost) hosts.emplace_back(client_, device, value);
    }
  }
}

std::vector<std::vector<PJRT_Buffer*>> XlaProgram::arguments(const StepArgs& step) {
  std::vector<std::vector<PJRT_Buffer*>> all;
  const bool new_seed = seed_ != step.seed;
  for (const ProcessorId p : program().mesh.processors()) {
    if (new_seed)
      seeds_[p].take(
          bytes_of_numbers({static_cast<std::uint32_t>(step.seed), static_cast<std::uint32_t>(step.seed >> 32)}));
    steps_[p].take(bytes_of_numbers({step.step}));
    std::vector<PJRT_Buffer*>& list = all.emplace_back();
    std::size_t inputs = 0, variables = 0;
    for (const Argument& a : module_.arguments) switch (a.role) {
        case Argument::Role::kInput: list.push_back(inputs_[p][inputs++].buffer()); break;
        case Argument::Role::kVariable: list.push_back(variables_[p][variables++]->buffer()); break;
        case Argument::Role::kSeed: list.push_back(seeds_[p].buffer()); break;
        case Argument::Role::kStep: list.push_back(steps_[p].buffer()); break;
      }
  }
  seed_ = step.seed;
  return all;
}

// A variable takes its new buffer; the handle of the old one, donated or not, is destroyed.
void XlaProgram::take_results(std::vector<std::vector<Buffer>> results) {
  std::vector<std::size_t> updated;  // variables, in the order of the results
  for (std::size_t v = 0; v < program().variables.size(); ++v)
    if (program().variables[v].update) updated.push_back(v);
  for (const ProcessorId p : program().mesh.processors()) {
    std::size_t fetched = 0, variables = 0, hosts = 0;
    for (std::size_t r = 0; r < module_.results.size(); ++r) {
      Buffer buffer = std::move(results[at(p.number())][r]);
      switch (module_.results[r].role) {
        case Result::Role::kFetched: outputs_[p][fetched++].set_buffer(std::move(buffer)); break;
        case Result::Role::kVariable: variables_[p][updated[variables++]]->set_buffer(std::move(buffer)); break;
        case Result::Role::kHost: hosts_[p][hosts++].set_buffer(std::move(buffer)); break;
      }
    }
  }
}

void XlaProgram::start(const StepArgs& step) {
  step_ = step;
  is_running_ = true;
  for (const ProcessorId p : program().mesh.processors()) {  // what the last step gave makes room
    for (Shard& output : outputs_[p]) output.set_buffer({});
    for (Shard& host : hosts_[p]) host.set_buffer({});
  }
  try {
    std::vector<std::vector<Buffer>> results;
    done_.clear();
    built_.program.start(arguments(step), results, done_, ++runs_);
    take_results(std::move(results));
  } catch (const CallError& error) {
    fail(error);
  }
}

void XlaProgram::wait() {
  try {
    for (Event& event : done_)
      if (!event.wait("PJRT_LoadedExecutable_Execute", step_.deadline.limit)) {
        new std::vector<Event>(std::move(done_));  // left behind: destructors wait
        throw RunError({.code = "device.xla-step-late",
                        .what = str("the devices have not finished a step in ",
                                    std::chrono::duration<double>(step_.deadline.limit).count(),
                                    " s; XLA does not say which processor is missing"),
                        .where = str("plugin ", client_.plugin().path(), ", mesh ", program().mesh),
                        .fix = "see the device's own tools, or run the step with --device cpu, which names the "
                               "processor, the collective and the tensor"});
      }
    done_.clear();
    finish_inputs();
    hand_over();
  } catch (const RunError& error) {
    fail(error);
  }
  is_running_ = false;
  step_.host = {};  // it may own the session that owns this program
}

// The arrays that were fed may go now.
void XlaProgram::finish_inputs() {
  for (const ProcessorId p : program().mesh.processors())
    for (Shard& input : inputs_[p]) {
      input.finish_copy();
      input.set_buffer({});
    }
}

void XlaProgram::hand_over() const {
  if (!step_.host) return;
  const ProcessorId first(0);
  std::size_t i = 0;
  for (const Result& r : module_.results) {
    if (r.role != Result::Role::kHost) continue;
    Array value(r.shape, r.dtype);
    hosts_[first][i++].read({value.bytes(), static_cast<std::size_t>(value.elements()) * size_of(r.dtype)});
    step_.host({r.what, r.name, value});
  }
}

void XlaProgram::fail(const RunError& error) {
  step_.host = {};
  done_.clear();
  try {
    finish_inputs();
  } catch (const CallError&) {  // the first failure counts
  }
  throw comm::FailureError({.kind = comm::Failure::Kind::kProcessor,
                            .processor = ProcessorId(0),
                            .lines = error.text().where.text,
                            .cause = error.text().what,
                            .code = error.text().code.text,
                            .fix = error.text().fix},
                           {}, processor_names(program().mesh));
}

}  // namespace weft::xla
