// What goes wrong is said to everyone, with names, and hangs nobody.
#include <string>
#include <thread>

#include "backends.h"
#include "base/str.h"
#include "local.h"
#include "support/processor_list.h"
#include "weft/error.h"

#include <gtest/gtest.h>

namespace weft::comm::failure_test {
namespace {

class CommFailure : public testing::TestWithParam<Engine> {};

// The text of the RunError that the call must throw.
template <class Call>
std::string run_error(Call call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no RunError";
  return "";
}

void expect_has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

constexpr std::chrono::seconds kLong{30};
constexpr std::chrono::milliseconds kShort{200};

TEST_P(CommFailure, CountsThatDiffer) {
  for (const std::size_t count : {4u, 4000u})
    on_one_group(GetParam(), 3, [&](Wire& wire, Group& group) {
      const Local<float> x(wire, ProcessorId(group.rank()), group.rank() == 2 ? count + 1 : count);
      const std::string text = run_error([&] { all_reduce(group, x, x, Reduce::kSum, "w1", kLong); });
      expect_has(text, {str("processor 0 runs all_reduce of ", count, " f32"),
                        str("processor 2 runs all_reduce of ", count + 1, " f32"), "'w1'"});
    });
}

TEST_P(CommFailure, KindsDTypesAndReductionsThatDiffer) {
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    const Local<float> x(wire, ProcessorId(group.rank()), 8);
    const Reduce reduce = group.rank() == 0 ? Reduce::kSum : Reduce::kMax;
    expect_has(run_error([&] { all_reduce(group, x, x, reduce, "", kLong); }), {"f32 sum", "f32 max"});
  });
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    const Local<float> x(wire, ProcessorId(group.rank()), 8);
    const Local<std::int32_t> y(wire, ProcessorId(group.rank()), 8);
    const std::string text = run_error([&] {
      if (group.rank() == 0) all_reduce(group, x, x, Reduce::kSum, "", kLong);
      else all_reduce(group, y, y, Reduce::kSum, "", kLong);
    });
    expect_has(text, {"8 f32", "8 i32"});
  });
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    const Local<float> x(wire, ProcessorId(group.rank()), 8);
    const std::string text = run_error([&] {
      if (group.rank() == 0) barrier(group, "", kLong);
      else all_to_all(group, x, x, "", kLong);
    });
    expect_has(text, {"barrier", "all_to_all"});
  });
}

TEST_P(CommFailure, PermuteThatIsNoPermutation) {
  on_one_group(GetParam(), 3, [&](Wire& wire, Group& group) {
    const Local<float> x(wire, ProcessorId(group.rank()), 1000);
    const std::string text = run_error([&] { permute(group, x, x, 0, group.rank() == 0 ? 0 : -1, "", kLong); });
    expect_has(text, {"disagree", "from rank 0"});
  });
}

TEST_P(CommFailure, DeadlineNamesTheMissing) {
  on_one_group(GetParam(), 4, [&](Wire& wire, Group& group) {
    const Local<float> x(wire, ProcessorId(group.rank()), 2000);
    barrier(group, "the step before", kLong);
    if (group.rank() == 2) {
      std::this_thread::sleep_for(5 * kShort);
      expect_has(run_error([&] { all_reduce(group, x, x, Reduce::kSum, "gradient of w1", kLong); }),
                 {"the wire was aborted", "waited 0.2 s for processor 2"});
      return;
    }
    const std::string text = run_error([&] { all_reduce(group, x, x, Reduce::kSum, "gradient of w1", kShort); });
    expect_has(text, {"all_reduce 'gradient of w1' waited 0.2 s for processor 2 to come", "among processors 0 1 2 3"});
    // Of a processor on another host the last post is known, not whether it has finished since.
    const bool is_far = text.find("has started") != std::string::npos && GetParam().name == "mpi";
    expect_has(text, {str("processor 2: ", is_far ? "has started" : "finished", " barrier 'the step before'")});
  });
}

TEST_P(CommFailure, AbortReachesEveryGroup) {
  GetParam().run(4, [&](Wire& wire, ProcessorId processor) {
    const std::unique_ptr<Group> all = wire.join(processor, everyone(4));
    const std::unique_ptr<Group> pair =
        wire.join(processor, processor < ProcessorId(2) ? test::processors({0, 1}) : test::processors({2, 3}));
    barrier(*all, "", kLong);
    if (processor == ProcessorId(3)) {
      std::this_thread::sleep_for(kShort);
      all->abort("the disk is full");
    }
    // 0 and 1 wait in one group, 2 in another.
    Group& group = processor < ProcessorId(2) ? *all : *pair;
    expect_has(run_error([&] { barrier(group, "end of step", kLong); }),
               {"the disk is full", "barrier", "end of step"});
    expect_has(run_error([&] { wire.join(processor, everyone(4)); }), {"aborted", "the disk is full"});
    expect_has(run_error([&] { barrier(group, "again", kLong); }), {"aborted", "the disk is full"});
  });
}

// The peers get the failure itself, not only a text of it. Between hosts a long text is cut.
TEST_P(CommFailure, PeersGetTheFields) {
  const std::string cause(3000, 'x');
  on_one_group(GetParam(), 3, [&](Wire& wire, Group& group) {
    try {
      barrier(group, "all are here", kLong);
      if (group.rank() == 1)
        wire.abort({.kind = Failure::Kind::kInstruction,
                    .processor = ProcessorId(1),
                    .instruction = "contract",
                    .tensor = "h",
                    .lines = "digits.cc:9 einsum",
                    .cause = cause});
      for (;;) barrier(group, "never over", kLong);
    } catch (const FailureError& error) {
      const Failure& failure = error.failure();
      EXPECT_EQ(failure.kind, Failure::Kind::kInstruction);
      EXPECT_EQ(failure.processor, ProcessorId(1));
      EXPECT_EQ(failure.instruction, "contract");
      EXPECT_EQ(failure.tensor, "h");
      EXPECT_EQ(failure.lines, "digits.cc:9 einsum");
      EXPECT_TRUE(failure.cause == cause || (GetParam().name == "mpi" && failure.cause.ends_with("x…")));
      ASSERT_TRUE(error.seen_by());
      EXPECT_EQ(error.seen_by()->processor, ProcessorId(group.rank()));
      EXPECT_EQ(error.seen_by()->what, Collective::kBarrier);
      EXPECT_EQ(error.seen_by()->members.processors, everyone(3));
    }
  });
}

TEST_P(CommFailure, ATimeoutHasTheAwaited) {
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    try {
      if (group.rank() == 1) std::this_thread::sleep_for(5 * kShort);
      barrier(group, "late", group.rank() == 1 ? Deadline(kLong) : Deadline(kShort));
      barrier(group, "late", kLong);  // on another host the news may come after what the first barrier waits for
      ADD_FAILURE() << "no failure";
    } catch (const FailureError& error) {
      const Failure& failure = error.failure();
      EXPECT_EQ(error.seen_by().has_value(), group.rank() == 1);
      EXPECT_EQ(failure.kind, Failure::Kind::kTimeout);
      EXPECT_EQ(failure.processor, ProcessorId(0));
      EXPECT_EQ(failure.awaited.processors, test::processors({1}));
      EXPECT_FALSE(failure.awaited_came);
      EXPECT_EQ(failure.seconds, 0.2);
      ASSERT_EQ(failure.calls.size(), 1u);
      EXPECT_EQ(failure.calls[0].label, "late");
      ASSERT_EQ(failure.last.size(), 1u);
      EXPECT_EQ(failure.last[0].processor, ProcessorId(1));
      EXPECT_EQ(failure.last[0].stage, ProcessorStatus::Stage::kNothing);
      EXPECT_EQ(wire.report().at(0).label, "late");
    }
  });
}

TEST_P(CommFailure, TheFirstReasonStays) {
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    // A peer may still be on its way out of the first barrier when the wire is aborted.
    const std::string error = run_error([&] {
      barrier(group, "", kLong);
      if (group.rank() == 0) {
        wire.abort("first");
        wire.abort("second");
      }
      for (;;) barrier(group, "", kLong);
    });
    expect_has(error, {"first"});
  });
}

// The peers work on each other's buffers while one of them fails: it may free its own only when they have stopped.
TEST_P(CommFailure, BuffersMayGoAfterAnAbort) {
  for (int round = 0; round < 20; ++round)
    on_one_group(GetParam(), 3, [&](Wire& wire, Group& group) {
      run_error([&] {
        const Local<float> x(wire, ProcessorId(group.rank()), 300'000), y(wire, ProcessorId(group.rank()), 300'000);
        for (int call = 0;; ++call) {
          const Ticket ticket = group.start(Collective::kAllReduce, x, y, {.label = "x"});
          if (group.rank() == round % 3 && call == 3) wire.abort("enough");
          group.wait(ticket, kLong);
        }
      });
    });
}

TEST_P(CommFailure, LeavingWithCollectivesInFlightAborts) {
  GetParam().run(2, [&](Wire& wire, ProcessorId processor) {
    const Local<float> x(wire, processor, 1000);
    std::unique_ptr<Group> group = wire.join(processor, everyone(2));
    if (processor == ProcessorId(0)) {
      barrier(*group, "both have joined", kLong);
      group->start(Collective::kAllReduce, x, x, {});
      group.reset();
    } else {  // it may learn of the abort while still on its way out of the first barrier
      expect_has(run_error([&] {
                   barrier(*group, "both have joined", kLong);
                   all_reduce(*group, x, x, Reduce::kSum, "", kLong);
                   barrier(*group, "", kLong);
                 }),
                 {"processor 0 left its group"});
    }
  });
}

TEST_P(CommFailure, WrongCallsAreRefused) {
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    const Local<float> x(wire, ProcessorId(group.rank()), 8), y(wire, ProcessorId(group.rank()), 4);
    const Local<std::int32_t> z(wire, ProcessorId(group.rank()), 8);
    EXPECT_THROW(all_reduce(group, x, y, Reduce::kSum), InternalError);
    EXPECT_THROW(all_reduce(group, x, z, Reduce::kSum), InternalError);
    EXPECT_THROW(all_gather(group, x, y), InternalError);
    EXPECT_THROW(permute(group, x, x, 0, 2), InternalError);
    EXPECT_THROW(group.wait({100}, kLong), InternalError);
    EXPECT_THROW(wire.join(ProcessorId(group.rank()), {}), InternalError);
    EXPECT_THROW(wire.join(ProcessorId(group.rank()), test::processors({0, 1, 1})), InternalError);
    EXPECT_THROW(wire.join(ProcessorId(group.rank()), test::processors({0, 1, 2})), InternalError);
    all_reduce(group, x, x, Reduce::kSum, "still fine", kLong);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CommFailure, testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::comm::failure_test
