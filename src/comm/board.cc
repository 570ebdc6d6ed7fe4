#include "comm/board.h"

#include <algorithm>
#include <cstring>

namespace weft::comm {

void Board::started(ProcessorId processor, Collective what, std::uint32_t group, std::size_t bytes,
                    std::string_view label) {
  std::atomic<std::uint64_t>& calls = entries_[processor.index()].calls;
  calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer
  write(processor, Stage::kStarted, what, group, bytes, label);
}

void Board::waiting(ProcessorId processor, Collective what, std::uint32_t group, std::size_t bytes,
                    std::string_view label) {
  write(processor, Stage::kWaiting, what, group, bytes, label);
}

void Board::finished(ProcessorId processor) {
  entries_[processor.index()].stage.store(static_cast<std::uint64_t>(Stage::kFinished), std::memory_order_release);
}

// Release on every word: a reader that sees a new word also sees the odd version before it.
void Board::write(ProcessorId processor, Stage stage, Collective what, std::uint32_t group, std::size_t bytes,
                  std::string_view label) {
  Line& line = entries_[processor.index()];
  std::uint64_t words[kLabelWords] = {};
  if (!label.empty()) std::memcpy(words, label.data(), std::min(label.size(), sizeof words));
  const std::uint64_t version = line.version.load(std::memory_order_relaxed);
  line.version.store(version + 1, std::memory_order_relaxed);
  line.stage.store(static_cast<std::uint64_t>(stage), std::memory_order_release);
  line.call.store(static_cast<std::uint64_t>(group) << 8 | static_cast<std::uint64_t>(what), std::memory_order_release);
  line.bytes.store(bytes, std::memory_order_release);
  for (std::size_t i = 0; i < kLabelWords; ++i) line.label[i].store(words[i], std::memory_order_release);
  line.version.store(version + 2, std::memory_order_release);
}

Board::Entry Board::read(ProcessorId processor) const {
  const Line& line = entries_[processor.index()];
  for (;;) {
    const std::uint64_t version = line.version.load(std::memory_order_acquire);
    const std::uint64_t stage = line.stage.load(std::memory_order_acquire);
    const std::uint64_t call = line.call.load(std::memory_order_acquire);
    const std::uint64_t bytes = line.bytes.load(std::memory_order_acquire);
    std::uint64_t words[kLabelWords];
    for (std::size_t i = 0; i < kLabelWords; ++i) words[i] = line.label[i].load(std::memory_order_acquire);
    if (version % 2 != 0 || line.version.load(std::memory_order_relaxed) != version) continue;
    const char* text = reinterpret_cast<const char*>(words);
    return {.stage = static_cast<Stage>(stage),
            .what = static_cast<Collective>(call & 0xff),
            .group = static_cast<std::uint32_t>(call >> 8),
            .bytes = bytes,
            .calls = line.calls.load(std::memory_order_relaxed),
            .label = std::string(text, strnlen(text, sizeof words))};
  }
}

}  // namespace weft::comm
