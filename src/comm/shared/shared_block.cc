#include "comm/shared/shared_block.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <unistd.h>

#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::size_t kReservePerProcessor = 32 << 20, kReserveAtLeast = 256 << 20;
// How long an abort waits for a process that still works on shared buffers. The process may have been stopped. Its memory
// stays mapped, so going on is safe.
constexpr std::chrono::seconds kPatience{2};

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct SharedBlock::List {
  std::uint64_t next, first_ring, next_sequence;
  std::uint32_t number, size;
  ProcessorId* members() { return reinterpret_cast<ProcessorId*>(this + 1); }
};

struct SharedBlock::RingHead {
  std::uint64_t next, sequence;
  std::uint32_t size, left;  // left: members that have come and gone
  bool open;
  std::uint8_t* joined() { return reinterpret_cast<std::uint8_t*>(this + 1); }  // by rank
  std::byte* ring() { return reinterpret_cast<std::byte*>(this) + rounded(sizeof *this + size); }
};

class SharedBlock::Lock {
 public:
  explicit Lock(Head& head) : mutex_(head.mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

std::size_t SharedBlock::reserve(int processors) {
  return kReserveAtLeast + kReservePerProcessor * static_cast<std::size_t>(std::max(processors, 0));
}

void SharedBlock::prepare(void* block) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&static_cast<Head*>(block)->mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

// The block: head, flags, board, then lists and rings as they come.
SharedBlock::SharedBlock(std::shared_ptr<void> block, int processors, std::vector<ProcessorId> local, Reach reach)
    : block_(std::move(block)),
      processors_(processors),
      local_(std::move(local)),
      is_local_(static_cast<std::size_t>(processors)),
      reach_(reach),
      board_(at<std::byte>(rounded(sizeof(Head)) + static_cast<std::size_t>(processors) * sizeof(Flag)), processors) {
  for (const ProcessorId processor : local_) is_local_[processor] = true;
  const Lock lock(head());
  const std::size_t count = static_cast<std::size_t>(processors);
  if (head().used == 0) head().used = rounded(sizeof(Head)) + count * sizeof(Flag) + Board::bytes(processors);
}

SharedBlock::Flag& SharedBlock::flag(ProcessorId processor) const {
  return at<Flag>(rounded(sizeof(Head)))[processor.index()];
}

std::uint64_t SharedBlock::give(std::size_t bytes) {
  const std::uint64_t place = head().used;
  if (place + rounded(bytes) > reserve(processors_))
    throw InternalError(str("no room for another group beside ", place, " bytes of groups"));
  head().used += rounded(bytes);
  return place;
}

SharedBlock::List& SharedBlock::list_of_members(const std::vector<ProcessorId>& members) {
  std::uint64_t* link = &head().first_list;
  for (; *link != 0; link = &at<List>(*link)->next) {
    List& list = *at<List>(*link);
    if (std::equal(members.begin(), members.end(), list.members(), list.members() + list.size)) return list;
  }
  const std::uint64_t place = give(sizeof(List) + members.size() * sizeof(ProcessorId));
  List& list = *at<List>(place);
  list.number = head().lists++;
  list.size = static_cast<std::uint32_t>(members.size());
  std::copy(members.begin(), members.end(), list.members());
  *link = place;
  return list;
}

// The oldest open ring that this member has not joined is its next: rings open in the order of joins, and stay open
// until all members on this host have come and gone.
SharedBlock::RingHead& SharedBlock::open_ring(List& list, std::size_t rank) {
  RingHead *oldest = nullptr, *free = nullptr;
  std::uint64_t* link = &list.first_ring;
  for (; *link != 0; link = &at<RingHead>(*link)->next) {
    RingHead* ring = at<RingHead>(*link);
    if (!ring->open) free = ring;
    else if (ring->joined()[rank] == 0 && (oldest == nullptr || ring->sequence < oldest->sequence)) oldest = ring;
  }
  if (oldest != nullptr) return *oldest;
  const std::size_t extra = Ring::bytes(list.size);
  if (free != nullptr) {
    std::memset(free->joined(), 0, list.size);
    std::memset(static_cast<void*>(free->ring()), 0, extra);
  } else {
    *link = give(rounded(sizeof(RingHead) + list.size) + extra);
    free = at<RingHead>(*link);
    free->size = list.size;
  }
  free->sequence = list.next_sequence++;
  free->left = 0;
  free->open = true;
  return *free;
}

Ring SharedBlock::view(const List& list, RingHead& head) const {
  Ring ring;
  ring.members.assign(const_cast<List&>(list).members(), const_cast<List&>(list).members() + list.size);
  ring.list = list.number;
  ring.sequence = head.sequence;
  ring.place = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&head) - static_cast<std::byte*>(block_.get()));
  ring.rounds = reinterpret_cast<Round*>(head.ring());
  ring.entries = reinterpret_cast<RingEntry*>(ring.rounds + kRounds);
  ring.inline_data = reinterpret_cast<InlineData*>(ring.entries + kRounds * list.size);
  return ring;
}

// Under the lock, so that abort reaches every ring that was given out.
std::optional<Ring> SharedBlock::meet(std::size_t rank, const std::vector<ProcessorId>& members) {
  const Lock lock(head());
  if (aborted()) return std::nullopt;
  List& list = list_of_members(members);
  RingHead& ring = open_ring(list, rank);
  ring.joined()[rank] = 1;
  return view(list, ring);
}

void SharedBlock::leave(const Ring& ring) {
  const Lock lock(head());
  RingHead& left = *at<RingHead>(ring.place);
  std::uint32_t here = 0;
  for (const ProcessorId member : ring.members) here += is_local(member);
  if (++left.left == here) left.open = false;
}

template <class Visit>
void SharedBlock::for_every_ring(Visit visit) const {
  for (std::uint64_t place = head().first_list; place != 0; place = at<List>(place)->next)
    for (std::uint64_t ring = at<List>(place)->first_ring; ring != 0; ring = at<RingHead>(ring)->next)
      if (at<RingHead>(ring)->open) visit(view(*at<List>(place), *at<RingHead>(ring)));
}

void SharedBlock::abort(const Failure& failure, bool reports) {
  const std::string bytes = to_bytes(failure, kFailureBytes);
  {
    const Lock lock(head());
    if (!aborted()) {
      if (reports) claims_report();
      std::memcpy(head().failure, bytes.data(), bytes.size());
      head().failure_bytes = static_cast<std::uint32_t>(bytes.size());
      head().aborted.store(1);
      for_every_ring([&](const Ring& ring) {
        for (std::uint64_t i = 0; i < kRounds; ++i)
          for (std::atomic<std::uint32_t>* word : {&ring.rounds[i].arrived, &ring.rounds[i].done}) {
            word->fetch_or(kAborted);
            wake_all(*word, reach_);
          }
      });
    }
  }
  wait_for_workers();
}

Failure SharedBlock::failure() const {
  const Lock lock(head());
  return failure_from_bytes({head().failure, head().failure_bytes});
}

void SharedBlock::abort_from_other_host(const Failure& failure) {
  head().announced.store(1);
  std::uint32_t nobody = 0;
  if (!aborted()) head().reporter.compare_exchange_strong(nobody, kOtherHost);
  abort(failure, false);
}

bool SharedBlock::claims_report() {
  const std::uint32_t me = static_cast<std::uint32_t>(getpid());
  std::uint32_t nobody = 0;
  return head().reporter.compare_exchange_strong(nobody, me) || nobody == me;
}

// begin_work sets the flag before it reads `aborted`, and `aborted` is set before this reads the flags: so a worker that
// is not seen here has seen the abort. Chunks are short, and a worker stops after the present one.
void SharedBlock::wait_for_workers() const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (const ProcessorId processor : local_)
    while (works(processor) && !gone(processor)) {
      if (reach_ == Reach::kProcesses && std::chrono::steady_clock::now() > end) return;
      std::this_thread::yield();
    }
}

bool SharedBlock::begin_work(ProcessorId processor) {
  flag(processor).working.store(1);
  if (!aborted()) return true;
  end_work(processor);
  return false;
}

// Several processors may write about the same one: the lock makes them one writer.
void SharedBlock::message(ProcessorId processor, Collective what, std::uint32_t list, std::size_t bytes,
                          std::string_view label) {
  const Lock lock(head());
  board_.started(processor, what, list, bytes, label);
}

ProcessorStatus SharedBlock::status(ProcessorId processor) const {
  const Board::Entry entry = board_.read(processor);
  ProcessorStatus status{.processor = processor,
                         .stage = entry.stage,
                         .what = entry.what,
                         .label = entry.label,
                         .bytes = entry.bytes,
                         .calls = entry.calls};
  if (entry.stage == Board::Stage::kNothing) return status;
  const Lock lock(head());
  for (std::uint64_t place = head().first_list; place != 0; place = at<List>(place)->next)
    if (List& list = *at<List>(place); list.number == entry.group)
      status.members.processors.assign(list.members(), list.members() + list.size);
  return status;
}

std::size_t SharedBlock::bytes() const {
  const Lock lock(head());
  return head().used;
}

}  // namespace weft::comm
