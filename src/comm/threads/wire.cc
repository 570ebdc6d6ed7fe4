#include "comm/threads/wire.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include <sched.h>
#include <sys/mman.h>

#include "base/str.h"
#include "comm/threads/futex.h"
#include "comm/threads/group.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::size_t kLargePage = 2 << 20;

// The cores that this process may run on, which containers and launchers make fewer than the machine's.
int cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace

std::string list_of(const std::vector<int>& processors) { return weft::join(processors, " "); }

std::unique_ptr<Wire> make_threads_wire(int processors) { return std::make_unique<ThreadsWire>(processors); }

ThreadsWire::ThreadsWire(int processors)
    : board_(std::max(processors, 0)), working_(board_.size()), spins_(processors <= cores()) {
  if (processors < 1) throw InternalError(str("a wire of ", processors, " processors was asked for"));
}

std::unique_ptr<Group> ThreadsWire::join(int processor, const std::vector<int>& members) {
  const auto me = std::find(members.begin(), members.end(), processor);
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool unlike = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (me == members.end() || !unlike || sorted.front() < 0 || sorted.back() >= size())
    throw InternalError(
        str("processor ", processor, " of ", size(), " cannot join a group of processors ", list_of(members)));
  const std::size_t rank = static_cast<std::size_t>(me - members.begin());
  if (std::shared_ptr<Ring> ring = meet(rank, members))
    return std::make_unique<ThreadsGroup>(*this, std::move(ring), static_cast<int>(rank));
  throw_aborted(str("processor ", processor, " joining the group of processors ", list_of(members)));
}

// Null if the wire is aborted. Under the lock, so that abort reaches every ring that was given out.
std::shared_ptr<Ring> ThreadsWire::meet(std::size_t rank, const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  if (aborted()) return nullptr;
  const auto [entry, is_new] = meetings_.try_emplace(members);
  Meeting& meeting = entry->second;
  if (is_new) {
    meeting.group = static_cast<std::uint32_t>(lists_.size());
    meeting.joins.resize(members.size());
    lists_.push_back(&entry->first);
  }
  const std::size_t index = meeting.joins[rank]++ - meeting.closed;
  if (index == meeting.open.size()) {
    meeting.open.push_back(std::make_shared<Ring>(members, meeting.group));
    std::erase_if(rings_, [](const std::weak_ptr<Ring>& ring) { return ring.expired(); });
    rings_.push_back(meeting.open.back());
  }
  std::shared_ptr<Ring> ring = meeting.open[index];
  const std::size_t joined_by_all = *std::min_element(meeting.joins.begin(), meeting.joins.end());
  for (; meeting.closed < joined_by_all; ++meeting.closed) meeting.open.pop_front();
  return ring;
}

std::vector<int> ThreadsWire::local() const {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Arena ThreadsWire::allocate(int processor, std::size_t bytes) {
  const std::size_t alignment = bytes >= kLargePage ? kLargePage : 64;
  const std::size_t whole = std::max((bytes + 63) / 64 * 64, std::size_t{64});
  void* data = nullptr;
  if (posix_memalign(&data, alignment, whole) != 0)
    throw RunError({.what = str("no memory for the ", bytes, " bytes of processor ", processor),
                    .where = "allocating its arena",
                    .fix = "use a smaller batch or model, more processors on other machines, or recomputation"});
  if (alignment == kLargePage) madvise(data, whole, MADV_HUGEPAGE);  // advice only: it may be refused
  std::memset(data, 0, whole);
  return Arena(std::shared_ptr<void>(data, std::free), bytes);
}

void ThreadsWire::abort(std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted()) {
      reason_ = reason;
      aborted_.store(true);
      for (const std::weak_ptr<Ring>& known : rings_) {
        const std::shared_ptr<Ring> ring = known.lock();
        if (!ring) continue;
        for (Round& round : ring->rounds) {
          for (std::atomic<std::uint32_t>* word : {&round.arrived, &round.done}) {
            word->fetch_or(kAborted);
            wake_all(*word);
          }
        }
      }
    }
  }
  wait_for_workers();
}

// begin_work raises the flag before it looks at aborted_, and aborted_ is set before this looks at the flags: so whoever
// is not seen here has seen the abort. Chunks are short, and a worker stops after the one at hand.
void ThreadsWire::wait_for_workers() const {
  for (const Flag& worker : working_)
    while (worker.flag.load() != 0) std::this_thread::yield();
}

bool ThreadsWire::begin_work(int processor) {
  working_[static_cast<std::size_t>(processor)].flag.store(1);
  if (!aborted()) return true;
  end_work(processor);
  return false;
}

void ThreadsWire::throw_aborted(const std::string& where) {
  wait_for_workers();
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    reason = reason_;
  }
  throw RunError({.what = str("the wire was aborted: ", reason),
                  .where = where,
                  .fix = "mend the first failure and start a new session; this one cannot go on"});
}

std::string ThreadsWire::describe(int processor) const {
  const Board::Entry entry = board_.read(processor);
  if (entry.stage == Board::Stage::kNothing) return str("processor ", processor, ": no collective started yet");
  const char* verb = entry.stage == Board::Stage::kFinished  ? "finished "
                     : entry.stage == Board::Stage::kWaiting ? "waits in "
                                                             : "has started ";
  std::string members;
  {
    const std::lock_guard lock(mutex_);
    members = list_of(*lists_[entry.group]);
  }
  return str("processor ", processor, ": ", verb, entry.what, " '", entry.label, "' of ", entry.bytes,
             " bytes among processors ", members, " (its collective number ", entry.calls, ")");
}

std::string ThreadsWire::report() const {
  std::string text;
  for (int processor = 0; processor < size(); ++processor) text += describe(processor) + "\n";
  return text;
}

std::size_t ThreadsWire::overhead_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = sizeof *this;
  for (const std::weak_ptr<Ring>& known : rings_)
    if (const std::shared_ptr<Ring> ring = known.lock()) bytes += ring->bytes();
  return bytes;
}

}  // namespace weft::comm
