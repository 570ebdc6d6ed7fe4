// The measurements of `weft bench lm`, and their output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/detail/models.h"
#include "weft/session.h"

namespace weft::tools {

// The most memory that a process holds outside the plan, with any config: docs/bench.md says what it is.
constexpr std::int64_t kMostUnplannedBytes = std::int64_t{48} << 20;

struct LmReport {
  std::string config, mesh, layout, store, wire, device, dtype, optimizer;
  int store_level = 0, processors = 1;
  models::Sizes sizes;
  std::vector<double> losses = {};   // of all steps, warm-up included
  std::vector<double> seconds = {};  // of the timed steps
  double cpu_s = 0;                  // of all threads of this process, in the timed steps
  double setup_s = 0, plan_s = 0, bind_s = 0, work_ratio = 1;
  double first_loss_s = 0, weights_s = 0;  // from the session to the end of step 1; of it, the initial weights
  double product_flops = 0;                // of a large product in the config's dtype, a second; 0: not measured
  double predicted_s = 0;            // of a step, on the machine of --machine; 0: none was given
  std::int64_t predicted_bytes = 0;  // of variables and arena, likewise
  PlannedMemory planned = {};        // of one processor
  std::int64_t peak_bytes = 0;       // resident, of all processes together

  // With the devices cuda and xla the planned memory is the card's or the compiler's, and the resident memory is the host's.
  bool plan_is_resident() const { return device != device::cuda().name && device != device::xla().name; }
  double step_seconds() const;  // the median
  double causal_gflop() const;  // of a step, with the half of attention that a causal model needs
  std::int64_t unplanned_bytes() const { return peak_bytes - processors * planned.sum(); }

  std::string json() const;   // one line; docs/bench.md lists the keys
  std::string table() const;  // for people
};

}  // namespace weft::tools
