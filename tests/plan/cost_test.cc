// Seconds of collectives and of programs, against numbers that are computed by hand.
#include "plan/cost.h"

#include "errors/lines.h"
#include "program/text.h"
#include "support/compile.h"
#include "support/expect_error.h"
#include "weft/ops.h"

namespace weft {
namespace {

Machine machine_of(const std::string& links, int processors) {
  return Machine::parse("processors = " + std::to_string(processors) +
                            "\nbytes_per_second = 1e9\n[peak]\nf32 = 1e9\n" + links,
                        "test");
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

TEST(WireCost, IsMeasuredWhereTimesAreGiven) {
  Machine machine = machine_of(link("switch", "8"), 8);
  machine.collectives = {{"all_reduce", {{{2}, {100, 1000}}, {1, 10}}}};
  const Program p = parse_program(to_text(test::compiled(R"(mesh a:2)")));
  (void)p;
}

}  // namespace
}  // namespace weft
