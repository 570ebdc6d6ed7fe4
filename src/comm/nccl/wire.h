// NcclWire: one process per card. NCCL carries the data; a connection of every rank to rank 0 (Control) carries the rest:
// how the ranks find each other, failures, and what everyone does.
//
// After a failure a helper thread aborts NCCL's communicators, which ends what hangs on the card. NCCL ends the abort when
// no captured graph holds its collectives: the engine destroys its graph then.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/index.h"
#include "comm/board.h"
#include "comm/nccl/communicator.h"
#include "comm/nccl/control.h"
#include "comm/wire.h"

namespace weft::comm {

class NcclGroup;

// What a process knows of one other.
struct RankInfo {
  std::string host, host_id;
  std::int64_t process = 0;
  DeviceId device = {};
};

// How far a member has come in a group.
struct MemberProgress {
  std::uint64_t started = 0, finished = 0;
  std::optional<ProcessorStatus> status;  // none: it did not answer
};

class NcclWire : public Wire {
 public:
  // Waits for the other ranks of the job.
  NcclWire(const NcclJob& job, const NcclCalls& nccl, const CudaCalls& cuda);
  ~NcclWire() override;

  int size() const override { return job_.size; }
  std::vector<ProcessorId> local() const override { return {me()}; }
  int on_host() const override;
  std::unique_ptr<Group> join(ProcessorId processor, const std::vector<ProcessorId>& members) override;
  void abort(const Failure& failure) override;
  using Wire::abort;
  std::vector<ProcessorStatus> report() const override;
  std::size_t overhead_bytes() const override;

  int device() const { return device_; }           // of CUDA, for this process
  cudaStream_t stream() const { return stream_; }  // of all collectives
  const NcclCalls& nccl() const { return nccl_; }
  const CudaCalls& cuda() const { return cuda_; }
  ProcessorId me() const { return ProcessorId(job_.rank); }

  // The communicator of programs for these members, made when it is first asked for; every member asks. Waits for the
  // others. FailureError if they do not come in time.
  std::shared_ptr<Communicator> communicator(const std::vector<ProcessorId>& members, Deadline deadline);

  // What the program of this process does: how many collectives it has begun and finished, and which. Null: no program.
  struct ProgramProgress {
    virtual ~ProgramProgress() = default;
    virtual MemberProgress program_progress() const = 0;  // from any thread
  };
  void set_progress(const ProgramProgress* progress);

  // For groups and programs.
  static constexpr const char* kProgram = "program";  // the key of the collectives of programs
  bool is_aborted() const { return is_aborted_.load(); }
  [[noreturn]] void throw_aborted(Call call);  // FailureError: the failure that ended the call
  // If NCCL has failed: aborts the wire for everyone and throws.
  void check_nccl(Communicator& communicator, const Call& call);
  std::vector<MemberProgress> ask(const std::vector<ProcessorId>& members, const std::string& key) const;
  Board& board() { return board_; }
  std::uint32_t number_of(const std::vector<ProcessorId>& members);  // for the board
  void check_cuda(cudaError_t status, const char* call) const;       // RunError unless it succeeded

  // After an abort: whether NCCL has let go of the card, for which the call waits a short time.
  bool wait_for_abort() const;
  bool drains() const;  // and whether the stream has come to its end, likewise

  // For groups: the id of the communicator of that key, which the first member makes and the others get.
  bool begin(Communicator& communicator, const std::vector<ProcessorId>& members, const std::string& key);
  void enter(const std::string& key, NcclGroup* group);
  void leave(const std::string& key, NcclGroup* group);
  // Collectives go to the stream in the order in which they were started, whatever their group: so all ranks have the same.
  void queue(NcclGroup& group);
  void progress();  // launches what can be launched, and ends what is over
  void add(const std::shared_ptr<Communicator>& communicator);

 private:
  void choose_device();
  void delivered(int from, const std::string& payload);
  void answer(int from, std::uint64_t question, const std::string& key) const;
  void aborted_by_peer(int reporter, const Failure& failure);
  bool note_failure(const Failure& failure);
  void start_abort();
  MemberProgress own_progress(const std::string& key) const;
  ProcessorStatus own_status() const;
  ProcessorStatus last_known(ProcessorId processor) const;

  const NcclJob job_;
  const NcclCalls& nccl_;
  const CudaCalls& cuda_;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  Indexed<ProcessorId, RankInfo> ranks_;

  std::vector<std::byte> board_memory_;
  Board board_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, ncclUniqueId> ids_;  // of communicators that others have made
  std::map<std::string, NcclGroup*> groups_;
  std::map<std::vector<ProcessorId>, std::uint64_t> joins_;  // so far, of a list of members
  std::vector<std::vector<ProcessorId>> lists_;              // by number, for the board
  std::map<std::vector<ProcessorId>, std::shared_ptr<Communicator>> of_programs_;
  std::vector<std::weak_ptr<Communicator>> communicators_;
  std::deque<NcclGroup*> queue_;  // by collective: its group. Of the processor's thread
  const ProgramProgress* program_ = nullptr;
  std::optional<Failure> failure_;
  bool has_verdict_ = false;  // the hub has said whose failure was the first
  std::atomic<bool> is_aborted_ = false;

  // Questions that wait for answers.
  mutable std::uint64_t next_question_ = 1;
  mutable std::map<std::uint64_t, std::map<int, MemberProgress>> answers_;

  std::map<ProcessorId, ProcessorStatus> last_words_;  // of the others, when there is a failure

  // The thread that aborts may outlive this object.
  struct Aborting;
  const std::shared_ptr<Aborting> aborting_;
  std::unique_ptr<Control> control_;  // last: its thread uses the rest
};

// The wire of the job that the environment describes, for a mesh of so many processors.
std::unique_ptr<Wire> make_nccl_wire(int processors);

}  // namespace weft::comm
