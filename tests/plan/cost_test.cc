// Seconds of collectives and of programs, against numbers that are computed by hand.
#include "plan/cost.h"

#include "errors/lines.h"
#include "program/program_text.h"
#include "support/expect_error.h"

namespace weft {
namespace {

Machine machine_of(const std::string& links, int processors) {
  return Machine::parse(
      "processors = " + std::to_string(processors) + "\nbytes_per_second = 1e9\n[peak]\nf32 = 1e9\n" + links, "test");
}
std::string link(const std::string& topology, const std::string& sides, const std::string& more = "") {
  return "[[link]]\nname = \"a\"\ntopology = \"" + topology + "\"\nsides = [" + sides +
         "]\nlatency = 0.5\nbandwidth = 100.0\n" + more;
}
double seconds(const Operation& operation, const std::string& mesh, const Axes& axes, const Machine& machine) {
  return collective_seconds(operation, 800, stages_of(Mesh::parse(mesh), axes, machine));
}

TEST(WireCost, OfASwitch) {
  const Machine machine = machine_of(link("switch", "8"), 8);
  // 800 bytes: each of 8 sends 7/8 of them at 100 bytes per second; 3 steps of 0.5 s.
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:8", {0}, machine), 7 + 1.5);
  EXPECT_DOUBLE_EQ(seconds(AllGather{}, "a:8", {0}, machine), 7 + 1.5);
  EXPECT_DOUBLE_EQ(seconds(AllReduce{}, "a:8", {0}, machine), 2 * (7 + 1.5));
  EXPECT_DOUBLE_EQ(seconds(AllToAll{}, "a:8", {0}, machine), 7 + 1.5);
  EXPECT_DOUBLE_EQ(seconds(Permute{}, "a:8", {0}, machine), 8 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(AllReduce{}, "a:4 b:2", {1}, machine), 2 * (4 + 0.5));
  EXPECT_DOUBLE_EQ(seconds(AllReduce{}, "a:1 b:8", {0}, machine), 0);  // a group of one
}

TEST(WireCost, OfARing) {
  const Machine machine = machine_of(link("ring", "8"), 8);
  // A full ring goes both ways: 200 bytes per second; 7 steps.
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:8", {0}, machine), 3.5 + 3.5);
  // Half of the ring is a line.
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:2 b:4", {1}, machine), 6 + 1.5);
  // Every fourth member: four groups share the wires, and their steps close the ring.
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:2 b:4", {0}, machine), 400 / 50.0 + 0.5);
  // A byte of an all_to_all passes two wires of eight on average.
  EXPECT_DOUBLE_EQ(seconds(AllToAll{}, "a:8", {0}, machine), 700 * 2 / 200.0 + 3.5);
  EXPECT_DOUBLE_EQ(seconds(Permute{}, "a:8", {0}, machine), 8 + 0.5);
}

TEST(WireCost, OfATorus) {
  const Machine machine = machine_of(link("torus", "4, 4"), 16);
  // Both sides at once: 400 bytes per second; 3 steps along each.
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:16", {0}, machine), 750 / 400.0 + 3);
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:4 b:4", {0, 1}, machine), 750 / 400.0 + 3);
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:4 b:4", {1}, machine), 3 + 1.5);
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:4 b:4", {0}, machine), 3 + 1.5);
}

TEST(WireCost, OfTwoLevels) {
  const Machine machine = machine_of(link("switch", "4") + link("switch", "2", "shared_by = 4\n"), 8);
  // Inside 4 first, which leaves a fourth for the outer level, at a fourth of its bandwidth.
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:8", {0}, machine), (6 + 1) + (100 / 25.0 + 0.5));
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:2 b:4", {1}, machine), 6 + 1);
  EXPECT_DOUBLE_EQ(seconds(ReduceScatter{}, "a:2 b:4", {0}, machine), 400 / 25.0 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(Permute{}, "a:8", {0}, machine), 800 / 25.0 + 0.5);  // some must leave
  EXPECT_EQ(stages_of(Mesh::parse("a:8"), {0}, machine).size(), 2u);
}

// On the mesh data:2 model:4 one:1. One byte takes 1 ns, an instruction 10 ns more; an all_reduce over `data` of 16 bytes
// takes 2 (16 / 2 / 100 + 0.5) s without a table.
Machine test_machine() {
  Machine machine = machine_of(link("switch", "8"), 8);
  machine.rates[0].overhead = 1e-8;
  return machine;
}

constexpr const char* kOverlapped = R"(
input x %0 f32 [a=4] {| sum:data}
input y %1 f32 [a=4]
%2 f32 [a=4] = all_reduce %0 how=sum axes=data
%3 f32 [a=4] = map %1 expr=negative($0)
done %2
%4 f32 [a=4] = map %2, %3 expr=add($0, $1)
output o %4)";

TEST(ProgramCost, CollectivesOverlapWithWork) {
  Machine machine = test_machine();
  machine.collectives = {{"all_reduce", {{{2}, {16}}, {3e-8}}}};
  const Program p = test::program_of(kOverlapped);
  // The first map takes 32 ns of memory and 10 more: the all_reduce is done by then.
  StepCost cost = price(p, machine);
  EXPECT_NEAR(cost.seconds, 42e-9 + 58e-9, 1e-15);
  EXPECT_NEAR(cost.compute, 100e-9, 1e-15);
  EXPECT_NEAR(cost.wire, 30e-9, 1e-15);
  EXPECT_NEAR(cost.exposed, 0, 1e-15);
  machine.collectives[0].seconds.values = {5e-8};
  cost = price(p, machine);
  EXPECT_NEAR(cost.seconds, 50e-9 + 58e-9, 1e-15);
  EXPECT_NEAR(cost.exposed, 8e-9, 1e-15);
  machine.overlaps = false;
  EXPECT_NEAR(price(p, machine).seconds, 150e-9, 1e-15);
}

TEST(ProgramCost, CollectivesTakeTurnsOnTheWire) {
  Machine machine = test_machine();
  machine.collectives = {{"all_reduce", {{{2}, {16}}, {1e-7}}}};
  const Program p = test::program_of(R"(
input x %0 f32 [a=4] {| sum:data}
input y %1 f32 [a=4] {| sum:data}
input z %2 f32 [a=4]
%3 f32 [a=4] = all_reduce %0 how=sum axes=data
%4 f32 [a=4] = all_reduce %1 how=sum axes=data
%5 f32 [a=4] = map %2 expr=negative($0)
done %3
done %4
output a %3
output b %4
output c %5)");
  std::vector<TimedInstr> timeline;
  const StepCost cost = Pricer(machine, p.mesh).price(p, &timeline);
  EXPECT_NEAR(cost.seconds, 2e-7, 1e-15);
  EXPECT_NEAR(cost.exposed, 2e-7 - 42e-9, 1e-15);
  ASSERT_EQ(timeline.size(), 5u);
  EXPECT_NEAR(timeline[1].begin, 1e-7, 1e-15);
  EXPECT_NEAR(timeline[1].end, 2e-7, 1e-15);
  EXPECT_NEAR(timeline[2].begin, 0, 1e-15);
}

TEST(ProgramCost, MeasuredTimesGrowWithTheBytesBeyondTheLast) {
  Machine machine = test_machine();
  machine.collectives = {{"all_reduce", {{{2}, {4, 8}}, {1e-8, 1e-8}}}};
  EXPECT_NEAR(price(test::program_of(kOverlapped), machine).wire, 2e-8, 1e-15);  // of 16 bytes
}

TEST(ProgramCost, LoopsAreFolded) {
  const Program p = test::program_of(R"(
input x %0 f32 [a=4]
%1 f32 [a=4] = loop %0 trips=7 stops=false
  input i %0 i64 []
  input c %1 f32 [a=4]
  %2 f32 [a=4] = map %1 expr=negative($0)
  output o %2
end
output o %1)");
  const Machine machine = test_machine();
  EXPECT_NEAR(price(p, machine).seconds, 7 * 42e-9, 1e-15);
  EXPECT_NEAR(price(p, machine).flops, 7 * 4, 1e-12);
  std::vector<TimedInstr> timeline;
  EXPECT_NEAR(Pricer(machine, p.mesh).price(p, &timeline).seconds, 7 * 42e-9, 1e-15);
  EXPECT_EQ(timeline.size(), 8u);  // seven trips and the loop
}

// A processor that has computed since the last collective waits for slower members of its group, in a loop once a trip.
TEST(ProgramCost, MembersOfAGroupWaitForTheSlowest) {
  const Program p = test::program_of(R"(
input x %0 f32 [a=4]
%1 f32 [a=4] = map %0 expr=negative($0)
%2 f32 [a=4] = loop %1 trips=7 stops=false
  input i %0 i64 []
  input c %1 f32 [a=4]
  %2 f32 [a=4] = map %1 expr=negative($0)
  %3 f32 [a=4] {| sum:data} = map %2 expr=negative($0)
  %4 f32 [a=4] = all_reduce %3 how=sum axes=data
  %5 f32 [a=4] = map %4 expr=negative($0)
  output o %5
end
%3 f32 [a=4] = map %2 expr=negative($0)
output o %3)");
  Machine machine = test_machine();
  machine.collectives = {{"all_reduce", {{{2}, {16}}, {1e-7}}}};
  const StepCost equal = price(p, machine);
  EXPECT_NEAR(equal.compute, (1 + 3 * 7 + 1) * 42e-9, 1e-15);
  machine.skew = 0.1;
  const StepCost late = price(p, machine);
  EXPECT_NEAR(late.compute, equal.compute, 1e-15);
  EXPECT_NEAR(late.seconds, equal.seconds + 0.1 * (1 + 3 * 7) * 42e-9, 1e-15);  // nobody waits after the last map
  EXPECT_NEAR(late.exposed, equal.exposed + 0.1 * (1 + 3 * 7) * 42e-9, 1e-15);
  std::vector<TimedInstr> timeline;
  EXPECT_NEAR(Pricer(machine, p.mesh).price(p, &timeline).seconds, late.seconds, 1e-15);
}

TEST(ProgramCost, ProductsGoByTheirTableAndTiles) {
  const Program p = test::program_of(R"(
input x %0 f32 [m=3 k=5]
input y %1 f32 [k=5 n=2]
%2 f32 [m=3 n=2] = contract %0, %1
output o %2)");
  Machine machine = machine_of(link("switch", "8"), 8);
  EXPECT_NEAR(price(p, machine).seconds, 60 / 1e9, 1e-15);  // at the peak
  machine.rates[0].products = {{DType::kF32, Table::constant(1e6), {4, 4, 8}}};
  EXPECT_NEAR(price(p, machine).seconds, 2 * 4 * 4 * 8 / 1e6, 1e-12);
  machine.rates[0].products = {{DType::kF32, {{{3}, {2}, {4, 6.25}}, {1e6, 4e6}}, {1, 1, 1}}};
  EXPECT_NEAR(price(p, machine).seconds, 60 / 2e6, 1e-12);
}

TEST(ProgramCost, WhatCachesHoldIsFaster) {
  const Program p = test::program_of(R"(
input x %0 f32 [a=1000]
%1 f32 [a=1000] = map %0 expr=negative($0)
%2 f32 [a=1000] = map %1 expr=negative($0)
output o %2)");
  Machine machine = machine_of(link("switch", "8"), 8);
  machine.rates[0].sweep = {{{4000, 8000}}, {1e12, 1e3}};
  machine.rates[0].pointwise = 1e15;
  // Of 4000 bytes each: x comes from memory (the step touches 8000), the rest from the cache.
  EXPECT_NEAR(price(p, machine).seconds, 4000 / 1e3 + 3 * 4000 / 1e12, 1e-6);
}

TEST(ProgramCost, NewContentsOfVariablesGoToMemory) {
  const Program p = test::program_of(R"(
variable w %0 f32 [a=1000] trainable update=%1
%1 f32 [a=1000] = map %0 expr=negative($0)  @update)");
  Machine machine = machine_of(link("switch", "8"), 8);
  machine.rates[0].sweep = {{{4000, 8000}}, {1e12, 1e3}};
  machine.rates[0].pointwise = 1e15;
  EXPECT_NEAR(price(p, machine).seconds, 2 * 4000 / 1e3, 1e-6);
}

TEST(ProgramCost, BytesAndFlopsMayTakeTheirTimesInTurn) {
  const Program p =
      test::program_of("\ninput x %0 f32 [a=1000]\n%1 f32 [a=1000] = map %0 expr=negative($0)\noutput o %1");
  Machine machine = test_machine();
  machine.rates[0].sweep = Table::constant(1e3);
  machine.rates[0].pointwise = 1e3;
  machine.rates[0].overhead = 0;
  EXPECT_NEAR(price(p, machine).compute, 8, 1e-9);
  machine.rates[0].hidden = 0.25;
  EXPECT_NEAR(price(p, machine).compute, 8 + 0.75, 1e-9);
}

TEST(ProgramCost, ProcessorsTakeTurnsOnCores) {
  const Program p = test::program_of("\ninput x %0 f32 [a=4]\n%1 f32 [a=4] = map %0 expr=negative($0)\noutput o %1");
  Machine machine = test_machine();
  const double alone = price(p, machine).seconds;
  machine.cores = 2;  // for eight processors
  EXPECT_NEAR(price(p, machine).seconds, 4 * alone, 1e-15);
}

TEST(ProgramCost, NeedsAsManyProcessors) {
  const Program p = test::program_of("\ninput x %0 f32 [a=4]\noutput o %0");
  EXPECT_USER_ERROR(
      price(p, machine_of(link("switch", "4"), 4)),
      test::lines("the mesh has 8 processors, but the machine has 4", "mesh data:2 model:4 one:1, machine test",
                  "use a smaller mesh, or the description of a larger machine"));
}

}  // namespace
}  // namespace weft
