// Loops in programs: text, verifier, passes, memory plan; and the dones of collectives. The mesh is data:2 model:4 one:1.
#include <gmock/gmock.h>

#include "base/str.h"
#include "program/cost.h"
#include "program/memory_plan.h"
#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"
#include "support/expect_error.h"

namespace weft::loop_test {
namespace {

using test::is_program;
using test::program_of;
using test::raw_program_of;

// A loop that carries %10 and reads %1 from outside.
const std::string kLoop = R"(
input x %0 f32 [a=4]
input y %1 f32 [a=4]
%10 f32 [a=4] = loop %0, %1 trips=3 stops=false
  input i %0 i64 []
  input c %1 f32 [a=4]
  input y %2 f32 [a=4]
  %3 f32 [a=4] = map %1, %2 expr=add($0, $1)
  output next %3
end
output o %10)";

TEST(LoopText, ComesBackAsItWas) {
  const Program p = program_of(kLoop);
  EXPECT_EQ(to_text(parse_program(to_text(p))), to_text(p));
  EXPECT_EQ(body_of(p.body[0])->body.size(), 1u);
}

TEST(LoopText, BrokenTextsAreRefused) {
  EXPECT_USER_ERROR(raw_program_of("%1 f32 [] = loop trips=3 stops=false\n  input i %0 i64 []"), "the text breaks off");
  EXPECT_USER_ERROR(raw_program_of("%1 f32 [] = loop trips=3 stops=false\n variable w %0 f32 [] trainable\nend"),
                    "there is no instruction 'variable'");
  EXPECT_USER_ERROR(raw_program_of("%1 f32 [] = map expr=0:f32 @recompute#x"), "has no number of a recomputation",
                    "recompute#1");
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "loop trips=1 stops=false\n";
  EXPECT_USER_ERROR(raw_program_of(deep), "loops lie too deep in each other", "at most 16");
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LoopVerifier, DemandsTypesThatAgree) {
  const auto broken = [](const std::string& from, const std::string& to) {
    return raw_program_of(with(kLoop, from, to));
  };
  EXPECT_INTERNAL_ERROR(verify(broken("trips=3", "trips=0"), "t"), "runs 1 to");
  EXPECT_INTERNAL_ERROR(verify(broken("i %0 i64 []", "i %0 i32 []"), "t"), "the iteration is an i64 scalar");
  EXPECT_INTERNAL_ERROR(verify(broken("loop %0, %1", "loop %0"), "t"), "the iteration and the loop's operands");
  EXPECT_INTERNAL_ERROR(verify(broken("  input y %2 f32 [a=4]", "  input y %2 f64 [a=4]"), "t"),
                        "operand 1 has the type of the body's input");
  EXPECT_INTERNAL_ERROR(verify(broken("  output next %3\n", ""), "t"), "the next of all that is carried");
  EXPECT_INTERNAL_ERROR(verify(broken("%10 f32 [a=4]", "%10 f32 [b=4]"), "t"), "have one type");
  EXPECT_INTERNAL_ERROR(verify(broken("stops=false", "stops=true"), "t"), "the next of all that is carried");
}

TEST(LoopVerifier, WhatEndsALoopIsAlikeEverywhere) {
  const auto stopping = [](const std::string& value) {
    return raw_program_of(str(R"(
input x %0 f32 []
%10 f32 [] = loop %0 trips=3 stops=true
  input i %0 i64 []
  input c %1 f32 []
  %5 i64 [] = axis_index axes=)",
                              value, R"(
  %6 bool [] = map %5 expr=less($0, 1:i64)
  %7 f32 [] = copy %1
  output next %7
  output stop %6
end
output o %10)"));
  };
  verify(stopping("one"), "t");
  EXPECT_INTERNAL_ERROR(verify(stopping("data"), "t"), "what ends a loop is the same on every processor");
}

// A loop that adds an all_reduce to what it carries, from a number on.
std::string summing_from(const std::string& number) {
  return str(R"(
input x %0 f32 [a=4] {| sum:data}
%1 f32 [a=4] = map expr=)",
             number, R"(
%2 f32 [a=4] = loop %1, %0 trips=5 stops=false
  input i %0 i64 []
  input sum %1 f32 [a=4]
  input x %2 f32 [a=4] {| sum:data}
  %3 f32 [a=4] = all_reduce %2 how=sum axes=data
  %4 f32 [a=4] = map %1, %3 expr=add($0, $1)
  output next %4
end
output o %2)");
}

TEST(LoopPasses, WhatALoopSumsUpIsReducedAfterIt) {
  EXPECT_TRUE(is_program(run_passes(program_of(summing_from("0:f32"))),
                         R"(
input x %0 f32 [a=4] {| sum:data}
%1 f32 [a=4] {| sum:data} = map expr=0:f32
%2 f32 [a=4] {| sum:data} = loop %1, %0 trips=5 stops=false
  input i %0 i64 []
  input sum %1 f32 [a=4] {| sum:data}
  input x %2 f32 [a=4] {| sum:data}
  %4 f32 [a=4] {| sum:data} = map %1, %2 expr=add($0, $1)
  output next %4
end
%3 f32 [a=4] = all_reduce %2 how=sum axes=data
output o %3)"));
}

TEST(LoopPasses, WhatStartsAtAnotherNumberIsReducedInside) {
  const std::string text = summing_from("1:f32");
  EXPECT_TRUE(is_program(run_passes(program_of(text)), text));
}

TEST(LoopPasses, CarriedValuesThatNobodyNeedsGo) {
  EXPECT_TRUE(is_program(drop_dead_code(program_of(R"(
input x %0 f32 [a=4]
input y %1 f32 [a=4]
%10 f32 [a=4], %11 f32 [a=4] = loop %0, %1, %1, %0 trips=3 stops=false
  input i %0 i64 []
  input c %1 f32 [a=4]
  input d %2 f32 [a=4]
  input y %3 f32 [a=4]
  input x %4 f32 [a=4]
  %5 f32 [a=4] = map %1, %3 expr=add($0, $1)
  %6 f32 [a=4] = map %2, %4 expr=multiply($0, $1)
  output next %5
  output next %6
end
output o %10)"),
                                        {}),
                         kLoop));
}

TEST(LoopCost, CountsEveryTrip) {
  const ProgramCost cost = summarize(program_of(summing_from("1:f32")));
  ASSERT_EQ(cost.collectives.size(), 1u);
  EXPECT_EQ(cost.collectives[0].count, 5);
  EXPECT_EQ(cost.collectives[0].bytes, 5 * 16);
  EXPECT_EQ(cost.flops, 5 * (4 + 4));
}

TEST(LoopMemory, TheNextValueIsWrittenOverTheLast) {
  const Program p = program_of(kLoop);
  const MemoryPlan plan = plan_memory(p);
  ASSERT_EQ(plan.loops.size(), 1u);
  const MemoryPlan& body = plan.loops.at(0).plan[0];
  EXPECT_EQ(body.over, (std::map<ValueId, ValueId>{{ValueId(3), ValueId(1)}}));
  EXPECT_EQ(body.arena_bytes, 64);  // the iteration alone
  EXPECT_EQ(plan.storage_of[ValueId(10)],
            plan.storage_of[ValueId(0)]);  // x dies here: the loop carries on in its place
}

TEST(LoopMemory, ACarriedValueThatIsReadAgainIsNotWrittenOver) {
  const Program p = program_of(with(kLoop, "  output next %3", R"(  %4 f32 [a=4] = map %1, %3 expr=multiply($0, $1)
  %5 f32 [a=4] = copy %3
  output next %3)"));
  const MemoryPlan plan = plan_memory(p);
  EXPECT_TRUE(plan.loops.at(0).plan[0].over.empty());
}

// A loop of three carried values; `next` names what becomes of each.
Program handing_on(const std::string& next0, const std::string& next1, const std::string& next2) {
  return program_of(str(R"(
input x %0 f32 [a=32]
input y %1 f32 [a=32]
input z %2 f32 [a=32]
%10 f32 [a=32], %11 f32 [a=32], %12 f32 [a=32] = loop %0, %1, %2 trips=3 stops=false
  input i %0 i64 []
  input c %1 f32 [a=32]
  input d %2 f32 [a=32]
  input e %3 f32 [a=32]
  %4 f32 [a=32] = map %1 expr=exp($0)
  output next %)",
                        next0, "\n  output next %", next1, "\n  output next %", next2, R"(
end
output o %10
output p %11
output q %12)"));
}

// The moves at the end of a trip, each as "1" (placed), "save 1" or "saved 1".
std::string moves_of(const MemoryPlan& plan) {
  std::string text;
  for (const auto& [carried, how] : plan.loops.at(0).plan[0].moves) {
    using How = MemoryPlan::Move::How;
    text += str(text.empty() ? "" : ", ",
                how == How::kSave         ? "save "
                : how == How::kPlaceSaved ? "saved "
                                          : "",
                carried);
  }
  return text;
}

TEST(LoopMemory, NextValuesAreMovedBeforeTheirPlacesAreWritten) {
  EXPECT_EQ(moves_of(plan_memory(program_of(kLoop))), "");
  EXPECT_EQ(moves_of(plan_memory(handing_on("1", "2", "3"))), "");
  EXPECT_EQ(moves_of(plan_memory(handing_on("4", "2", "3"))), "");  // written over
  EXPECT_EQ(moves_of(plan_memory(handing_on("4", "1", "2"))), "2, 1, 0");
  EXPECT_EQ(moves_of(plan_memory(handing_on("4", "4", "3"))), "1");  // from the place of the first
  EXPECT_EQ(moves_of(plan_memory(handing_on("2", "1", "1"))), "2, save 0, 1, saved 0");
  EXPECT_EQ(moves_of(plan_memory(handing_on("2", "3", "1"))), "save 0, 1, 2, saved 0");
  EXPECT_EQ(moves_of(plan_memory(handing_on("4", "3", "2"))), "save 1, 2, saved 1");
}

TEST(LoopMemory, OnlyARingOfNextValuesNeedsMoreMemory) {
  const auto bytes = [](const Program& p) { return plan_memory(p).loops.at(0).plan[0].arena_bytes; };
  EXPECT_EQ(bytes(handing_on("4", "2", "3")), 64);   // the iteration alone
  EXPECT_EQ(bytes(handing_on("4", "1", "2")), 128);  // a chain: exp of the first, which is still to be read
  EXPECT_EQ(bytes(handing_on("4", "3", "2")), 128);  // a ring: where the iteration was, one of the two is saved
}

// --- Dones ---

Program scheduled(const std::string& lines) { return schedule_collectives(program_of(lines), {}); }

TEST(ScheduleCollectives, StartsEarlyAndWaitsLate) {
  EXPECT_TRUE(is_program(scheduled(R"(
input x %0 f32 [a=4] {| sum:data}
input y %1 f32 [a=4]
%2 f32 [a=4] = map %1 expr=exp($0)
%3 f32 [a=4] = all_reduce %0 how=sum axes=data
%4 f32 [a=4] = map %2 expr=exp($0)
%5 f32 [a=2] = view %3 offset=0 strides=[1]
%6 f32 [a=2] = map %5 expr=exp($0)
output a %4
output b %6)"),
                         R"(
input x %0 f32 [a=4] {| sum:data}
input y %1 f32 [a=4]
%3 f32 [a=4] = all_reduce %0 how=sum axes=data
%2 f32 [a=4] = map %1 expr=exp($0)
%4 f32 [a=4] = map %2 expr=exp($0)
done %3
%5 f32 [a=2] = view %3 offset=0 strides=[1]
%6 f32 [a=2] = map %5 expr=exp($0)
output a %4
output b %6)"));
}

TEST(ScheduleCollectives, WithNothingBetweenThereIsNoDone) {
  const std::string text = R"(
input x %0 f32 [a=4] {| sum:data+model}
%3 f32 [a=4] {| sum:model} = all_reduce %0 how=sum axes=data
%4 f32 [a=4] = all_reduce %3 how=sum axes=model
%6 f32 [a=4] = map %4 expr=exp($0)
output b %6)";
  EXPECT_TRUE(is_program(scheduled(text), text));
}

TEST(ScheduleCollectives, VariablesAreGatheredOneAhead) {
  EXPECT_TRUE(is_program(scheduled(R"(
input x %0 f32 [b=4]
variable v %1 f32 [a=2] {a:data} trainable
variable w %2 f32 [a=2] {a:data} trainable
variable z %3 f32 [a=2] {a:data} trainable
%4 f32 [a=4] = all_gather %1 dim=a axes=data
%5 f32 [a=4 b=4] = contract %0, %4
%6 f32 [a=4] = all_gather %2 dim=a axes=data
%7 f32 [a=4 b=4] = contract %0, %6
%8 f32 [a=4] = all_gather %3 dim=a axes=data
%9 f32 [a=4 b=4] = contract %0, %8
output a %5
output b %7
output c %9)"),
                         R"(
input x %0 f32 [b=4]
variable v %1 f32 [a=2] {a:data} trainable
variable w %2 f32 [a=2] {a:data} trainable
variable z %3 f32 [a=2] {a:data} trainable
%4 f32 [a=4] = all_gather %1 dim=a axes=data
%6 f32 [a=4] = all_gather %2 dim=a axes=data
%5 f32 [a=4 b=4] = contract %0, %4
%8 f32 [a=4] = all_gather %3 dim=a axes=data
done %6
%7 f32 [a=4 b=4] = contract %0, %6
done %8
%9 f32 [a=4 b=4] = contract %0, %8
output a %5
output b %7
output c %9)"));
}

TEST(DoneVerifier, NothingUsesWhatIsInFlight) {
  const std::string start = "input x %0 f32 [a=4] {| sum:data}\n%3 f32 [a=4] = all_reduce %0 how=sum axes=data\n";
  EXPECT_INTERNAL_ERROR(verify(raw_program_of(start + "%4 f32 [a=4] = copy %3\ndone %3\noutput o %4"), "t"),
                        "%3 is used after its collective is done");
  EXPECT_INTERNAL_ERROR(verify(raw_program_of(start + "done %3\ndone %3\noutput o %3"), "t"), "finishes a collective");
  EXPECT_INTERNAL_ERROR(verify(raw_program_of(start + "done %0\noutput o %3"), "t"), "finishes a collective");
  verify(raw_program_of(start + "done %3\noutput o %3"), "t");
}

TEST(DoneMemory, WhatACollectiveReadsStaysUntilItIsDone) {
  const Program p = program_of(R"(
input x %0 f32 [a=4] {a:data}
%1 f32 [a=4] {a:data} = map %0 expr=exp($0)
%2 f32 [a=8] = all_gather %1 dim=a axes=data
%3 f32 [b=4] = map expr=1:f32
done %2
output o %2
output p %3)");
  const MemoryPlan plan = plan_memory(p);
  const auto storage = [&](int id) { return plan.storages[static_cast<std::size_t>(plan.storage_of[ValueId(id)])]; };
  EXPECT_EQ(storage(1).last, 3);
  EXPECT_NE(storage(3).offset, storage(1).offset);
}

TEST(DoneMemory, WhatOthersReadIsNotWrittenOverInFlight) {
  const MemoryPlan plan = plan_memory(program_of(R"(
input x %0 f32 [a=4]
%1 f32 [a=4] = map %0 expr=exp($0)
%2 f32 [a=4] = permute %1 axes=data to=[1 0]
%3 f32 [a=4] = map %1 expr=exp($0)
done %2
output o %2
output p %3)"));
  EXPECT_NE(plan.storage_of[ValueId(2)], plan.storage_of[ValueId(1)]);
}

}  // namespace
}  // namespace weft::loop_test
