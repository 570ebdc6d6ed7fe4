// Seconds of a collective, from the links that its group spans or from measured times.
#pragma once

#include <vector>

#include "program/ir.h"
#include "weft/machine.h"

namespace weft {

// The part of a group that one level of links joins.
struct Stage {
  int count = 1;        // members of the group that it joins
  double rate = 0;      // bytes per second that a member sends
  double latency = 0;   // seconds of one pass through all members
  double distance = 1;  // wires that a byte of an all_to_all passes, over those of a pass through all members
  double one_way = 0;   // bytes per second from a member to the next
  double one_step = 0;  // seconds of latency to the next
};

// The levels that a group spans, the innermost first. An axis of the mesh whose members are `stride` apart in processor
// order and which has n members covers the processors from `stride` to `stride` * n; a level covers the processors from
// the product of the sides inside it to that product times its own sides. The group has on each level the members of
// this overlap.
std::vector<Stage> stages_of(const Mesh& mesh, const Axes& axes, const Machine& machine);

// `bytes`: of the larger of a processor's input and output.
double collective_seconds(const Operation& operation, double bytes, const std::vector<Stage>& stages);

}  // namespace weft
