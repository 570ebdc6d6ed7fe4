// Sleeps on a word of memory until its value changes and another thread wakes the sleepers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft::comm {

// Who may sleep on a word: threads of one process, or of every process that maps the memory (slower).
enum class Reach : std::uint8_t { kThreads, kProcesses };

// Returns when woken, when the time is over, at once if the word is not `seen`, and sometimes for no reason.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds at_most,
                 Reach reach);

// Wakes all who sleep on the word. Change the word before.
void wake_all(const std::atomic<std::uint32_t>& word, Reach reach);

}  // namespace weft::comm
