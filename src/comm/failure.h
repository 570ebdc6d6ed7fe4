// Failure: what ended a run, as fields. Wires, the runtime and the session pass it on and read its fields; its text is
// made once, by text_of.
//
// A failure travels as bytes through the memory of a host and through messages between hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.h"
#include "weft/error.h"

namespace weft::comm {

// Processors by number. A list that was cut for lack of room says how many are left out.
struct ProcessorList {
  std::vector<ProcessorId> processors;
  std::uint32_t left_out = 0;
};

// A collective as one processor calls it.
struct Call {
  enum class Step : std::uint8_t { kJoin, kStart, kWait };  // of the group, of the collective, for the peers
  ProcessorId processor = {};
  Step step = Step::kWait;
  Collective what = Collective::kBarrier;
  std::string label = {};
  std::uint64_t count = 0;  // of the input
  DType dtype = DType::kF32;
  Reduce reduce = Reduce::kSum;
  int source = -1, target = -1;  // permute: ranks
  ProcessorList members = {};    // in rank order
};

// What a processor does or did last: its entry of the progress board.
struct ProcessorStatus {
  enum class Stage : std::uint8_t { kNothing, kStarted, kWaiting, kFinished };
  ProcessorId processor = {};
  Stage stage = Stage::kNothing;  // of the collective
  Collective what = Collective::kBarrier;
  std::string label = {};
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;  // collectives that the processor has started so far
  ProcessorList members = {};
  std::string host = {};  // empty if the wire has one host only
};

struct Failure {
  enum class Kind : std::uint8_t {
    kAborted,       // the program aborted the wire and says why: cause
    kInstruction,   // instruction, tensor, lines: it failed on the processor: cause
    kProcessor,     // the processor failed outside of its program: cause
    kTimeout,       // calls[0] waited too long for the awaited
    kDisagreement,  // calls[0] found that calls[1] and calls[2] do not fit together
    kProcessEnded,  // the process of the processor ended
    kLauncher,      // the launcher ends the run
    kGroupLeft,     // the processor left its group with calls[0] in flight
  };
  Kind kind = Kind::kAborted;
  ProcessorId processor = {};    // that failed; none, or unknown if of nothing
  std::string instruction = {};  // "all_reduce"
  std::string tensor = {};       // the name of its result
  std::string lines = {};        // the user's lines, or another place that the cause speaks of
  std::string cause = {};
  std::string code = {};  // of the error that is the cause; empty: that of the kind
  std::string fix = {};   // empty: what the kind advises
  std::vector<Call> calls = {};
  ProcessorList awaited = {};
  bool awaited_came = false;  // the awaited have started the collective but do not finish it
  double seconds = 0;         // waited
  std::int64_t process = 0;   // that ended
  // What the awaited, ended or gone processors did last.
  std::vector<ProcessorStatus> last = {};
};

// The most entries of Failure::last that a wire gives.
constexpr std::size_t kMostStatuses = 16;
// The least room that a failure needs; texts and lists are cut to fit into the room there is, all else stays.
constexpr std::size_t kLeastFailureBytes = 512;

std::string to_bytes(const Failure& failure, std::size_t at_most);
Failure failure_from_bytes(std::string_view bytes);  // InternalError if they are not from to_bytes

// How texts name processors. `mesh` follows the name of the processor that failed: " of mesh data:2 model:2".
struct ProcessorNames {
  std::function<std::string(ProcessorId processor)> name;  // "3", or "3 (data=1 model=1)"
  std::string mesh = {};
};
ProcessorNames by_number();

// `seen_by`: the call that the failure of another processor ended; none if the caller found the failure itself.
ErrorText text_of(const Failure& failure, const std::optional<Call>& seen_by, const ProcessorNames& names);
std::string text_of(const Call& call, const ProcessorNames& names);  // "processor 0 in all_reduce 'x' of …"
std::string text_of(const ProcessorStatus& status, const ProcessorNames& names);  // "processor 0: waits in …"

// Thrown by groups, wires and instructions.
class FailureError : public RunError {
 public:
  // `seen_by`: the call of the throwing processor that a failure of another processor ended.
  explicit FailureError(Failure failure, std::optional<Call> seen_by = {}, const ProcessorNames& names = by_number());
  // The same error with other names in its text.
  FailureError named(const ProcessorNames& names) const { return FailureError(failure_, seen_by_, names); }

  const Failure& failure() const { return failure_; }
  // None if the throwing processor failed or found the failure itself.
  const std::optional<Call>& seen_by() const { return seen_by_; }

 private:
  Failure failure_;
  std::optional<Call> seen_by_;
};

// The failure that an exception of a processor is: that of a FailureError, else one of kind kProcessor.
Failure failure_of(ProcessorId processor, const std::exception_ptr& error);

}  // namespace weft::comm
