// TraceLog: when one processor ran each of its instructions, in records that are allocated before the first step.
// Threads: each worker writes a separate lane; all lanes are read after the run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/index.h"

namespace weft {

// Times are in nanoseconds of the device's clock: Device::now.
struct TraceRecord {
  // What was run: the number of a bound step, or one of these.
  static constexpr std::int64_t kCall = -1;     // Executable::run, from call to return
  static constexpr std::int64_t kProgram = -2;  // the processor's part of it
  static constexpr std::int64_t kCommit = -3;   // variables taking their new contents

  std::int64_t what = 0, run = 0, begin = 0, end = 0;
  std::int64_t busy = 0;  // of it: a worker may do several shares of one step
};

// What one processor did: its steps, one after the other, and the shares of them that each worker did.
struct TraceLanes {
  std::vector<TraceRecord> steps;
  std::vector<std::vector<TraceRecord>> shares;  // by worker; none where a step was not shared
};

class TraceLog {
 public:
  // For runs `first` … `first + runs` (the very first is 0) of a program of at most `steps` bound steps a run; for
  // fewer runs, but whole ones, where that would be too many records.
  TraceLog(int workers, std::int64_t steps, std::int64_t first, std::int64_t runs);

  bool covers(std::int64_t run) const { return run >= first_ && run < first_ + runs_; }
  void enter(std::int64_t run) { run_ = run; }  // what follows belongs to this run
  // The step `what` begins: shares that are added from now on are its shares.
  void begin(std::int64_t what) {
    what_ = what;
    ++serial_;
  }
  void add(std::int64_t what, std::int64_t begin, std::int64_t end) { write(steps_, {what, run_, begin, end, 0}); }
  void add_share(int worker, std::int64_t begin, std::int64_t end);  // by the worker that ran it

  // All of it as numbers, as many as numbers() says whatever was run, to be sent about; and read again.
  std::int64_t numbers() const;
  std::vector<std::int64_t> packed() const;
  TraceLanes unpacked(const std::int64_t* numbers) const;

 private:
  struct alignas(64) Lane {
    std::unique_ptr<TraceRecord[]> records;
    std::int64_t count = 0;
    std::int64_t serial = -1;  // of the step of the last record
  };
  void write(Lane& lane, const TraceRecord& record) {
    if (lane.count < capacity_) lane.records[at(lane.count++)] = record;
  }

  std::int64_t first_, runs_;
  std::int64_t capacity_;  // of a lane
  Lane steps_;
  std::vector<Lane> shares_;
  std::int64_t run_ = 0, what_ = 0, serial_ = 0;
};

}  // namespace weft
