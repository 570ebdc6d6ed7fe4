#include "comm/nccl/wire.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "base/bytes.h"
#include "base/str.h"
#include "comm/nccl/group.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr const char* kMaking = "making the nccl wire";
constexpr std::chrono::milliseconds kLookAgainAfter{1};
constexpr std::chrono::seconds kForAnswers{1};  // of members that are asked how far they are
constexpr std::chrono::seconds kForVerdict{1};  // of the hub, whose failure was the first
constexpr std::chrono::seconds kForAbort{2};    // of NCCL, at the end of a wire

constexpr std::uint64_t kLastWords = 0;  // in place of the number of a question

enum class Letter : std::uint8_t { kId, kQuestion, kAnswer };

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string bytes_of(const RankInfo& info) {
  ByteWriter bytes;
  bytes.text(info.host);
  bytes.text(info.host_id);
  bytes.number(info.process);
  return bytes.bytes();
}

RankInfo rank_info(const std::string& text) {
  ByteReader bytes(text);
  RankInfo info;
  info.host = bytes.text();
  info.host_id = bytes.text();
  info.process = bytes.number<std::int64_t>();
  return info;
}

std::vector<int> ranks_of(const std::vector<ProcessorId>& processors, ProcessorId but) {
  std::vector<int> ranks;
  for (const ProcessorId processor : processors)
    if (processor != but) ranks.push_back(processor.number());
  return ranks;
}

}  // namespace

struct NcclWire::Aborting {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
};

NcclWire::NcclWire(const NcclJob& job, const NcclCalls& nccl, const CudaCalls& cuda)
    : job_(job),
      nccl_(nccl),
      cuda_(cuda),
      ranks_(at(job.size)),
      board_memory_(Board::bytes(job.size) + 64),
      board_(reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(board_memory_.data()) + 63) / 64 * 64),
             job.size),
      aborting_(std::make_shared<Aborting>()),
      control_(std::make_unique<Control>(job)) {
  const std::vector<std::string> texts =
      control_->exchange(bytes_of({.host = host_name(), .host_id = job.host_id, .process = getpid()}));
  for (const ProcessorId processor : ranks_.ids()) ranks_[processor] = rank_info(texts[processor.index()]);
  choose_device();
  check_cuda(cuda_.set_device(device_), "cudaSetDevice");
  check_cuda(cuda_.create_stream(&stream_), "cudaStreamCreateWithFlags");
  control_->listen({.delivered = [this](int from, const std::string& payload) { delivered(from, payload); },
                    .aborted = [this](int reporter, const Failure& failure) { aborted_by_peer(reporter, failure); },
                    .status = [this] { return own_status(); }});
}

NcclWire::~NcclWire() {
  control_->stop();
  of_programs_.clear();
  if (wait_for_abort() && stream_ && drains()) cuda_.destroy_stream(stream_);
}

bool NcclWire::wait_for_abort() const {
  if (!is_aborted()) return true;
  std::unique_lock lock(aborting_->mutex);
  return aborting_->changed.wait_for(lock, kForAbort, [&] { return aborting_->is_over; });
}

bool NcclWire::drains() const {
  cudaEvent_t event = nullptr;
  if (cuda_.create_event(&event) != cudaSuccess || cuda_.record_event(event, stream_) != cudaSuccess) return false;
  const SteadyTime end = std::chrono::steady_clock::now() + kForAbort;
  cudaError_t status = cudaErrorNotReady;
  while (status == cudaErrorNotReady && std::chrono::steady_clock::now() < end) {
    status = cuda_.query_event(event);
    if (status == cudaErrorNotReady) std::this_thread::sleep_for(kLookAgainAfter);
  }
  cuda_.destroy_event(event);
  return status != cudaErrorNotReady;
}

// The ranks of a host take its devices in order; a process that sees one device alone takes that one.
void NcclWire::choose_device() {
  int count = 0;
  check_cuda(cuda_.device_count(&count), "cudaGetDeviceCount");
  const RankInfo& mine = ranks_[me()];
  const auto is_here = [&](const RankInfo& info) { return info.host == mine.host && info.host_id == mine.host_id; };
  int before = 0, here = 0;
  for (const ProcessorId processor : ranks_.ids()) {
    before += processor < me() && is_here(ranks_[processor]);
    here += is_here(ranks_[processor]);
  }
  device_ = count == 1 ? 0 : before;
  std::string text(sizeof(DeviceId), '\0');
  if (device_ < count) check_cuda(cuda_.device_id(device_, &ranks_[me()].device), "cudaGetDeviceProperties");
  std::memcpy(text.data(), ranks_[me()].device.data(), text.size());
  const std::vector<std::string> texts = control_->exchange(str(text, device_ < count ? "+" : "-"));
  if (device_ >= count || std::ranges::any_of(texts, [](const std::string& each) { return each.back() == '-'; }))
    throw UserError({.code = "nccl.too-few-devices",
                     .what = device_ >= count ? str(here, " ranks run on host ", mine.host, ", which has ", count,
                                                    count == 1 ? " CUDA device" : " CUDA devices")
                                              : "another host has more ranks than CUDA devices",
                     .where = kMaking,
                     .fix = "start at most one process per card of a host (mpirun --map-by ppr:8:node), and see "
                            "CUDA_VISIBLE_DEVICES"});
  for (const ProcessorId processor : ranks_.ids())
    std::memcpy(ranks_[processor].device.data(), texts[processor.index()].data(), sizeof(DeviceId));
  for (const ProcessorId a : ranks_.ids())
    for (const ProcessorId b : ranks_.ids())
      if (a < b && ranks_[a].device == ranks_[b].device && ranks_[a].host_id == ranks_[b].host_id)
        throw UserError({.code = "nccl.shared-device",
                         .what = str("ranks ", a, " and ", b, " would share one card, on host ", ranks_[b].host),
                         .where = kMaking,
                         .fix =
                             "start as many processes per host as it has cards, and let CUDA_VISIBLE_DEVICES name all "
                             "of them"});
}

void NcclWire::check_cuda(cudaError_t status, const char* call) const {
  if (status == cudaSuccess) return;
  throw RunError({.code = "nccl.cuda-call-failed",
                  .what = str(call, " failed: ", cuda_.error_text(status)),
                  .where = str("the nccl wire, rank ", job_.rank),
                  .fix = "see `weft doctor` and `nvidia-smi` on this host"});
}

int NcclWire::on_host() const {
  int here = 0;
  for (const ProcessorId processor : ranks_.ids()) here += ranks_[processor].host == ranks_[me()].host;
  return here;
}

std::unique_ptr<Group> NcclWire::join(ProcessorId processor, const std::vector<ProcessorId>& members) {
  const std::size_t rank = rank_in_group(size(), processor, members);
  internal_check(processor == me(), "a group of a processor of another process");
  if (is_aborted())
    throw_aborted({.processor = processor, .step = Call::Step::kJoin, .members = {.processors = members}});
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = joins_[members]++;
  }
  return std::make_unique<NcclGroup>(*this, members, static_cast<int>(rank),
                                     str(weft::join(members, " "), " # ", number));
}

std::shared_ptr<Communicator> NcclWire::communicator(const std::vector<ProcessorId>& members, Deadline deadline) {
  const std::size_t rank = rank_in_group(size(), me(), members);
  std::shared_ptr<Communicator> made;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Communicator>& known = of_programs_[members];
    if (!known)
      known = std::make_shared<Communicator>(nccl_, cuda_, device_, static_cast<int>(members.size()),
                                             static_cast<int>(rank));
    made = known;
  }
  add(made);
  const Call call{.processor = me(), .step = Call::Step::kJoin, .members = {.processors = members}};
  const std::string key = str(kProgram, " ", weft::join(members, " "));
  const SteadyTime begin_time = std::chrono::steady_clock::now();
  while (!begin(*made, members, key) || made->state() == Communicator::State::kBusy) {
    if (is_aborted()) throw_aborted(call);
    if (std::chrono::steady_clock::now() - begin_time > deadline.limit) {
      std::vector<ProcessorId> others = members;
      std::erase(others, me());
      const Failure failure{.kind = Failure::Kind::kTimeout,
                            .processor = me(),
                            .calls = {call},
                            .awaited = {.processors = others},
                            .seconds = std::chrono::duration<double>(deadline.limit).count()};
      abort(failure);
      throw FailureError(failure);
    }
    std::this_thread::sleep_for(kLookAgainAfter);
  }
  check_nccl(*made, call);
  return made;
}

bool NcclWire::begin(Communicator& communicator, const std::vector<ProcessorId>& members, const std::string& key) {
  if (communicator.has_begun()) return true;
  if (communicator.rank() == 0) {
    const ncclUniqueId id = Communicator::make_id(nccl_);
    ByteWriter letter;
    letter.number(Letter::kId);
    letter.text(key);
    letter.text({id.internal, sizeof id.internal});
    control_->send(ranks_of(members, me()), letter.bytes());
    communicator.begin(id);
    return true;
  }
  std::optional<ncclUniqueId> id;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(key);
    if (found == ids_.end()) return false;
    id = found->second;
    ids_.erase(found);
  }
  communicator.begin(*id);
  return true;
}

void NcclWire::enter(const std::string& key, NcclGroup* group) {
  const std::lock_guard lock(mutex_);
  groups_[key] = group;
}

void NcclWire::leave(const std::string& key, NcclGroup* group) {
  std::erase(queue_, group);
  const std::lock_guard lock(mutex_);
  groups_.erase(key);
}

void NcclWire::queue(NcclGroup& group) { queue_.push_back(&group); }

// The map is changed by this thread alone.
void NcclWire::progress() {
  for (const auto& [key, group] : groups_) group->poll();
  while (!queue_.empty() && queue_.front()->launches_next()) queue_.pop_front();
}

void NcclWire::add(const std::shared_ptr<Communicator>& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase_if(communicators_, [](const auto& each) { return each.expired(); });
  communicators_.push_back(communicator);
}

std::uint32_t NcclWire::number_of(const std::vector<ProcessorId>& members) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(lists_.begin(), lists_.end(), members);
  const auto number = static_cast<std::uint32_t>(found - lists_.begin());
  if (number == lists_.size()) lists_.push_back(members);
  return number;
}

// ---- what everyone does

void NcclWire::set_progress(const ProgramProgress* progress) {
  const std::lock_guard lock(mutex_);
  program_ = progress;
}

ProcessorStatus NcclWire::own_status() const {
  const std::lock_guard lock(mutex_);
  const Board::Entry entry = board_.read(me());
  ProcessorStatus status{.processor = me(),
                         .stage = entry.stage,
                         .what = entry.what,
                         .label = entry.label,
                         .bytes = entry.bytes,
                         .calls = entry.calls};
  status.host = ranks_[me()].host;
  if (program_)
    if (const std::optional<ProcessorStatus> of_program = program_->program_progress().status; of_program) {
      const std::string host = status.host;
      status = *of_program;
      status.host = host;
      return status;
    }
  if (entry.stage != Board::Stage::kNothing) status.members.processors = lists_.at(entry.group);
  return status;
}

// The status first: who asks must not take a member for missing that has come meanwhile.
MemberProgress NcclWire::own_progress(const std::string& key) const {
  const ProcessorStatus status = own_status();
  MemberProgress progress;
  const std::lock_guard lock(mutex_);
  if (key == kProgram && program_) progress = program_->program_progress();
  if (const auto found = groups_.find(key); found != groups_.end())
    progress = {.started = found->second->started(), .finished = found->second->finished(), .status = {}};
  progress.status = status;
  return progress;
}

std::vector<MemberProgress> NcclWire::ask(const std::vector<ProcessorId>& members, const std::string& key) const {
  std::uint64_t question = 0;
  const std::vector<int> others = ranks_of(members, me());
  {
    const std::lock_guard lock(mutex_);
    question = next_question_++;
    answers_[question];
  }
  ByteWriter letter;
  letter.number(Letter::kQuestion);
  letter.number(question);
  letter.text(key);
  if (!others.empty()) control_->send(others, letter.bytes());
  std::vector<MemberProgress> all(members.size());
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kForAnswers, [&] { return answers_[question].size() == others.size(); });
  const std::map<int, MemberProgress> answers = std::move(answers_[question]);
  answers_.erase(question);
  lock.unlock();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto found = answers.find(members[i].number());
    if (members[i] == me()) all[i] = own_progress(key);
    else if (found != answers.end()) all[i] = found->second;
  }
  return all;
}

void NcclWire::answer(int from, std::uint64_t question, const std::string& key) const {
  const MemberProgress mine = own_progress(key);
  ByteWriter letter;
  letter.number(Letter::kAnswer);
  letter.number(question);
  letter.number(mine.started);
  letter.number(mine.finished);
  letter.text(to_bytes({.last = {*mine.status}}, kFailureFrameBytes));
  control_->send({from}, letter.bytes());
}

std::vector<ProcessorStatus> NcclWire::report() const {
  const std::vector<ProcessorId> everyone = identity<ProcessorId>(at(size()));
  const std::vector<MemberProgress> all = ask(everyone, "");
  std::vector<ProcessorStatus> statuses;
  const std::lock_guard lock(mutex_);
  for (const ProcessorId processor : everyone)
    statuses.push_back(all[processor.index()].status.value_or(last_known(processor)));
  return statuses;
}

// Of a processor that does not answer any more, from what is known of the failure. Under the lock.
ProcessorStatus NcclWire::last_known(ProcessorId processor) const {
  if (const auto found = last_words_.find(processor); found != last_words_.end()) return found->second;
  ProcessorStatus status{.processor = processor};
  if (!failure_) return status;
  for (const ProcessorStatus& last : failure_->last)
    if (last.processor == processor) return last;
  for (const Call& call : failure_->calls)
    if (call.processor == processor && call.step == Call::Step::kWait)
      status = {.processor = processor,
                .stage = ProcessorStatus::Stage::kWaiting,
                .what = call.what,
                .label = call.label,
                .bytes = call.count * size_of(call.dtype),
                .members = call.members,
                .host = ranks_[processor].host};
  return status;
}

void NcclWire::delivered(int from, const std::string& payload) {
  ByteReader letter(payload);
  switch (letter.number<Letter>()) {
    case Letter::kId: {
      const std::string key = letter.text(), id = letter.text();
      const std::lock_guard lock(mutex_);
      std::memcpy(ids_[key].internal, id.data(), std::min(id.size(), sizeof(ncclUniqueId)));
      return;
    }
    case Letter::kQuestion: {
      const auto question = letter.number<std::uint64_t>();
      return answer(from, question, letter.text());
    }
    case Letter::kAnswer: {
      const auto question = letter.number<std::uint64_t>();
      MemberProgress progress;
      progress.started = letter.number<std::uint64_t>();
      progress.finished = letter.number<std::uint64_t>();
      progress.status = failure_from_bytes(letter.text()).last.at(0);
      const std::lock_guard lock(mutex_);
      if (question == kLastWords) last_words_[ProcessorId(from)] = *progress.status;
      if (const auto found = answers_.find(question); found != answers_.end()) found->second[from] = progress;
      changed_.notify_all();
    }
  }
}

// ---- failures

bool NcclWire::note_failure(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  failure_ = failure;
  is_aborted_.store(true);
  return true;
}

void NcclWire::abort(const Failure& failure) {
  if (!note_failure(failure)) return;
  set_reporter(0);
  control_->abort(failure);
  start_abort();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kForVerdict, [&] { return has_verdict_; });
}

void NcclWire::aborted_by_peer(int reporter, const Failure& failure) {
  const bool is_first = note_failure(failure);
  if (reporter != job_.rank) {
    const RankInfo& other = ranks_[ProcessorId(reporter)];
    set_reporter(other.host == ranks_[me()].host ? static_cast<std::uint32_t>(other.process) : kOtherHost);
    answer(reporter, kLastWords, "");  // it may ask when this process is gone
  }
  if (is_first) start_abort();
  const std::lock_guard lock(mutex_);
  has_verdict_ = true;
  changed_.notify_all();
}

void NcclWire::throw_aborted(Call call) {
  std::unique_lock lock(mutex_);
  const Failure failure = *failure_;
  lock.unlock();
  throw FailureError(failure, std::move(call));
}

void NcclWire::check_nccl(Communicator& communicator, const Call& call) {
  if (communicator.state() != Communicator::State::kFailed) return;
  if (is_aborted()) throw_aborted(call);
  const Failure failure{.kind = Failure::Kind::kInstruction,
                        .processor = me(),
                        .instruction = std::string(name_of(call.what)),
                        .tensor = call.label,
                        .cause = str("NCCL reports an error: ", communicator.failure()),
                        .fix = "see the first error of the other ranks; NCCL_DEBUG=WARN says more; make a new Session"};
  abort(failure);
  throw FailureError(failure);
}

void NcclWire::start_abort() {
  std::vector<std::shared_ptr<Communicator>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Communicator>& each : communicators_)
      if (std::shared_ptr<Communicator> alive = each.lock()) all.push_back(std::move(alive));
  }
  std::thread([all = std::move(all), state = aborting_]() mutable {
    std::vector<std::thread> each;
    for (const std::shared_ptr<Communicator>& communicator : all)
      each.emplace_back([communicator] { communicator->abort(); });
    for (std::thread& thread : each) thread.join();
    all.clear();
    const std::lock_guard lock(state->mutex);
    state->is_over = true;
    state->changed.notify_all();
  }).detach();
}

std::size_t NcclWire::overhead_bytes() const { return sizeof *this + board_memory_.size(); }

std::unique_ptr<Wire> make_nccl_wire(int processors) {
  const NcclJob job = nccl_job();
  if (job.size != processors)
    throw UserError({.code = "nccl.mesh-size-mismatch",
                     .what = str("the mesh has ", processors, processors == 1 ? " processor" : " processors",
                                 ", but this job has ", job.size, job.size == 1 ? " process" : " processes"),
                     .where = "Session, wire::nccl()",
                     .fix = str("run `mpirun -n ", processors, " …` or set WEFT_NCCL_SIZE=", processors,
                                ", or choose a mesh of ", job.size)});
  const NcclCalls& nccl = open_nccl();
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);  // nothing is left to connect while a step is captured
  setenv("NCCL_GRAPH_REGISTER", "0", 0);   // the arena is mapped memory, which NCCL cannot share between processes
  return std::make_unique<NcclWire>(job, nccl, cuda_calls());
}

}  // namespace weft::comm
