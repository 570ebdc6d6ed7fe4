#include "comm/mpi/wire.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "base/str.h"
#include "comm/mpi/multi_host_group.h"
#include "comm/mpi/process_watcher.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::chrono::microseconds kLook{50};         // between two looks for messages of a waiter that sleeps
constexpr std::chrono::milliseconds kTimeToTell{300};  // the other hosts of an abort

// What a rank tells the others of its host.
struct RankInfo {
  pid_t process = 0;
  int memory = -1, block = -1;  // descriptors
  cpu_set_t cores;
};

// Address space for the memory of each rank of a host: twice what the machine has, half of it for memory that grows in
// place. All must fit.
std::size_t reserve_per_rank(std::size_t ranks) {
  constexpr std::size_t kAll = std::size_t{1} << 46, kUnit = std::size_t{1} << 30;
  const std::size_t machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::max(std::min(2 * machine, kAll / ranks) / kUnit, std::size_t{1}) * kUnit;
}

int cores_of(const std::vector<RankInfo>& cards) {
  cpu_set_t any;
  CPU_ZERO(&any);
  for (const RankInfo& card : cards) CPU_OR(&any, &any, &card.cores);
  return CPU_COUNT(&any);
}

}  // namespace

struct MpiWire::Parts {
  std::unique_ptr<Ranks> ranks;
  std::shared_ptr<Heap> heap;
  std::vector<Mapping> memory;  // by index among the ranks of this host
  Mapping block;
  std::vector<RankInfo> cards;
};

std::unique_ptr<Wire> make_mpi_wire(int processors) { return MpiWire::make(processors); }

std::unique_ptr<MpiWire> MpiWire::make(int processors) {
  Parts parts;
  parts.ranks = std::make_unique<Ranks>(processors);
  const Ranks& ranks = *parts.ranks;
  const std::size_t count = ranks.local.size(), reserve = reserve_per_rank(count);
  RankInfo mine;
  mine.process = getpid();
  CPU_ZERO(&mine.cores);
  sched_getaffinity(0, sizeof mine.cores, &mine.cores);
  const Mapping memory = Mapping::create(reserve, mine.memory);
  if (ranks.me == ranks.local.front()) {
    parts.block = Mapping::create(SharedBlock::reserve(ranks.size), mine.block);
    SharedBlock::prepare(parts.block.data());
  }
  parts.cards.resize(count);
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, parts.cards.data(), sizeof mine, MPI_BYTE, ranks.here),
            "MPI_Allgather");
  for (std::size_t i = 0; i < count; ++i) {
    const RankInfo& card = parts.cards[i];
    parts.memory.push_back(card.process == mine.process ? memory : Mapping::open(card.process, card.memory, reserve));
  }
  if (mine.block < 0)
    parts.block = Mapping::open(parts.cards[0].process, parts.cards[0].block, SharedBlock::reserve(ranks.size));
  check_mpi(MPI_Barrier(ranks.here), "MPI_Barrier");
  MPI_Comm_free(&parts.ranks->here);
  if (ranks.one_host()) MPI_Comm_free(&parts.ranks->all);
  close(mine.memory);
  if (mine.block >= 0) close(mine.block);
  parts.heap = std::make_shared<Heap>(memory);
  return std::unique_ptr<MpiWire>(new MpiWire(std::move(parts)));
}

MpiWire::MpiWire(Parts parts)
    : SharedWire(SharedBlock(parts.block.owner(), parts.ranks->size, parts.ranks->local, Reach::kProcesses),
                 static_cast<int>(parts.cards.size()) <= cores_of(parts.cards)),
      ranks_(std::move(parts.ranks)),
      heap_(std::move(parts.heap)),
      peers_(std::move(parts.memory)) {
  std::vector<Peer> others;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const ProcessorId processor = ranks_->local[i];
    bases_[processor] = reinterpret_cast<std::uintptr_t>(peers_[i].data());
    if (processor != ranks_->me) others.push_back({.processor = processor, .process = parts.cards[i].process});
  }
  if (!ranks_->one_host()) messages_ = std::make_unique<ControlMessages>(ranks_->all);
  watch(block_, others);
}

MpiWire::~MpiWire() {
  unwatch(block_);
  block_.set_gone(ranks_->me);
}

PeerMemory* MpiWire::peer_memory(ProcessorId processor) {
  internal_check(processor == ranks_->me, "the memory of a processor of another process");
  return heap_.get();
}

void MpiWire::check_reach(ProcessorId processor, const void* data, std::size_t bytes) const {
  const Mapping& memory = heap_->mapping();
  const std::uint64_t place = place_of(processor, data);
  if (place >= memory.bytes() || bytes > memory.bytes() - place)
    throw InternalError(str("processor ", processor, " gave a buffer of ", bytes, " bytes outside of its arenas"));
}

ProcessorStatus MpiWire::status(ProcessorId processor) const {
  ProcessorStatus status = block_.status(processor);
  status.host = ranks_->names[processor];
  return status;
}

std::size_t MpiWire::overhead_bytes() const {
  return SharedWire::overhead_bytes() +
         (messages_ ? sizeof(ControlMessages) + spread_.size() * HostSchedule::kInHand * HostSchedule::kStaging : 0);
}

std::unique_ptr<Group> MpiWire::make_group(Ring ring, int rank) {
  std::vector<int> hosts;
  for (const ProcessorId member : ring.members) hosts.push_back(ranks_->host[member].number());
  if (std::all_of(hosts.begin(), hosts.end(), [&](int host) { return host == hosts.front(); }))
    return SharedWire::make_group(std::move(ring), rank);
  return std::make_unique<MultiHostGroup>(*this, std::move(ring), rank, HostMap(hosts, rank));
}

std::chrono::nanoseconds MpiWire::patience() const {
  return messages_ ? std::chrono::nanoseconds(kLook) : SharedWire::patience();
}

void MpiWire::progress() {
  if (!messages_) return;
  const auto held = lock();
  messages_->receive([this](const ControlMessage& message) { read(message); });
  for (MultiHostGroup* group : spread_) group->advance();
}

void MpiWire::read(const ControlMessage& message) {
  if (message.kind == ControlMessage::Kind::kAbort)
    return block_.abort_from_other_host(
        failure_from_bytes({reinterpret_cast<const char*>(message.text.data()), message.length}));
  for (MultiHostGroup* group : spread_)
    if (group->list() == message.list && group->sequence() == message.sequence) return group->deliver(message);
  early_.push_back(message);
}

void MpiWire::enter(MultiHostGroup& group) {
  const auto held = lock();
  spread_.push_back(&group);
  std::erase_if(early_, [&](const ControlMessage& message) {
    if (group.list() != message.list || group.sequence() != message.sequence) return false;
    group.deliver(message);
    return true;
  });
}

void MpiWire::leave(MultiHostGroup& group) {
  const auto held = lock();
  std::erase(spread_, &group);
}

std::uint32_t MpiWire::take_tags(std::uint32_t count) {
  constexpr std::uint32_t kEnd = std::uint32_t{1} << 31;
  if (count > kEnd / 64) throw InternalError(str("a collective in ", count, " messages"));
  if (next_tag_ + count >= kEnd) next_tag_ = ControlMessages::kTag + 1;
  return std::exchange(next_tag_, next_tag_ + count);
}

// One rank of the host of the failure sends it, to the ranks of other hosts that it has met. Their blocks pass it on.
void MpiWire::spread_abort() {
  if (!messages_ || !block_.claims_broadcast()) return;
  const auto held = lock();
  ControlMessage message;
  message.kind = ControlMessage::Kind::kAbort;
  const std::string failure = to_bytes(block_.failure(), message.text.size());
  message.length = static_cast<std::uint32_t>(failure.size());
  std::memcpy(message.text.data(), failure.data(), failure.size());
  for (const ProcessorId processor : ids<ProcessorId>(size()))
    if (messages_->has_met(processor)) messages_->send(message, processor);
  const auto end = std::chrono::steady_clock::now() + kTimeToTell;
  while (!messages_->all_sent() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace weft::comm
