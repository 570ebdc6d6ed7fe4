#include "comm/failure.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/str.h"

namespace weft::comm {

namespace {

constexpr const char* kStartAgain = "fix the first failure and make a new Session; this session is unusable";
constexpr const char* kMendCause = "fix the cause above and make a new Session; this session is unusable";

// Writes texts of at most `limit` bytes, and lists in proportion.
class FailureWriter {
 public:
  explicit FailureWriter(std::size_t limit) : limit_(limit) {}

  void write(const Failure& failure) {
    bytes_.number(failure.kind);
    bytes_.number(failure.processor.number());
    for (const std::string* text :
         {&failure.instruction, &failure.tensor, &failure.lines, &failure.cause, &failure.code, &failure.fix})
      write_text(*text);
    bytes_.number(static_cast<std::uint32_t>(failure.calls.size()));
    for (const Call& call : failure.calls) write_call(call);
    write_list(failure.awaited);
    bytes_.number(static_cast<std::uint8_t>(failure.awaited_came));
    bytes_.number(failure.seconds);
    bytes_.number(failure.process);
    const std::size_t statuses = std::min(failure.last.size(), limit_ / sizeof(ProcessorStatus));
    bytes_.number(static_cast<std::uint32_t>(statuses));
    for (std::size_t i = 0; i < statuses; ++i) write_status(failure.last[i]);
  }

  const std::string& bytes() const { return bytes_.bytes(); }

 private:
  // Cuts between characters: a byte 10xxxxxx continues one.
  void write_text(const std::string& text) {
    if (text.size() <= limit_) return bytes_.text(text);
    static constexpr std::string_view kCut = "…";
    std::size_t end = limit_ < kCut.size() ? 0 : limit_ - kCut.size();
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    bytes_.text(limit_ < kCut.size() ? "" : str(text.substr(0, end), kCut));
  }

  void write_list(const ProcessorList& list) {
    const std::size_t count = std::min(list.processors.size(), limit_ / (2 * sizeof(int)));
    bytes_.number(static_cast<std::uint32_t>(list.left_out + list.processors.size() - count));
    bytes_.number(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) bytes_.number(list.processors[i].number());
  }

  void write_call(const Call& call) {
    bytes_.number(call.processor.number());
    bytes_.number(call.step);
    bytes_.number(call.what);
    write_text(call.label);
    bytes_.number(call.count);
    bytes_.number(call.dtype);
    bytes_.number(call.reduce);
    bytes_.number(call.source);
    bytes_.number(call.target);
    write_list(call.members);
  }

  void write_status(const ProcessorStatus& status) {
    bytes_.number(status.processor.number());
    bytes_.number(status.stage);
    bytes_.number(status.what);
    write_text(status.label);
    bytes_.number(status.bytes);
    bytes_.number(status.calls);
    write_list(status.members);
    write_text(status.host);
  }

  const std::size_t limit_;
  ByteWriter bytes_;
};

std::string written(const Failure& failure, std::size_t limit) {
  FailureWriter writer(limit);
  writer.write(failure);
  return writer.bytes();
}

ProcessorList read_list(ByteReader& bytes) {
  ProcessorList list;
  list.left_out = bytes.number<std::uint32_t>();
  for (auto count = bytes.number<std::uint32_t>(); count > 0; --count)
    list.processors.emplace_back(bytes.number<int>());
  return list;
}

// An enumerator, which `last` is the last one of.
template <class Enum>
Enum read_enum(ByteReader& bytes, Enum last) {
  const auto value = bytes.number<Enum>();
  internal_check(value <= last, "a failure that another processor sent has an unknown kind");
  return value;
}

Call read_call(ByteReader& bytes) {
  Call call;
  call.processor = ProcessorId(bytes.number<int>());
  call.step = read_enum(bytes, Call::Step::kWait);
  call.what = read_enum(bytes, Collective::kBarrier);
  call.label = bytes.text();
  call.count = bytes.number<std::uint64_t>();
  call.dtype = bytes.number<DType>();
  call.reduce = bytes.number<Reduce>();
  call.source = bytes.number<int>();
  call.target = bytes.number<int>();
  call.members = read_list(bytes);
  return call;
}

ProcessorStatus read_status(ByteReader& bytes) {
  ProcessorStatus status;
  status.processor = ProcessorId(bytes.number<int>());
  status.stage = read_enum(bytes, ProcessorStatus::Stage::kFinished);
  status.what = read_enum(bytes, Collective::kBarrier);
  status.label = bytes.text();
  status.bytes = bytes.number<std::uint64_t>();
  status.calls = bytes.number<std::uint64_t>();
  status.members = read_list(bytes);
  status.host = bytes.text();
  return status;
}

}  // namespace

// The longest texts that fit: the size grows with the limit.
std::string to_bytes(const Failure& failure, std::size_t at_most) {
  internal_check(at_most >= kLeastFailureBytes && failure.calls.size() <= 3, "a failure has no room");
  std::size_t fits = 0, too_much = at_most + 1;
  if (std::string whole = written(failure, at_most); whole.size() <= at_most) return whole;
  while (fits + 1 < too_much) {
    const std::size_t middle = fits + (too_much - fits) / 2;
    (written(failure, middle).size() <= at_most ? fits : too_much) = middle;
  }
  return written(failure, fits);
}

Failure failure_from_bytes(std::string_view text) {
  ByteReader bytes(text);
  Failure failure;
  failure.kind = read_enum(bytes, Failure::Kind::kGroupLeft);
  failure.processor = ProcessorId(bytes.number<int>());
  for (std::string* field :
       {&failure.instruction, &failure.tensor, &failure.lines, &failure.cause, &failure.code, &failure.fix})
    *field = bytes.text();
  for (auto count = bytes.number<std::uint32_t>(); count > 0; --count) failure.calls.push_back(read_call(bytes));
  failure.awaited = read_list(bytes);
  failure.awaited_came = bytes.number<std::uint8_t>() != 0;
  failure.seconds = bytes.number<double>();
  failure.process = bytes.number<std::int64_t>();
  for (auto count = bytes.number<std::uint32_t>(); count > 0; --count) failure.last.push_back(read_status(bytes));
  return failure;
}

ProcessorNames by_number() {
  return {.name = [](ProcessorId processor) { return str(processor); }};
}

namespace {

// "0 1 2 and 61 more".
std::string text_of(const ProcessorList& list, const std::function<std::string(ProcessorId)>& name,
                    const char* between) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(list.processors.size(), kMost); ++i) names.push_back(name(list.processors[i]));
  const std::size_t more = list.left_out + list.processors.size() - names.size();
  return str(join(names, between), more == 0 ? "" : str(" and ", more, " more"));
}

// Numbers without names: the coordinates of all members would make the text too long.
std::string members_text(const ProcessorList& members) {
  return str("processors ", text_of(members, by_number().name, " "));
}

std::string processor_text(ProcessorId processor, const ProcessorNames& names) {
  return str("processor ", names.name(processor));
}

std::string labeled(Collective what, const std::string& label) { return str(what, " '", label, "'"); }

// "all_reduce of 4 f32 sum": all in which members can disagree.
std::string request_text(const Call& call) {
  std::string text = str(call.what, " of ", call.count, " ", call.dtype);
  if (call.what == Collective::kAllReduce || call.what == Collective::kReduceScatter) text += str(" ", call.reduce);
  if (call.what == Collective::kPermute) text += str(" from rank ", call.source, " to rank ", call.target);
  return text;
}

std::string last_text(const Failure& failure, const char* before, const ProcessorNames& names) {
  std::string text;
  for (const ProcessorStatus& status : failure.last) text += str("; ", before, text_of(status, names));
  return text;
}

ErrorText timeout_text(const Failure& failure, const ProcessorNames& names) {
  const Call& call = failure.calls.at(0);
  const bool one = failure.awaited.processors.size() + failure.awaited.left_out == 1;
  return {
      .code = "wire.timeout",
      .what = str(labeled(call.what, call.label), " waited ", failure.seconds, " s for processor", one ? " " : "s ",
                  text_of(failure.awaited, names.name, ", "), failure.awaited_came ? " to finish" : " to come",
                  last_text(failure, "", names)),
      .where = text_of(call, names),
      .fix =
          "see what the missing processor does (the error of that processor comes first), or give a longer deadline"};
}

ErrorText disagreement_text(const Failure& failure, const ProcessorNames& names) {
  const auto runs = [&](const Call& call) {
    return str(processor_text(call.processor, names), " runs ", request_text(call));
  };
  return {
      .code = "wire.disagreement",
      .what = str("members of a group disagree: ", runs(failure.calls.at(1)), ", ", runs(failure.calls.at(2))),
      .where = text_of(failure.calls[0], names),
      .fix = "every processor must run the same program; see that all were compiled from the same graph and layout"};
}

ErrorText instruction_text(const Failure& failure, const ProcessorNames& names) {
  const std::string of_tensor = failure.tensor.empty() ? "" : str(" of '", failure.tensor, "'");
  return {.code = "run.instruction-failed",
          .what = str(failure.instruction, of_tensor, " failed: ", failure.cause),
          .where = str(processor_text(failure.processor, names), names.mesh, failure.lines.empty() ? "" : ", ",
                       failure.lines),
          .fix = kMendCause};
}

ErrorText text_of_kind(const Failure& failure, const ProcessorNames& names) {
  const auto who = [&] { return processor_text(failure.processor, names); };
  switch (failure.kind) {
    case Failure::Kind::kAborted:
      return {.code = "wire.aborted", .what = failure.cause, .where = failure.lines, .fix = kStartAgain};
    case Failure::Kind::kInstruction: return instruction_text(failure, names);
    case Failure::Kind::kProcessor:
      return {.code = "run.processor-failed",
              .what = str(who(), " failed: ", failure.cause),
              .where = failure.lines.empty() ? str(who(), names.mesh) : failure.lines,
              .fix = kMendCause};
    case Failure::Kind::kTimeout: return timeout_text(failure, names);
    case Failure::Kind::kDisagreement: return disagreement_text(failure, names);
    case Failure::Kind::kProcessEnded:
      return {
          .code = "wire.process-ended",
          .what = str(who(), " is gone: its process ", failure.process, " has ended", last_text(failure, "", names)),
          .where = str(who(), names.mesh),
          .fix = "see why that process ended (its output, the launcher's output, the kernel's log), and start again"};
    case Failure::Kind::kLauncher:
      return {.code = "wire.ended-by-launcher",
              .what = str("the launcher ends this run (SIGTERM), which happens when a rank has failed",
                          last_text(failure, "gone: ", names)),
              .where = "",
              .fix = "see the first error in the output of the ranks and of the launcher, and start again"};
    case Failure::Kind::kGroupLeft:
      return {
          .code = "wire.group-left",
          .what = str(who(), " left its group with collectives in flight; the oldest is ", failure.calls.at(0).what),
          .where = str(who(), names.mesh),
          .fix = kStartAgain};
  }
  throw InternalError("a failure of no kind");
}

}  // namespace

ErrorText text_of(const Failure& failure, const std::optional<Call>& seen_by, const ProcessorNames& names) {
  ErrorText text = text_of_kind(failure, names);
  if (!failure.code.empty()) text.code = failure.code;
  if (!failure.fix.empty()) text.fix = failure.fix;
  if (seen_by) text.where.text += str(text.where.text.empty() ? "" : "; ", "seen by ", text_of(*seen_by, names));
  return text;
}

std::string text_of(const Call& call, const ProcessorNames& names) {
  const std::string who = processor_text(call.processor, names);
  if (call.step == Call::Step::kJoin) return str(who, " joining the group of ", members_text(call.members));
  if (call.step == Call::Step::kStart) return str(who, " starting ", labeled(call.what, call.label));
  return str(who, " in ", labeled(call.what, call.label), " of ", call.count, " ", call.dtype, " among ",
             members_text(call.members));
}

std::string text_of(const ProcessorStatus& status, const ProcessorNames& names) {
  using Stage = ProcessorStatus::Stage;
  const std::string who = processor_text(status.processor, names);
  const std::string host = status.host.empty() ? "" : str(", on ", status.host);
  if (status.stage == Stage::kNothing) return str(who, ": no collective started yet", host);
  const char* verb = status.stage == Stage::kFinished  ? "finished "
                     : status.stage == Stage::kWaiting ? "waits in "
                                                       : "has started ";
  return str(who, ": ", verb, labeled(status.what, status.label), " of ", status.bytes, " bytes among ",
             members_text(status.members), " (its collective number ", status.calls, ")", host);
}

namespace {

ErrorText error_text(const Failure& failure, const std::optional<Call>& seen_by, const ProcessorNames& names) {
  ErrorText text = text_of(failure, seen_by, names);
  if (seen_by) text.what = str("the wire was aborted: ", text.what);
  return text;
}

}  // namespace

FailureError::FailureError(Failure failure, std::optional<Call> seen_by, const ProcessorNames& names)
    : RunError(error_text(failure, seen_by, names)), failure_(std::move(failure)), seen_by_(std::move(seen_by)) {}

Failure failure_of(ProcessorId processor, const std::exception_ptr& error) {
  Failure failure{.kind = Failure::Kind::kProcessor, .processor = processor};
  try {
    std::rethrow_exception(error);
  } catch (const FailureError& known) {
    return known.failure();
  } catch (const Error& known) {
    failure.code = known.text().code.text;
    failure.cause = known.text().what;
    failure.lines = known.text().where.text;
    failure.fix = known.text().fix;
  } catch (const std::exception& known) {
    failure.cause = known.what();
  } catch (...) {
    failure.cause = "something was thrown that is no std::exception";
    failure.fix = "throw errors that are std::exceptions";
  }
  return failure;
}

}  // namespace weft::comm
