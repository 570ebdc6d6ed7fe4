// Fault: a death at a chosen moment, so that tests can see what a run leaves behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weft::train {

class Fault {
 public:
  // "PHASE:N" or "PHASE:N@PROCESS"; "" never strikes. UserError for anything else.
  explicit Fault(const std::string& text);

  // The N-th call with the phase kills the process, at once; in the phase "step", some way into what follows.
  void at(const std::string& phase, double seconds = 0);

 private:
  std::string phase_;
  std::int64_t left_ = 0;
};

}  // namespace weft::train
