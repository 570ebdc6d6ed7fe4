// The progress board: every processor writes what it does; any thread may read it at any time.
//
// Writing is a few plain stores and never waits. A reader sees a whole entry or tries again.
// Threads: one writer per processor, any number of readers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/failure.h"

namespace weft::comm {

class Board {
 public:
  using Stage = ProcessorStatus::Stage;

  // `memory` is `bytes(processors)` bytes of zeros, aligned to 64. It outlives the board, and processes may share it.
  Board(void* memory, int processors) : entries_(static_cast<Line*>(memory)), size_(processors) {}
  static std::size_t bytes(int processors) { return static_cast<std::size_t>(processors) * sizeof(Line); }

  // The processor has started a collective. `group` is the number of the member list that the wire knows.
  void started(ProcessorId processor, Collective what, std::uint32_t group, std::size_t bytes, std::string_view label);
  // The processor waits for its peers in a collective that it has started, not necessarily in the last one.
  void waiting(ProcessorId processor, Collective what, std::uint32_t group, std::size_t bytes, std::string_view label);
  // The collective that the processor started or waited in last is over.
  void finished(ProcessorId processor);

  struct Entry {
    Stage stage = Stage::kNothing;
    Collective what = Collective::kBarrier;
    std::uint32_t group = 0;
    std::uint64_t bytes = 0, calls = 0;  // calls: collectives started so far
    std::string label;
  };
  Entry read(ProcessorId processor) const;
  int size() const { return size_; }

 private:
  static constexpr std::size_t kLabelWords = 24;

  void write(ProcessorId processor, Stage stage, Collective what, std::uint32_t group, std::size_t bytes,
             std::string_view label);

  struct alignas(64) Line {
    std::atomic<std::uint64_t> version;  // odd while the entry is being written
    std::atomic<std::uint64_t> stage, call, bytes, calls;
    std::atomic<std::uint64_t> label[kLabelWords];  // the first bytes of the text, zero-padded
  };
  Line* const entries_;
  const int size_;
};

}  // namespace weft::comm
