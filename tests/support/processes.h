// Sessions whose processors are processes. WEFT_TEST_WIRE chooses what tests over meshes run on:
//   threads (the default)  one session, all processors are threads of this process;
//   ranks                  without MPI: every processor is a "process" of its own, a thread with its own session, which
//                          knows the others only through the wire;
//   mpi                    every processor is a rank of mpirun, and the test program runs in all of them.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "api/state.h"
#include "comm/wire.h"
#include "weft/weft.h"

namespace weft::test {

// The device that tests over all ops and graphs hold to the reference: WEFT_TEST_DEVICE names it; cpu if it is not set.
device::Choice device_under_test();

// One process's view of a wire that all share.
class OneOfMany : public comm::Wire {
 public:
  OneOfMany(std::shared_ptr<comm::Wire> all, std::vector<ProcessorId> mine)
      : all_(std::move(all)), mine_(std::move(mine)) {}
  int size() const override { return all_->size(); }
  std::vector<ProcessorId> local() const override { return mine_; }
  int on_host() const override { return all_->size(); }
  std::unique_ptr<comm::Group> join(ProcessorId processor, const std::vector<ProcessorId>& members) override {
    return all_->join(processor, members);
  }
  comm::PeerMemory* peer_memory(ProcessorId processor) override { return all_->peer_memory(processor); }
  void abort(const comm::Failure& failure) override { all_->abort(failure); }
  std::vector<comm::ProcessorStatus> report() const override { return all_->report(); }
  std::size_t overhead_bytes() const override { return all_->overhead_bytes(); }

 private:
  std::shared_ptr<comm::Wire> all_;
  std::vector<ProcessorId> mine_;
};

// Runs the body in `processes` threads, each with its view of one wire of `processors`, which they share out evenly.
// What each threw, if anything.
std::vector<std::exception_ptr> as_processes(int processes, int processors,
                                             const std::function<void(int process, std::unique_ptr<comm::Wire>)>& body);

// A session in each process of the chosen wire. All must give the same bits, which are returned; the first error is thrown.
std::vector<Array> in_every_process(const Mesh& mesh, const SessionOptions& options,
                                    const std::function<std::vector<Array>(Session&)>& body,
                                    const device::Choice& device = device_under_test());

// A session of this process, with all processors of the mesh or, under mpirun, with its one. All sessions of ranks share
// one wire, since it takes long to make one; what one processor does alone goes over no wire.
Session open_session(const Mesh& mesh, const SessionOptions& options,
                     const device::Choice& device = device_under_test());

// Whether a mesh can be had: under mpirun it must have as many processors as there are ranks, or one.
bool can_have(const Mesh& mesh);

// The ranks that mpirun started; 0 if WEFT_TEST_WIRE is not mpi.
int ranks();

}  // namespace weft::test
