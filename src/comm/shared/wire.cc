#include "comm/shared/wire.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <sched.h>

#include "base/str.h"
#include "comm/shared/group.h"
#include "weft/error.h"

namespace weft::comm {

int cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

std::size_t rank_in_group(int size, ProcessorId processor, const std::vector<ProcessorId>& members) {
  const auto me = std::find(members.begin(), members.end(), processor);
  std::vector<ProcessorId> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool unlike = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (me == members.end() || !unlike || sorted.front() < ProcessorId(0) || sorted.back() >= ProcessorId(size))
    throw InternalError(
        str("processor ", processor, " of ", size, " cannot join a group of processors ", weft::join(members, " ")));
  return at(me - members.begin());
}

std::unique_ptr<Group> SharedWire::join(ProcessorId processor, const std::vector<ProcessorId>& members) {
  const std::size_t rank = rank_in_group(size(), processor, members);
  if (std::optional<Ring> ring = block_.meet(rank, members))
    return make_group(std::move(*ring), static_cast<int>(rank));
  throw_aborted({.processor = processor, .step = Call::Step::kJoin, .members = {.processors = members}});
}

std::unique_ptr<Group> SharedWire::make_group(Ring ring, int rank) {
  return std::make_unique<SharedGroup>(*this, std::move(ring), rank);
}

namespace {

constexpr std::chrono::milliseconds kLookAgainAfter{5};

// The process that reports the last failure instead of this one: 0 if it is this one, kOtherHost if it is not here.
std::atomic<std::uint32_t> reporter{0};

bool may_run(std::uint32_t process) { return process == kOtherHost || kill(static_cast<pid_t>(process), 0) == 0; }

}  // namespace

void set_reporter(std::uint32_t process) { reporter.store(process); }

bool reports_failure() {
  const std::uint32_t other = reporter.load();
  if (other == 0) return true;
  const auto end = std::chrono::steady_clock::now() + kTimeToReport;
  while (may_run(other) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kLookAgainAfter);
  return false;
}

void SharedWire::abort(const Failure& failure) {
  block_.abort(failure, true);
  spread_abort();
  reporter.store(block_.claims_report() ? 0 : block_.reporter());
}

void SharedWire::throw_aborted(Call call) {
  block_.wait_for_workers();
  spread_abort();
  reporter.store(block_.claims_report() ? 0 : block_.reporter());
  throw FailureError(block_.failure(), std::move(call));
}

std::vector<ProcessorStatus> SharedWire::report() const {
  std::vector<ProcessorStatus> all;
  for (const ProcessorId processor : ids<ProcessorId>(size())) all.push_back(status(processor));
  return all;
}

}  // namespace weft::comm
