// The list of passes, and the function that runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "program/ir.h"
#include "program/target.h"

namespace weft {

struct PassTime {
  std::string pass;
  double seconds = 0;
};

struct PassOptions {
  bool verify = false;  // after every pass, and before the first
  std::function<void(std::string_view pass, const Program& after)> dump = {};
  std::vector<PassTime>* times = nullptr;
  bool in_loop = false;                              // the program is a loop's body: its inputs lie outside
  std::int64_t arena_limit = 0;                      // bytes of the arena; above it work is done again; 0: no limit
  Target target = {};                                // the engine that the program is for
  std::int64_t join_limit = std::int64_t{25} << 20;  // bytes that enter one joined collective
};

struct Pass {
  const char* name;
  Program (*run)(Program, const PassOptions&);
};

// All passes in their order.
const std::vector<Pass>& pipeline();

Program run_passes(Program program, const PassOptions& options = {});

}  // namespace weft
