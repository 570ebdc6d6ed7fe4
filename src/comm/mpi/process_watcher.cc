#include "comm/mpi/process_watcher.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::comm {

namespace {

// Less than the second that mpirun waits between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kTimeAfterTerm{800};
// How often the watcher looks for a process if the system cannot wait for the end of a process that is no child.
constexpr std::chrono::milliseconds kPollEvery{50};

struct Watched {
  SharedBlock* block;
  Peer peer;
  int descriptor;  // of the process, or -1
};

bool has_ended(const Watched& watched) {
  if (watched.descriptor < 0) return kill(watched.peer.process, 0) != 0;
  pollfd end{.fd = watched.descriptor, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) > 0;
}

std::atomic<int> wake_event{-1};
std::atomic<bool> term_received{false};

void wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_event.load(), &one, sizeof one);
}

void on_term(int) {
  term_received.store(true);
  wake();
}

class ProcessWatcher {
 public:
  static ProcessWatcher& get() {
    static ProcessWatcher* const watcher =
        new ProcessWatcher;  // never destroyed: its thread runs until the process ends
    return *watcher;
  }

  void add(SharedBlock& block, const std::vector<Peer>& peers) {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers)
      watched_.push_back({&block, peer, static_cast<int>(syscall(SYS_pidfd_open, peer.process, 0))});
    blocks_.push_back(&block);
    wake();
  }

  void remove(SharedBlock& block) {
    const std::lock_guard lock(mutex_);
    std::erase(blocks_, &block);
    for (const Watched& watched : watched_)
      if (watched.block == &block && watched.descriptor >= 0) close(watched.descriptor);
    std::erase_if(watched_, [&](const Watched& watched) { return watched.block == &block; });
    wake();
  }

 private:
  ProcessWatcher() {
    wake_event.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    struct sigaction now = {};
    if (sigaction(SIGTERM, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      now.sa_handler = on_term;
      sigaction(SIGTERM, &now, nullptr);
    }
    std::thread([this] { watch_loop(); }).detach();
  }

  void watch_loop() {
    // Signals are for the program's own threads.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (;;) {
      std::vector<pollfd> waits{{.fd = wake_event.load(), .events = POLLIN, .revents = 0}};
      bool look = false;
      {
        const std::lock_guard lock(mutex_);
        for (const Watched& watched : watched_)
          if (watched.descriptor >= 0) waits.push_back({.fd = watched.descriptor, .events = POLLIN, .revents = 0});
          else look = true;
      }
      poll(waits.data(), waits.size(), look ? static_cast<int>(kPollEvery.count()) : -1);
      std::uint64_t rings = 0;
      [[maybe_unused]] const auto got = read(wake_event.load(), &rings, sizeof rings);
      report_ended();
      if (term_received.load()) end();
    }
  }

  void report_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(watched_, [](const Watched& watched) {
      if (!has_ended(watched)) return false;
      SharedBlock& block = *watched.block;
      const ProcessorId processor = watched.peer.processor;
      const bool in_order = block.gone(processor);
      block.set_gone(processor);
      if (!in_order)
        block.abort({.kind = Failure::Kind::kProcessEnded,
                     .processor = processor,
                     .process = watched.peer.process,
                     .last = {block.status(processor)}},
                    false);
      if (watched.descriptor >= 0) close(watched.descriptor);
      return true;
    });
  }

  // Aborts the wires and gives the waits time to report. Then ends the process.
  [[noreturn]] void end() {
    bool any = false;
    {
      const std::lock_guard lock(mutex_);
      for (SharedBlock* block : blocks_) {
        any = true;
        Failure failure{.kind = Failure::Kind::kLauncher};
        for (const ProcessorId processor : block->local())
          if (block->gone(processor) && failure.last.size() < kMostStatuses)
            failure.last.push_back(block->status(processor));
        block->abort(failure, false);
      }
    }
    if (any) std::this_thread::sleep_for(kTimeAfterTerm);
    std::signal(SIGTERM, SIG_DFL);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
    raise(SIGTERM);
    std::abort();
  }

  std::mutex mutex_;
  std::vector<Watched> watched_;
  std::vector<SharedBlock*> blocks_;
};

}  // namespace

void watch(SharedBlock& block, const std::vector<Peer>& peers) { ProcessWatcher::get().add(block, peers); }

void unwatch(SharedBlock& block) { ProcessWatcher::get().remove(block); }

}  // namespace weft::comm
