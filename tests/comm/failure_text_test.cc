// A failure is the same after its way through bytes, its texts are cut to fit, and every kind has its own text.
#include "comm/failure.h"

#include "base/str.h"
#include "support/expect_error.h"

#include "support/processor_list.h"

#include <gtest/gtest.h>

namespace weft::comm::failure_text_test {
namespace {

using Kind = Failure::Kind;

constexpr Kind kKinds[] = {Kind::kAborted,      Kind::kInstruction,  Kind::kProcessor, Kind::kTimeout,
                           Kind::kDisagreement, Kind::kProcessEnded, Kind::kLauncher,  Kind::kGroupLeft};
constexpr std::size_t kRoom = 8 << 10;

Call call(ProcessorId processor, std::uint64_t count) {
  return {.processor = processor,
          .step = Call::Step::kWait,
          .what = Collective::kAllReduce,
          .label = "of 'loss', digits.cc:12 mean",
          .count = count,
          .dtype = DType::kBF16,
          .reduce = Reduce::kMax,
          .source = 1,
          .target = 2,
          .members = {.processors = test::processors({0, 2, 3})}};
}

ProcessorStatus status(ProcessorId processor) {
  return {.processor = processor,
          .stage = ProcessorStatus::Stage::kWaiting,
          .what = Collective::kAllGather,
          .label = "w1",
          .bytes = 40,
          .calls = 7,
          .members = {.processors = test::processors({2, 3})},
          .host = "node1"};
}

// All fields are set, whatever the kind.
Failure failure(Kind kind) {
  return {.kind = kind,
          .processor = ProcessorId(3),
          .instruction = "all_reduce",
          .tensor = "loss",
          .lines = "digits.cc:12 mean",
          .cause = "the fuse blew",
          .code = "test.fuse",
          .fix = "",
          .calls = {call(ProcessorId(3), 8), call(ProcessorId(0), 4), call(ProcessorId(2), 5)},
          .awaited = {.processors = test::processors({0, 2})},
          .awaited_came = true,
          .seconds = 0.25,
          .process = 4711,
          .last = {status(ProcessorId(0)), status(ProcessorId(2))}};
}

void expect_same(const ProcessorList& a, const ProcessorList& b) {
  EXPECT_EQ(a.processors, b.processors);
  EXPECT_EQ(a.left_out, b.left_out);
}

void expect_same(const Call& a, const Call& b) {
  EXPECT_EQ(a.processor, b.processor);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.what, b.what);
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.reduce, b.reduce);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.target, b.target);
  expect_same(a.members, b.members);
}

void expect_same(const ProcessorStatus& a, const ProcessorStatus& b) {
  EXPECT_EQ(a.processor, b.processor);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.what, b.what);
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.calls, b.calls);
  EXPECT_EQ(a.host, b.host);
  expect_same(a.members, b.members);
}

// What no lack of room may change.
void expect_same_numbers(const Failure& a, const Failure& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.processor, b.processor);
  EXPECT_EQ(a.awaited_came, b.awaited_came);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.process, b.process);
  ASSERT_EQ(a.calls.size(), b.calls.size());
}

void expect_same(const Failure& a, const Failure& b) {
  expect_same_numbers(a, b);
  EXPECT_EQ(a.instruction, b.instruction);
  EXPECT_EQ(a.tensor, b.tensor);
  EXPECT_EQ(a.lines, b.lines);
  EXPECT_EQ(a.cause, b.cause);
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.fix, b.fix);
  for (std::size_t i = 0; i < a.calls.size(); ++i) expect_same(a.calls[i], b.calls[i]);
  expect_same(a.awaited, b.awaited);
  ASSERT_EQ(a.last.size(), b.last.size());
  for (std::size_t i = 0; i < a.last.size(); ++i) expect_same(a.last[i], b.last[i]);
}

TEST(FailureBytes, EveryKindComesBack) {
  const std::string odd[] = {"",
                             "processor 3: waits in ",
                             "the wire was aborted: waited 3 s for processors 1 2",
                             std::string("a\0b\n\t\xff\xfe", 8),
                             "naïve … 日本",
                             std::string(3000, 'x')};
  for (const Kind kind : kKinds)
    for (const std::string& text : odd) {
      SCOPED_TRACE(str("kind ", static_cast<int>(kind), ", text of ", text.size(), " bytes"));
      Failure sent = failure(kind);
      sent.cause = text;
      sent.calls[1].label = sent.last[0].host = text.substr(0, 200);
      expect_same(failure_from_bytes(to_bytes(sent, kRoom)), sent);
    }
  for (const Kind kind : kKinds)
    expect_same(failure_from_bytes(to_bytes({.kind = kind}, kRoom)), Failure{.kind = kind});
}

TEST(FailureBytes, OnlyTextsAndListsAreCut) {
  for (const Kind kind : kKinds)
    for (const std::size_t room : {kLeastFailureBytes, std::size_t{1024}, kRoom}) {
      Failure sent = failure(kind);
      sent.cause = std::string(100'000, 'c');
      sent.lines = std::string(50'000, 'l');
      for (int p = 0; p < 5000; ++p) sent.awaited.processors.emplace_back(p);
      for (Call& each : sent.calls) each.members.processors.assign(4096, ProcessorId(1));
      sent.last.assign(kMostStatuses, status(ProcessorId(1)));
      const std::string bytes = to_bytes(sent, room);
      EXPECT_LE(bytes.size(), room);
      const Failure got = failure_from_bytes(bytes);
      expect_same_numbers(got, sent);
      EXPECT_EQ(got.awaited.processors.size() + got.awaited.left_out, sent.awaited.processors.size());
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(got.calls[i].members.processors.size() + got.calls[i].members.left_out, 4096u);
        EXPECT_EQ(got.calls[i].count, sent.calls[i].count);
      }
      EXPECT_NO_THROW(text_of(got, got.calls[0], by_number()));
    }
}

TEST(FailureBytes, ACutTextUsesTheRoomAndEndsBetweenCharacters) {
  Failure sent{.kind = Kind::kProcessor, .processor = ProcessorId(1)};
  for (std::size_t i = 0; i < 1000; ++i) sent.cause += "é";
  for (std::size_t room = 600; room < 610; ++room) {
    const std::string bytes = to_bytes(sent, room);
    EXPECT_LE(bytes.size(), room);
    EXPECT_GE(bytes.size() + 4, room) << "room is left";
    const std::string cause = failure_from_bytes(bytes).cause;
    ASSERT_TRUE(cause.ends_with("…")) << cause;
    EXPECT_EQ((cause.size() - 3) % 2, 0u) << cause;
    EXPECT_TRUE(sent.cause.starts_with(cause.substr(0, cause.size() - 3)));
  }
}

TEST(FailureBytes, OtherBytesAreRefused) {
  const std::string bytes = to_bytes(failure(Kind::kTimeout), kRoom);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_INTERNAL_ERROR(failure_from_bytes(bytes.substr(0, size)), "ends too early");
  std::string unknown = bytes;
  unknown[0] = 100;
  EXPECT_INTERNAL_ERROR(failure_from_bytes(unknown), "unknown kind");
  EXPECT_INTERNAL_ERROR(to_bytes(failure(Kind::kTimeout), 10), "has no room");
}

ProcessorNames letters() {
  return {.name = [](ProcessorId p) { return str(p, " (", std::string(1, static_cast<char>('a' + p.number())), ")"); },
          .mesh = " of mesh m:4"};
}

std::string all_of(const ErrorText& text) { return str(text.what, "\n", text.where.text, "\n", text.fix); }

TEST(FailureText, OfEveryKind) {
  const auto text = [](Kind kind) { return all_of(text_of(failure(kind), {}, letters())); };
  const std::string start_again = "fix the first failure and make a new Session; this session is unusable";
  const std::string mend = "fix the cause above and make a new Session; this session is unusable";
  const std::string place =
      "processor 3 (d) in all_reduce 'of 'loss', digits.cc:12 mean' of 8 bf16 among processors 0 2 3";
  const std::string last_0 =
      "processor 0 (a): waits in all_gather 'w1' of 40 bytes among processors 2 3 (its collective number 7), on node1";
  const std::string last_2 =
      "processor 2 (c): waits in all_gather 'w1' of 40 bytes among processors 2 3 (its collective number 7), on node1";
  EXPECT_EQ(text(Kind::kAborted), str("the fuse blew\ndigits.cc:12 mean\n", start_again));
  EXPECT_EQ(text(Kind::kInstruction),
            str("all_reduce of 'loss' failed: the fuse blew\nprocessor 3 (d) of mesh m:4, digits.cc:12 mean\n", mend));
  EXPECT_EQ(text(Kind::kProcessor), str("processor 3 (d) failed: the fuse blew\ndigits.cc:12 mean\n", mend));
  EXPECT_EQ(text(Kind::kTimeout),
            str("all_reduce 'of 'loss', digits.cc:12 mean' waited 0.25 s for processors 0 (a), 2 (c) to finish; ",
                last_0, "; ", last_2, "\n", place,
                "\nsee what the missing processor does (the error of that processor comes first), or give a longer "
                "deadline"));
  EXPECT_EQ(text(Kind::kDisagreement),
            str("members of a group disagree: processor 0 (a) runs all_reduce of 4 bf16 max, processor 2 (c) runs "
                "all_reduce of 5 bf16 max\n",
                place,
                "\nevery processor must run the same program; see that all were compiled from the same graph and "
                "layout"));
  EXPECT_EQ(text(Kind::kProcessEnded),
            str("processor 3 (d) is gone: its process 4711 has ended; ", last_0, "; ", last_2,
                "\nprocessor 3 (d) of mesh m:4\nsee why that process ended (its output, the launcher's output, the "
                "kernel's log), and start again"));
  EXPECT_EQ(text(Kind::kLauncher),
            str("the launcher ends this run (SIGTERM), which happens when a rank has failed; gone: ", last_0,
                "; gone: ", last_2,
                "\n\nsee the first error in the output of the ranks and of the launcher, and start again"));
  EXPECT_EQ(
      text(Kind::kGroupLeft),
      str("processor 3 (d) left its group with collectives in flight; the oldest is all_reduce\nprocessor 3 (d) of "
          "mesh m:4\n",
          start_again));
}

TEST(FailureText, OneAwaitedThatDidNotCome) {
  Failure late = failure(Kind::kTimeout);
  late.awaited.processors = test::processors({2});
  late.awaited_came = false;
  late.last = {{.processor = ProcessorId(2)}};
  EXPECT_EQ(
      text_of(late, {}, by_number()).what,
      "all_reduce 'of 'loss', digits.cc:12 mean' waited 0.25 s for processor 2 to come; processor 2: no collective "
      "started yet");
}

TEST(FailureText, TheFixOfTheCauseComesFirst) {
  Failure failed = failure(Kind::kProcessor);
  failed.fix = "change the fuse";
  failed.lines = "";
  EXPECT_EQ(all_of(text_of(failed, {}, letters())),
            "processor 3 (d) failed: the fuse blew\nprocessor 3 (d) of mesh m:4\nchange the fuse");
}

TEST(FailureText, LongListsAreCut) {
  Call long_call = call(ProcessorId(0), 1);
  long_call.members = {.processors = std::vector<ProcessorId>(20, ProcessorId(5)), .left_out = 30};
  EXPECT_EQ(
      text_of(long_call, by_number()),
      "processor 0 in all_reduce 'of 'loss', digits.cc:12 mean' of 1 bf16 among processors 5 5 5 5 5 5 5 5 5 5 5 5 "
      "5 5 5 5 and 34 more");
}

TEST(FailureText, OfACall) {
  Call each = call(ProcessorId(1), 8);
  each.step = Call::Step::kStart;
  EXPECT_EQ(text_of(each, letters()), "processor 1 (b) starting all_reduce 'of 'loss', digits.cc:12 mean'");
  each.step = Call::Step::kJoin;
  EXPECT_EQ(text_of(each, letters()), "processor 1 (b) joining the group of processors 0 2 3");
}

TEST(FailureText, SaysWhoSawTheFailureOfAnother) {
  const FailureError own(failure(Kind::kInstruction));
  EXPECT_FALSE(own.seen_by());
  EXPECT_EQ(own.text().what, "all_reduce of 'loss' failed: the fuse blew");
  EXPECT_EQ(own.text().where.text, "processor 3, digits.cc:12 mean");
  const FailureError seen(failure(Kind::kInstruction), call(ProcessorId(0), 8));
  ASSERT_TRUE(seen.seen_by());
  expect_same(*seen.seen_by(), call(ProcessorId(0), 8));
  EXPECT_EQ(seen.text().what, "the wire was aborted: all_reduce of 'loss' failed: the fuse blew");
  EXPECT_EQ(
      seen.text().where.text,
      "processor 3, digits.cc:12 mean; seen by processor 0 in all_reduce 'of 'loss', digits.cc:12 mean' of 8 bf16 "
      "among processors 0 2 3");
  EXPECT_TRUE(
      seen.named(letters()).text().where.text.starts_with("processor 3 (d) of mesh m:4, digits.cc:12 mean; "
                                                          "seen by processor 0 (a) in "));
  expect_same(seen.named(letters()).failure(), seen.failure());
}

TEST(FailureText, CodeIsThatOfTheCauseOrOfTheKind) {
  const std::pair<Kind, const char*> codes[] = {{Kind::kAborted, "wire.aborted"},
                                                {Kind::kInstruction, "run.instruction-failed"},
                                                {Kind::kProcessor, "run.processor-failed"},
                                                {Kind::kTimeout, "wire.timeout"},
                                                {Kind::kDisagreement, "wire.disagreement"},
                                                {Kind::kProcessEnded, "wire.process-ended"},
                                                {Kind::kLauncher, "wire.ended-by-launcher"},
                                                {Kind::kGroupLeft, "wire.group-left"}};
  for (const auto& [kind, code] : codes) {
    Failure one = failure(kind);
    EXPECT_EQ(text_of(one, {}, letters()).code.text, "test.fuse");
    one.code = "";
    EXPECT_EQ(text_of(one, {}, letters()).code.text, code);
  }
}

TEST(FailureOf, EveryException) {
  const auto of = [](const auto& error) { return failure_of(ProcessorId(2), std::make_exception_ptr(error)); };
  expect_same(of(FailureError(failure(Kind::kTimeout), call(ProcessorId(0), 8))), failure(Kind::kTimeout));
  expect_same(of(RunError({.code = "test.memory", .what = "no memory", .where = "allocating", .fix = "buy some"})),
              {.kind = Kind::kProcessor,
               .processor = ProcessorId(2),
               .lines = "allocating",
               .cause = "no memory",
               .code = "test.memory",
               .fix = "buy some"});
  expect_same(of(std::runtime_error("boom")), {.kind = Kind::kProcessor, .processor = ProcessorId(2), .cause = "boom"});
  expect_same(of(42), {.kind = Kind::kProcessor,
                       .processor = ProcessorId(2),
                       .cause = "something was thrown that is no std::exception",
                       .fix = "throw errors that are std::exceptions"});
}

}  // namespace
}  // namespace weft::comm::failure_text_test
