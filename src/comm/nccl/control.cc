#include "comm/nccl/control.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr int kStatusMilliseconds = 1000;     // between two looks at what this rank does
constexpr std::chrono::seconds kAfterHub{5};  // the hub reports first who is missing
constexpr std::chrono::seconds kLastWords{1};

std::string frame_of(FrameKind kind, const std::string& text) {
  ByteWriter frame;
  frame.number(kind);
  frame.text(text);
  return frame.bytes();
}

std::exception_ptr refused_by(ByteReader& frame) {
  const bool is_of_user = frame.number<std::uint8_t>() != 0;
  const std::string code = frame.text(), what = frame.text(), where = frame.text(), fix = frame.text();
  const ErrorText text{.code = code, .what = what, .where = where, .fix = fix};
  return is_of_user ? std::make_exception_ptr(UserError(text)) : std::make_exception_ptr(RunError(text));
}

}  // namespace

Control::Control(const NcclJob& job) : job_(job), meeting_(meet(job)), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  thread_ = std::thread([this] { run(); });
}

Control::~Control() {
  stop();
  close(wake_);
}

void Control::stop() {
  if (!thread_.joinable()) return;
  put(frame_of(FrameKind::kBye, ""));
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
}

void Control::put(const std::string& frame) {
  {
    const std::lock_guard lock(mutex_);
    meeting_.to_hub.put(frame);
  }
  eventfd_write(wake_, 1);
}

void Control::listen(Listener listener) {
  std::unique_lock lock(mutex_);
  listener_ = std::move(listener);
  for (const std::string& frame : std::exchange(unheard_, {})) hear(lock, frame);
}

std::vector<std::string> Control::exchange(const std::string& text) {
  put(frame_of(FrameKind::kExchange, text));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, job_.patience + kAfterHub, [&] { return exchanged_ || refused_ || is_lost_; });
  if (refused_) std::rethrow_exception(refused_);
  if (!exchanged_)
    throw RunError({.code = "nccl.no-answer",
                    .what = str("rank ", job_.rank, " of ", job_.size,
                                is_lost_ ? " lost its connection to rank 0" : " waited in vain for the other ranks"),
                    .where = "making the nccl wire",
                    .fix = "see the output of the other processes: the first that failed says why"});
  std::vector<std::string> texts = std::move(*exchanged_);
  exchanged_.reset();
  return texts;
}

void Control::send(const std::vector<int>& ranks, const std::string& payload) {
  ByteWriter frame;
  frame.number(FrameKind::kSend);
  frame.number(static_cast<std::uint32_t>(ranks.size()));
  for (const int rank : ranks) frame.number(rank);
  frame.text(payload);
  put(frame.bytes());
}

void Control::abort(const Failure& failure) { put(frame_of(FrameKind::kAbort, to_bytes(failure, kFailureFrameBytes))); }

void Control::run() {
  SteadyTime next_status = std::chrono::steady_clock::now();
  std::optional<SteadyTime> last;
  while (true) {
    std::vector<std::string> frames;
    bool has_unsent = false, is_open = true;
    {
      const std::lock_guard lock(mutex_);
      is_open = meeting_.to_hub.is_open() && meeting_.to_hub.receive();
      while (std::optional<std::string> frame = meeting_.to_hub.take()) frames.push_back(std::move(*frame));
      if (is_open) meeting_.to_hub.send();
      has_unsent = meeting_.to_hub.has_unsent();
      if (ends_ && !last) last = std::chrono::steady_clock::now() + kLastWords;
    }
    for (const std::string& frame : frames) read(frame);
    if (!is_open) return lost_hub();
    if (last && (!has_unsent || std::chrono::steady_clock::now() > *last)) return;
    if (std::chrono::steady_clock::now() > next_status) {
      tell_status();
      next_status = std::chrono::steady_clock::now() + std::chrono::milliseconds(kStatusMilliseconds);
    }
    pollfd waiting[] = {{.fd = meeting_.to_hub.descriptor(),
                         .events = static_cast<short>(has_unsent ? POLLIN | POLLOUT : POLLIN),
                         .revents = 0},
                        {.fd = wake_, .events = POLLIN, .revents = 0}};
    poll(waiting, 2, last ? 10 : kStatusMilliseconds);
    eventfd_t ignored = 0;
    eventfd_read(wake_, &ignored);
  }
}

void Control::read(const std::string& text) {
  ByteReader frame(text);
  std::unique_lock lock(mutex_);
  switch (frame.number<FrameKind>()) {
    case FrameKind::kRefuse: refused_ = refused_by(frame); break;
    case FrameKind::kBye: hub_said_bye_ = true; break;
    case FrameKind::kExchanged:
      exchanged_.emplace();
      for (int rank = 0; rank < job_.size; ++rank) exchanged_->push_back(frame.text());
      break;
    default:
      if (listener_.delivered) hear(lock, text);
      else unheard_.push_back(text);
  }
  changed_.notify_all();
}

// The listener may call this object.
void Control::hear(std::unique_lock<std::mutex>& lock, const std::string& text) {
  const Listener listener = listener_;
  ByteReader frame(text);
  const auto kind = frame.number<FrameKind>();
  const int rank = frame.number<int>();
  const std::string payload = frame.text();
  if (kind == FrameKind::kAborted) has_aborted_ = true;
  lock.unlock();
  if (kind == FrameKind::kDeliver) listener.delivered(rank, payload);
  if (kind == FrameKind::kAborted) listener.aborted(rank, failure_from_bytes(payload));
  lock.lock();
}

// Without a word of the hub: its process has ended. Rank 1 reports that.
void Control::lost_hub() {
  std::unique_lock lock(mutex_);
  is_lost_ = true;
  changed_.notify_all();
  if (ends_ || has_aborted_ || hub_said_bye_ || refused_ || !listener_.aborted) return;
  const Listener listener = listener_;
  lock.unlock();
  listener.aborted(job_.size > 1 ? 1 : 0,
                   {.kind = Failure::Kind::kProcessEnded, .processor = ProcessorId(0), .process = 0});
}

void Control::tell_status() {
  std::function<ProcessorStatus()> ask;
  {
    const std::lock_guard lock(mutex_);
    ask = listener_.status;
  }
  if (!ask) return;
  const ProcessorStatus status = ask();
  if (status.calls == told_calls_) return;
  told_calls_ = status.calls;
  const std::string frame = frame_of(FrameKind::kStatus, to_bytes({.last = {status}}, kFailureFrameBytes));
  const std::lock_guard lock(mutex_);
  meeting_.to_hub.put(frame);
  meeting_.to_hub.send();
}

}  // namespace weft::comm
