// CudaProgram: a program on the processors of one card. One thread of the host puts the work of all processors on one
// stream, instruction after instruction, so that collectives are kernels that read what their group wrote before. With
// peers in other processes the card has one processor, and collectives go over NCCL: in a captured step on a stream of
// their own, between events where the program starts them and where it needs their results.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program/compiled.h"
#include "runtime/cuda/peers.h"
#include "runtime/cuda/poison.h"
#include "runtime/cuda/timeline.h"
#include "runtime/cuda/work.h"
#include "runtime/engine.h"

namespace weft::cuda {

// Where a program lies: per processor of the mesh; empty for those on other cards.
struct Places {
  std::vector<ProcessorId> local;  // of this card
  Indexed<ProcessorId, std::byte*> arenas;
  Indexed<ProcessorId, std::vector<void*>> variables;  // of each processor, by variable
};

class CudaProgram {
 public:
  // `peers`: null if all processors of the mesh are on this card.
  CudaProgram(std::shared_ptr<const Compiled> compiled, Card& card, const Places& places, const Checks& checks,
              Peers* peers);
  ~CudaProgram();
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  const Program& program() const { return compiled_->program; }
  void* input(ProcessorId processor, std::size_t i) const;
  void* output(ProcessorId processor, std::size_t i) const;

  void start(const StepArgs& step);                           // puts a step on the stream
  bool queues() const { return prints_.empty() && !trace_; }  // see BoundProgram::queues
  void wait();  // for the end of all steps; hands over what print() and metrics say
  std::string doing() const;
  void trace_to(TraceLog* log) { trace_ = log; }
  std::vector<RunInstr> instructions() const;

 private:
  class Block;
  struct Step;
  struct Print;

  const std::vector<ProcessorId>& local() const { return local_; }
  void bind_updates(const Places& places);
  void hand_over(Print& print) const;
  void issue_all();
  void issue_traced();
  bool can_capture() const;
  void capture();
  void wait_for_peers() const;
  void drop_graph();
  [[noreturn]] void fail(const std::string& cause);

  const std::shared_ptr<const Compiled> compiled_;
  Card& card_;
  const Checks checks_;
  const std::vector<ProcessorId> local_;
  Peers* const peers_;
  const bool poisons_ = wants_poison();
  comm::Deadline deadline_ = {};  // of the present step
  KernelSet kernels_;
  std::unique_ptr<Block> block_;
  std::vector<Issue> commits_;
  Indexed<ProcessorId, std::map<ValueId, void*>> saved_outputs_;
  std::vector<const Step*> steps_;  // by number
  std::vector<std::unique_ptr<Print>> prints_;
  std::atomic<const Step*> current_ = nullptr;
  TraceLog* trace_ = nullptr;
  TraceLog* log_ = nullptr;  // of the present step, until it has been waited for
  Timeline timeline_;
  std::function<void(const HostEvent&)> host_;  // while a step runs
  StepWords* words_ = nullptr;                  // of each step on the stream, in pinned memory
  bool draws_ = false;                          // random numbers, which depend on these words
  std::int64_t started_ = 0;                    // steps since the last wait
  cudaGraphExec_t graph_ = nullptr;
  bool tried_capture_ = false;
};

}  // namespace weft::cuda
