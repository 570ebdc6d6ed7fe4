#include "comm/mpi/multi_host_group.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>

#include "base/index.h"
#include "base/str.h"
#include "comm/mpi/wire.h"

namespace weft::comm {

namespace {

constexpr int kLooks = 200;  // before a waiter sleeps between looks, if it has a core for itself
constexpr std::chrono::microseconds kNap{20};
// How long messages that are under way may take to end after a failure, before their memory is left to them.
constexpr std::chrono::milliseconds kFarewell{200};

}  // namespace

std::uint64_t hash_of(const std::vector<ProcessorId>& members) {
  std::uint64_t hash = 14695981039346656037u;
  for (const ProcessorId member : members) hash = (hash ^ (member.index() + 1)) * 1099511628211u;
  return hash;
}

MultiHostGroup::MultiHostGroup(MpiWire& wire, Ring ring, int rank, HostMap hosts)
    : SharedGroup(wire, std::move(ring), rank),
      mpi_(wire),
      hosts_(std::move(hosts)),
      schedule_(hosts_),
      list_(hash_of(ring_.members)),
      slots_(HostSchedule::kInHand) {
  const std::size_t size = ring_.members.size();
  for (Slot& slot : slots_) {
    slot.staging.resize(HostSchedule::kStaging);
    slot.actions.reserve(3 * size + 8);
    slot.requests.reserve(2 * size + 2);
    slot.peers.reserve(2 * size + 2);
  }
  mpi_.enter(*this);
}

MultiHostGroup::~MultiHostGroup() {
  const auto lock = mpi_.lock();
  mpi_.leave(*this);
  if (!give_up_messages()) mpi_.keep_memory(std::move(slots_));
}

// True once no message touches memory any more.
bool MultiHostGroup::give_up_messages() {
  const Clock::time_point end = Clock::now() + kFarewell;
  for (Slot& slot : slots_)
    while (!slot.requests.empty() && !settled(slot))
      if (Clock::now() > end) return false;
  return true;
}

void MultiHostGroup::complete(Request& request) {
  if (request.bytes() > kInlineBytes)
    request.tag = mpi_.take_tags(schedule_.tags(request.what, request.dtype, request.count));
}

// To one member on every other host; members of one host tell different ones.
void MultiHostGroup::announce(std::uint64_t number) {
  const auto lock = mpi_.lock();
  const std::size_t rank = at(rank_);
  ControlMessage message;
  message.rank = rank_;
  message.list = list_;
  message.sequence = ring_.sequence;
  message.number = number;
  message.request = request(number);
  const std::string_view label = labels_[number % kRounds];
  std::copy_n(label.begin(), std::min(label.size(), message.label.size() - 1), message.label.begin());
  if (message.request.bytes() <= kInlineBytes) {
    message.length = static_cast<std::uint32_t>(message.request.bytes());
    std::memcpy(message.text.data(), ring_.inline_data_of(number, rank).bytes.data(), message.length);
  }
  for (int host = 0; host < hosts_.hosts(); ++host)
    if (host != hosts_.here) mpi_.messages().send(message, ring_.members[at(hosts_.handler(host, rank))]);
}

void MultiHostGroup::deliver(const ControlMessage& message) {
  const std::size_t rank = at(message.rank);
  RingEntry& entry = ring_.entry(message.number, rank);
  entry.request = message.request;
  if (message.length > 0)
    std::memcpy(ring_.inline_data_of(message.number, rank).bytes.data(), message.text.data(), message.length);
  block().message(ring_.members[rank], message.request.what, ring_.list, message.request.bytes(), message.label.data());
  entry.number.store(message.number, std::memory_order_release);
  arrive(message.number);
}

void MultiHostGroup::advance() {
  if (finished_ == started_) return;
  const std::uint64_t number = finished_ + 1;
  Round& round = ring_.round(number);
  if (phase_ == Phase::kMembers) {
    if (round.arrived.load() != ring_.all_arrived(number)) return;
    begin(number);
  }
  if (phase_ == Phase::kWork) {
    for (Slot& slot : slots_) {
      if (!slot.busy && begun_ < mine_) {
        schedule_.actions(joint_, begun_++, slot.staging.data(), slot.actions);
        slot.next = 0;
        slot.busy = true;
      }
      if (!slot.busy || !work_on(number, slot)) continue;
      slot.busy = false;
      ++ended_;
      looks_ = 0;
      if (round.done.fetch_add(kStep) + kStep == all_done_[number % kRounds] && round.sleepers.load() > 0)
        wake_all(round.done, block().reach());
    }
    if (ended_ == mine_) phase_ = Phase::kDrain;
  }
  if (phase_ != Phase::kDrain || round.done.load() != all_done_[number % kRounds]) return;
  phase_ = Phase::kMembers;
  looks_ = 0;
  finished(number);
}

void MultiHostGroup::begin(std::uint64_t number) {
  read_entries(number);
  check_agreement(number);
  looks_ = 0;
  phase_ = Phase::kDrain;
  if (is_small()) return run_small(number);
  begun_ = ended_ = 0;
  mine_ = schedule_.my_items(joint_);
  all_done_[number % kRounds] += static_cast<std::uint32_t>(schedule_.items_here(joint_)) * kStep;
  phase_ = Phase::kWork;
}

bool MultiHostGroup::settled(Slot& slot) {
  int done = 1;
  if (!slot.requests.empty())
    check_mpi(MPI_Testall(static_cast<int>(slot.requests.size()), slot.requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
  if (done == 0) return false;
  slot.requests.clear();
  slot.peers.clear();
  return true;
}

// True when the item is done.
bool MultiHostGroup::work_on(std::uint64_t number, Slot& slot) {
  for (; slot.next < slot.actions.size(); ++slot.next) {
    const Action& action = slot.actions[slot.next];
    if (action.kind == Action::Kind::kSend || action.kind == Action::Kind::kReceive) {
      post_message(number, slot, action);
      continue;
    }
    if (!settled(slot)) return false;
    looks_ = 0;
    if (!block().begin_work(processor())) return false;
    schedule_.work(joint_, action, slot.staging.data(), pointers_);
    block().end_work(processor());
  }
  return settled(slot);
}

void MultiHostGroup::post_message(std::uint64_t number, Slot& slot, const Action& action) {
  const std::size_t peer = at(action.peer);
  const bool sends = action.kind == Action::Kind::kSend;
  const Request& receiver = sends ? ring_.entry(number, peer).request : request(number);
  const int tag = static_cast<int>(receiver.tag + action.tag), bytes = static_cast<int>(action.bytes);
  const ProcessorId processor = ring_.members[peer];
  MPI_Request& request = slot.requests.emplace_back(MPI_REQUEST_NULL);
  slot.peers.push_back(processor);
  if (sends)
    check_mpi(MPI_Isend(action.data, bytes, MPI_BYTE, processor.number(), tag, mpi_.ranks(), &request), "MPI_Isend");
  else check_mpi(MPI_Irecv(action.data, bytes, MPI_BYTE, processor.number(), tag, mpi_.ranks(), &request), "MPI_Irecv");
}

void MultiHostGroup::finish(std::uint64_t number, Timer& timer) {
  while (finished_ < number) {
    mpi_.progress();
    if (finished_ >= number) return;
    if (block().aborted()) wire_.throw_aborted(my_call(finished_ + 1));
    if (wire_.spins() && ++looks_ < kLooks) continue;
    if (timer.begin == Clock::time_point{}) {
      timer.begin = Clock::now();
      say_waiting(finished_ + 1);
    }
    if (Clock::now() - timer.begin > timer.limit) give_up(finished_ + 1, timer);
    rest(finished_ + 1);
  }
}

// A short sleep, ended by what happens on this host; messages have to be looked for.
void MultiHostGroup::rest(std::uint64_t number) {
  Round& round = ring_.round(number);
  if (phase_ == Phase::kWork) return std::this_thread::sleep_for(kNap);
  const bool drains = phase_ == Phase::kDrain;
  const std::atomic<std::uint32_t>& word = drains ? round.done : round.arrived;
  const std::uint32_t value = drains ? all_done_[number % kRounds] : ring_.all_arrived(number);
  round.sleepers.fetch_add(1);
  const std::uint32_t seen = word.load();
  if (seen != value && (seen & kAborted) == 0) sleep_while(word, seen, mpi_.patience(), block().reach());
  round.sleepers.fetch_sub(1);
}

bool MultiHostGroup::is_excused(std::uint64_t number, std::size_t rank) const {
  if (hosts_.is_here(static_cast<int>(rank))) return false;
  const std::size_t reader = at(hosts_.handler(hosts_.here, rank));
  return ring_.entry(number, reader).number.load(std::memory_order_acquire) < number;
}

std::vector<ProcessorId> MultiHostGroup::owing() const {
  std::vector<ProcessorId> all;
  for (const Slot& slot : slots_)
    for (const ProcessorId peer : slot.peers)
      if (std::find(all.begin(), all.end(), peer) == all.end()) all.push_back(peer);
  // My own messages are done: someone here does not move on, or waits for messages itself.
  if (all.empty())
    for (const int rank : hosts_.local()) {
      const ProcessorId member = ring_.members[at(rank)];
      if (rank != rank_ && block().board().read(member).stage != Board::Stage::kWaiting) all.push_back(member);
    }
  if (all.empty())
    std::copy_if(ring_.members.begin(), ring_.members.end(), std::back_inserter(all),
                 [&](ProcessorId member) { return !block().is_local(member); });
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace weft::comm
