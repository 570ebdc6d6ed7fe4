// SIGINT and SIGTERM as a wish to stop, while it lives. A second signal ends the process as if nobody listened.
#pragma once

#include <csignal>

namespace weft::train {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool asked() const;

 private:
  struct sigaction before_[2];
};

}  // namespace weft::train
