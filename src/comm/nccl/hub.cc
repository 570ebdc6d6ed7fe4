#include "comm/nccl/hub.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include <poll.h>

#include "base/bytes.h"
#include "base/index.h"
#include "base/str.h"
#include "comm/failure.h"

namespace weft::comm {

namespace {

constexpr int kLookMilliseconds = 20;
constexpr std::chrono::seconds kLastWords{2};  // that ranks have after the end of the hub was asked for

struct Caller {
  FrameStream stream;
  int rank = -1;  // once it has said so
  std::int64_t process = 0;
  bool said_bye = false;
  std::optional<std::string> text;  // of the present exchange
  ProcessorStatus last = {};
};

std::string refusal(const Error& error) {
  const ErrorText& text = error.text();
  ByteWriter frame;
  frame.number(FrameKind::kRefuse);
  frame.number(static_cast<std::uint8_t>(dynamic_cast<const UserError*>(&error) != nullptr));
  for (const std::string& part : {std::string(text.code.text), text.what, std::string(text.where.text), text.fix})
    frame.text(part);
  return frame.bytes();
}

std::string ranks_text(const std::vector<int>& ranks) {
  return str(ranks.size() == 1 ? "rank " : "ranks ", join(ranks, " "));
}

}  // namespace

struct Hub::State {
  Socket listening;
  const int size;
  const std::uint64_t token;
  const std::chrono::nanoseconds patience;
  const SteadyTime begin = std::chrono::steady_clock::now();
  std::atomic<bool> ends = false;
  std::vector<std::unique_ptr<Caller>> callers;
  std::optional<std::string> refused, aborted;  // frames that everyone gets, also who comes later
  bool all_came = false;

  State(Socket socket, int size, std::uint64_t token, std::chrono::nanoseconds patience)
      : listening(std::move(socket)), size(size), token(token), patience(patience) {}

  void to_all(const std::string& frame) {
    for (const auto& caller : callers)
      if (caller->rank >= 0) caller->stream.put(frame);
  }

  void refuse(const Error& error) {
    if (refused) return;
    refused = refusal(error);
    to_all(*refused);
  }

  void abort(int reporter, const std::string& failure) {
    if (aborted) return;
    ByteWriter frame;
    frame.number(FrameKind::kAborted);
    frame.number(reporter);
    frame.text(failure);
    aborted = frame.bytes();
    to_all(*aborted);
  }

  bool has(int rank) const {
    return std::ranges::any_of(callers, [&](const auto& caller) { return caller->rank == rank; });
  }

  void hello(Caller& caller, ByteReader& frame) {
    const auto said = frame.number<std::uint64_t>();
    const int rank = frame.number<int>(), of = frame.number<int>();
    caller.process = frame.number<std::int64_t>();
    if (said != token) return caller.stream.close();  // of another job
    ByteWriter welcome;
    welcome.number(FrameKind::kWelcome);
    caller.stream.put(welcome.bytes());
    const bool is_second = rank >= 0 && rank < size && has(rank);
    caller.rank = rank;
    if (refused) caller.stream.put(*refused);
    if (aborted) caller.stream.put(*aborted);
    if (of != size)
      return refuse(UserError(
          {.code = "nccl.sizes-differ",
           .what = str("rank ", rank, " was started as one of ", of, " processes, but rank 0 as one of ", size),
           .where = "making the nccl wire",
           .fix = "give all processes the same WEFT_NCCL_SIZE and the same mesh"}));
    if (is_second)
      return refuse(UserError({.code = "nccl.rank-twice",
                               .what = str("two processes say that they are rank ", rank, " of ", size),
                               .where = "making the nccl wire",
                               .fix = "give every process another WEFT_NCCL_RANK, from 0 on"}));
  }

  void exchange(Caller& caller, std::string text) {
    if (refused) return;
    caller.text = std::move(text);
    std::vector<std::string> texts(at(size));
    int have = 0;
    for (const auto& each : callers)
      if (each->rank >= 0 && each->rank < size && each->text) {
        texts[at(each->rank)] = *each->text;
        ++have;
      }
    if (have < size) return;
    ByteWriter frame;
    frame.number(FrameKind::kExchanged);
    for (const std::string& each : texts) frame.text(each);
    for (const auto& each : callers) each->text.reset();
    all_came = true;
    listening.close();  // who comes now means the next wire of this address
    to_all(frame.bytes());
  }

  void pass_on(const Caller& caller, ByteReader& frame) {
    std::vector<int> ranks(frame.number<std::uint32_t>());
    for (int& rank : ranks) rank = frame.number<int>();
    ByteWriter passed;
    passed.number(FrameKind::kDeliver);
    passed.number(caller.rank);
    passed.text(frame.text());
    for (const auto& each : callers)
      if (each->rank >= 0 && std::ranges::count(ranks, each->rank) > 0) each->stream.put(passed.bytes());
  }

  void read(Caller& caller, const std::string& text) {
    ByteReader frame(text);
    const auto kind = frame.number<FrameKind>();
    if (kind != FrameKind::kHello && caller.rank < 0) return caller.stream.close();  // not one of ours
    switch (kind) {
      case FrameKind::kHello: return hello(caller, frame);
      case FrameKind::kExchange: return exchange(caller, frame.text());
      case FrameKind::kSend: return pass_on(caller, frame);
      case FrameKind::kAbort: return abort(caller.rank, frame.text());
      case FrameKind::kStatus: caller.last = failure_from_bytes(frame.text()).last.at(0); return;
      case FrameKind::kBye: caller.said_bye = true; return;
      default: return caller.stream.close();
    }
  }

  // A rank that ends without a word has failed.
  void left(const Caller& caller) {
    if (caller.rank < 0 || caller.said_bye || refused) return;
    ProcessorStatus last = caller.last;
    last.processor = ProcessorId(caller.rank);
    abort(caller.rank == 0 ? 1 : 0, to_bytes({.kind = Failure::Kind::kProcessEnded,
                                              .processor = ProcessorId(caller.rank),
                                              .process = caller.process,
                                              .last = {last}},
                                             kFailureFrameBytes));
  }

  void check_patience() {
    if (all_came || std::chrono::steady_clock::now() - begin < patience) return;
    std::vector<int> missing;
    for (int rank = 0; rank < size; ++rank)
      if (!has(rank)) missing.push_back(rank);
    if (missing.empty()) return;
    refuse(
        RunError({.code = "nccl.ranks-missing",
                  .what = str(ranks_text(missing), " of ", size, " did not come within ",
                              std::chrono::duration<double>(patience).count(), " s"),
                  .where = "making the nccl wire",
                  .fix = "see the output of these processes, start one process per rank, or give them more time with "
                         "WEFT_NCCL_TIMEOUT (seconds)"}));
  }

  void look() {
    std::vector<pollfd> waiting = {{.fd = listening.descriptor(), .events = POLLIN, .revents = 0}};
    for (const auto& caller : callers)
      waiting.push_back({.fd = caller->stream.descriptor(),
                         .events = static_cast<short>(caller->stream.has_unsent() ? POLLIN | POLLOUT : POLLIN),
                         .revents = 0});
    poll(waiting.data(), waiting.size(), kLookMilliseconds);
    while (listening.is_open()) {
      Socket caller = listening.accepted();
      if (!caller.is_open()) break;
      callers.push_back(std::make_unique<Caller>());
      callers.back()->stream = FrameStream(std::move(caller));
    }
    for (std::size_t i = 0; i < callers.size(); ++i) {
      Caller& caller = *callers[i];
      const bool is_open = caller.stream.receive();
      while (const std::optional<std::string> frame = caller.stream.take()) read(caller, *frame);
      if (!is_open) {
        caller.stream.close();
        left(caller);
      }
    }
    for (const auto& caller : callers) caller->stream.send();
    std::erase_if(callers, [](const auto& caller) { return !caller->stream.is_open(); });
  }

  void run() {
    std::optional<SteadyTime> last;
    while (true) {
      try {
        look();
        check_patience();
      } catch (const Error&) {
        // A frame that is not of this program: the sender's connection stays, its message is lost.
      }
      if (!ends) continue;
      if (!last) {
        ByteWriter bye;
        bye.number(FrameKind::kBye);
        to_all(bye.bytes());
        last = std::chrono::steady_clock::now() + kLastWords;
      }
      if (callers.empty() || std::chrono::steady_clock::now() > *last) return;
    }
  }
};

Hub::Hub(Socket listening, int size, std::uint64_t token, std::chrono::nanoseconds patience)
    : port_(listening.port()),
      state_(std::make_unique<State>(std::move(listening), size, token, patience)),
      thread_([state = state_.get()] { state->run(); }) {}

Hub::~Hub() {
  state_->ends = true;
  thread_.join();
}

}  // namespace weft::comm
