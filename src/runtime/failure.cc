// All failures of a session's processors become one RunError.
#include <algorithm>
#include <atomic>

#include "runtime/processors.h"
#include "base/str.h"
#include "runtime/processor_names.h"
#include "weft/error.h"

namespace weft {

namespace {

// After a failure the others are at most this far from their next look at the wire, unless they hang.
constexpr std::chrono::seconds kGrace{5};

template <class Kind>
void rethrow_if(const ProcessorThreads::Failure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const Kind&) {
    throw;
  } catch (...) {
  }
}

// The call that the failure of another processor ended; none if the processor failed itself.
std::optional<comm::Call> seen_by(const ProcessorThreads::Failure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const comm::FailureError& error) {
    return error.seen_by();
  } catch (...) {
    return std::nullopt;
  }
}

// Where every processor is when some wait for others in vain. The board says which collective a processor waits in, or
// did last. For processors of this process `doing` says where they are in the program.
std::string places(const Processors& processors, const std::function<std::string(ProcessorId)>& doing,
                   const comm::ProcessorNames& names) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> idle, waiting;
  for (const comm::ProcessorStatus& status : processors.wire().report()) {
    const ProcessorId p = status.processor;
    const bool waits = status.stage == comm::ProcessorStatus::Stage::kWaiting;
    const bool is_here = std::find(processors.local().begin(), processors.local().end(), p) != processors.local().end();
    const std::string where = doing && is_here && !waits ? doing(p) : "";
    (waits ? waiting : idle)
        .push_back(where.empty() ? text_of(status, names)
                                 : str(processor_text(processors.mesh(), p), ": is in ", where));
  }
  idle.insert(idle.end(), waiting.begin(), waiting.end());
  if (idle.size() > kMost) {
    const std::size_t more = idle.size() - kMost;
    idle.resize(kMost);
    idle.push_back(str("and ", more, " more"));
  }
  return join(idle, "; ");
}

std::atomic<bool> wire_failed{false};

}  // namespace

void note_wire_failure() { wire_failed = true; }

bool has_wire_failed() { return wire_failed; }

void Processors::on_each(const ProcessorThreads::Job& job) {
  threads_->begin(job);
  const ProcessorThreads::Outcome outcome = threads_->end(std::chrono::nanoseconds::max());
  if (!outcome.failures.empty()) fail(outcome, {});
}

void Processors::end_step(const std::function<std::string(ProcessorId)>& doing) {
  pending_.reset();
  const ProcessorThreads::Outcome outcome = threads_->end(std::min<std::chrono::nanoseconds>(deadline().limit, kGrace));
  if (!outcome.failures.empty()) fail(outcome, doing);
}

void Processors::fail(const ProcessorThreads::Outcome& outcome, const std::function<std::string(ProcessorId)>& doing) {
  const std::vector<ProcessorThreads::Failure>& failures = outcome.failures;
  for (const ProcessorThreads::Failure& failure : failures)
    rethrow_if<UserError>(failure);  // found before anything was started
  const auto own = std::find_if(failures.begin(), failures.end(), [](const auto& each) { return !seen_by(each); });
  const ProcessorThreads::Failure& first = own == failures.end() ? failures[0] : *own;
  const comm::Failure found = comm::failure_of(first.processor, first.error);
  const comm::ProcessorNames names = processor_names(mesh_);
  note_wire_failure();
  wire_->abort(found);
  ErrorText text = text_of(found, seen_by(first), names);
  failure_ = text.what;
  rethrow_if<InternalError>(first);
  for (const ProcessorId processor : outcome.missing)
    text.where.text += str("; ", processor_text(mesh_, processor), " has not come back and is left behind");
  if (found.kind == comm::Failure::Kind::kTimeout) text.where.text += str("; ", places(*this, doing, names));
  throw RunError(std::move(text));
}

}  // namespace weft
