// Signals as a wish to stop, while it lives: SIGINT and SIGTERM, and SIGHUP and SIGPIPE, which come when the terminal is
// closed or the reader of the output has ended.
//
// A second SIGINT or SIGTERM ends the process at once. SIGHUP and SIGPIPE may come again and again: every line that is
// printed to a closed pipe raises one. They stay ignored if they were (nohup). SIGXFSZ is ignored, so that a write
// beyond the limit of a file's size fails like a write to a full disk.
#pragma once

#include <array>
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
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace weft::train
