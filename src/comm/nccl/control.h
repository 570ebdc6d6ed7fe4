// Control: a rank's connection to the others besides NCCL: they exchange texts when the wire is made, send each other
// what NCCL needs, tell of failures, and answer what they are doing. A thread reads what comes.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/failure.h"
#include "comm/nccl/job.h"

namespace weft::comm {

class Control {
 public:
  // Called by the thread that reads.
  struct Listener {
    std::function<void(int from, const std::string& payload)> delivered;
    std::function<void(int reporter, const Failure& failure)> aborted;  // the first failure of the job
    std::function<ProcessorStatus()> status;                            // what this rank does, for who may outlive it
  };

  // Finds the other ranks. UserError or RunError if the job cannot be.
  explicit Control(const NcclJob& job);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void stop();  // says goodbye; nothing is heard or sent afterwards

  // From now on the listener hears what comes.
  void listen(Listener listener);

  // The texts of all ranks, once all have made the call. RunError if some have not in time.
  std::vector<std::string> exchange(const std::string& text);
  void send(const std::vector<int>& ranks, const std::string& payload);
  void abort(const Failure& failure);

 private:
  void run();
  void read(const std::string& text);
  void put(const std::string& frame);
  void lost_hub();
  void tell_status();
  void hear(std::unique_lock<std::mutex>& lock, const std::string& frame);

  const NcclJob job_;
  Meeting meeting_;
  int wake_ = -1;  // an eventfd: something is to be sent, or it is over

  std::mutex mutex_;
  std::condition_variable changed_;
  Listener listener_;
  std::vector<std::string> unheard_;  // frames before the listener
  std::optional<std::vector<std::string>> exchanged_;
  std::exception_ptr refused_;
  bool ends_ = false, is_lost_ = false, has_aborted_ = false, hub_said_bye_ = false;
  std::uint64_t told_calls_ = 0;
  std::thread thread_;
};

}  // namespace weft::comm
