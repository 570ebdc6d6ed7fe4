#include "comm/mpi/wire.h"

#include <algorithm>

#include <sched.h>
#include <unistd.h>

#include "base/str.h"
#include "comm/mpi/watch.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

// What a rank tells the others of its host.
struct Card {
  pid_t process = 0;
  int memory = -1, hub = -1;  // descriptors
  cpu_set_t cores;
};

// Address space for the memory of each rank of a host: no rank can use more than the machine has, and all must fit.
std::size_t reserve_per_rank(std::size_t ranks) {
  constexpr std::size_t kAll = std::size_t{1} << 46, kUnit = std::size_t{1} << 30;
  const std::size_t machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::max(std::min(machine, kAll / ranks) / kUnit, std::size_t{1}) * kUnit;
}

int cores_of(const std::vector<Card>& cards) {
  cpu_set_t any;
  CPU_ZERO(&any);
  for (const Card& card : cards) CPU_OR(&any, &any, &card.cores);
  return CPU_COUNT(&any);
}

}  // namespace

struct MpiWire::Parts {
  std::unique_ptr<Ranks> ranks;
  std::shared_ptr<Heap> heap;
  std::vector<Mapping> memory;  // by index among the ranks of this host
  Mapping hub;
  std::vector<Card> cards;
};

std::unique_ptr<Wire> make_mpi_wire(int processors) { return MpiWire::make(processors); }

std::unique_ptr<MpiWire> MpiWire::make(int processors) {
  Parts parts;
  parts.ranks = std::make_unique<Ranks>(processors);
  const Ranks& ranks = *parts.ranks;
  const std::size_t count = ranks.local.size(), reserve = reserve_per_rank(count);
  Card mine;
  mine.process = getpid();
  CPU_ZERO(&mine.cores);
  sched_getaffinity(0, sizeof mine.cores, &mine.cores);
  const Mapping memory = Mapping::create(reserve, mine.memory);
  if (ranks.me == ranks.local.front()) {
    parts.hub = Mapping::create(Hub::reserve(ranks.size), mine.hub);
    Hub::prepare(parts.hub.data());
  }
  parts.cards.resize(count);
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, parts.cards.data(), sizeof mine, MPI_BYTE, ranks.here),
            "MPI_Allgather");
  for (std::size_t i = 0; i < count; ++i) {
    const Card& card = parts.cards[i];
    parts.memory.push_back(card.process == mine.process ? memory : Mapping::open(card.process, card.memory, reserve));
  }
  if (mine.hub < 0) parts.hub = Mapping::open(parts.cards[0].process, parts.cards[0].hub, Hub::reserve(ranks.size));
  check_mpi(MPI_Barrier(ranks.here), "MPI_Barrier");
  MPI_Comm_free(&parts.ranks->here);
  if (ranks.one_host()) MPI_Comm_free(&parts.ranks->all);
  close(mine.memory);
  if (mine.hub >= 0) close(mine.hub);
  parts.heap = std::make_shared<Heap>(memory);
  return std::unique_ptr<MpiWire>(new MpiWire(std::move(parts)));
}

MpiWire::MpiWire(Parts parts)
    : SharedWire(Hub(parts.hub.owner(), parts.ranks->size, parts.ranks->local, Reach::kProcesses),
                 static_cast<int>(parts.cards.size()) <= cores_of(parts.cards)),
      ranks_(std::move(parts.ranks)),
      heap_(std::move(parts.heap)),
      peers_(std::move(parts.memory)) {
  std::vector<Peer> others;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const int processor = ranks_->local[i];
    bases_[static_cast<std::size_t>(processor)] = reinterpret_cast<std::uintptr_t>(peers_[i].data());
    if (processor != ranks_->me) others.push_back({.processor = processor, .process = parts.cards[i].process});
  }
  watch(hub_, others);
}

MpiWire::~MpiWire() {
  unwatch(hub_);
  hub_.set_gone(ranks_->me);
}

Arena MpiWire::allocate(int processor, std::size_t bytes) {
  if (processor != ranks_->me) throw InternalError(str("rank ", ranks_->me, " asked for memory of ", processor));
  if (std::shared_ptr<void> data = heap_->take(bytes)) return Arena(std::move(data), bytes);
  throw RunError({.what = str("no memory for the ", bytes, " bytes of processor ", processor),
                  .where = "allocating its arena",
                  .fix = "use a smaller batch or model, more processors on other machines, or recomputation"});
}

void MpiWire::check_reach(int processor, const void* data, std::size_t bytes) const {
  const Mapping& memory = heap_->mapping();
  const std::uint64_t place = place_of(processor, data);
  if (place >= memory.bytes() || bytes > memory.bytes() - place)
    throw InternalError(str("processor ", processor, " gave a buffer of ", bytes, " bytes outside of its arenas"));
}

std::string MpiWire::report() const {
  std::string text;
  for (int processor = 0; processor < size(); ++processor)
    text += str(hub_.describe(processor), ", on ", ranks_->names[static_cast<std::size_t>(processor)], "\n");
  return text;
}

}  // namespace weft::comm
