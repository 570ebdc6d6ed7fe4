// The clock of host engines, and what it measures for a trace.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/trace.h"

namespace weft {

// Nanoseconds of the steady clock.
inline std::int64_t host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One step of a trace, from here to the end of the scope. A null log takes nothing.
class TraceSpan {
 public:
  TraceSpan(TraceLog* log, std::int64_t what) : log_(log), what_(what) {
    if (!log) return;
    log->begin(what);
    begin_ = host_now();
  }
  ~TraceSpan() {
    if (log_) log_->add(what_, begin_, host_now());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceLog* log_;
  std::int64_t what_, begin_ = 0;
};

}  // namespace weft
