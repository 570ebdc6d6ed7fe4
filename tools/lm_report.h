// The measurements of `weft bench lm`, and their output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/detail/models.h"

namespace weft::tools {

struct LmReport {
  std::string config, mesh, layout, store, wire, device, dtype, optimizer;
  int store_level = 0, processors = 1;
  models::Sizes sizes;
  std::vector<double> losses = {};   // of all steps, warm-up included
  std::vector<double> seconds = {};  // of the timed steps
  double setup_s = 0, compile_s = 0, work_ratio = 1;
  std::int64_t peak_bytes = 0;  // of all processes together

  std::string json() const;   // one line; docs/bench.md lists the keys
  std::string table() const;  // for people
};

}  // namespace weft::tools
