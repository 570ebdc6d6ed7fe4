#include "comm/mpi/watch.h"

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

#include "base/str.h"

namespace weft::comm {

namespace {

// Less than the second that mpirun waits between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kTimeToReport{800};
// Where the system cannot wait for the end of a process that is not a child, its number is looked up this often.
constexpr std::chrono::milliseconds kLook{50};

struct Watched {
  Hub* hub;
  Peer peer;
  int descriptor;  // of the process, or -1
};

bool has_ended(const Watched& watched) {
  if (watched.descriptor < 0) return kill(watched.peer.process, 0) != 0;
  pollfd end{.fd = watched.descriptor, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) > 0;
}

std::atomic<int> bell{-1};
std::atomic<bool> told_to_end{false};

void ring_bell() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(bell.load(), &one, sizeof one);
}

void on_term(int) {
  told_to_end.store(true);
  ring_bell();
}

class Watchman {
 public:
  static Watchman& get() {
    static Watchman* const watchman = new Watchman;  // never destroyed: its thread lives as long as the process
    return *watchman;
  }

  void add(Hub& hub, const std::vector<Peer>& peers) {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers)
      watched_.push_back({&hub, peer, static_cast<int>(syscall(SYS_pidfd_open, peer.process, 0))});
    hubs_.push_back(&hub);
    ring_bell();
  }

  void remove(Hub& hub) {
    const std::lock_guard lock(mutex_);
    std::erase(hubs_, &hub);
    for (const Watched& watched : watched_)
      if (watched.hub == &hub && watched.descriptor >= 0) close(watched.descriptor);
    std::erase_if(watched_, [&](const Watched& watched) { return watched.hub == &hub; });
    ring_bell();
  }

 private:
  Watchman() {
    bell.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    struct sigaction now = {};
    if (sigaction(SIGTERM, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      now.sa_handler = on_term;
      sigaction(SIGTERM, &now, nullptr);
    }
    std::thread([this] { keep_watch(); }).detach();
  }

  void keep_watch() {
    // Signals are for the program's own threads.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (;;) {
      std::vector<pollfd> waits{{.fd = bell.load(), .events = POLLIN, .revents = 0}};
      bool look = false;
      {
        const std::lock_guard lock(mutex_);
        for (const Watched& watched : watched_)
          if (watched.descriptor >= 0) waits.push_back({.fd = watched.descriptor, .events = POLLIN, .revents = 0});
          else look = true;
      }
      poll(waits.data(), waits.size(), look ? static_cast<int>(kLook.count()) : -1);
      std::uint64_t rings = 0;
      [[maybe_unused]] const auto got = read(bell.load(), &rings, sizeof rings);
      report_ended();
      if (told_to_end.load()) end();
    }
  }

  void report_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(watched_, [](const Watched& watched) {
      if (!has_ended(watched)) return false;
      Hub& hub = *watched.hub;
      const int processor = watched.peer.processor;
      const bool in_order = hub.gone(processor);
      hub.set_gone(processor);
      if (!in_order)
        hub.abort(str("processor ", processor, " is gone: its process ", watched.peer.process, " has ended; ",
                      hub.describe(processor)),
                  false);
      if (watched.descriptor >= 0) close(watched.descriptor);
      return true;
    });
  }

  // The waits end and report; whoever does not wait ends here.
  [[noreturn]] void end() {
    bool any = false;
    {
      const std::lock_guard lock(mutex_);
      for (Hub* hub : hubs_) {
        any = true;
        std::string left;
        for (const int processor : hub->local())
          if (hub->gone(processor)) left += str("; gone: ", hub->describe(processor));
        hub->abort(str("the launcher ends this run (SIGTERM), as it does when a rank has failed", left), false);
      }
    }
    if (any) std::this_thread::sleep_for(kTimeToReport);
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
  std::vector<Hub*> hubs_;
};

}  // namespace

void watch(Hub& hub, const std::vector<Peer>& peers) { Watchman::get().add(hub, peers); }

void unwatch(Hub& hub) { Watchman::get().remove(hub); }

}  // namespace weft::comm
