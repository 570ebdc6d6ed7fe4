// Processors: the processors of a mesh that are in this process, with their wire, devices and threads. Sessions, `weft
// run` and tests run everything on them.
//
// Threads: used by one thread; jobs run on the threads of the processors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.h"
#include "runtime/gatherer.h"
#include "runtime/processor_threads.h"

namespace weft {

struct ProcessorOptions {
  double deadline_seconds = 600;  // how long a processor waits for the others before it reports who is missing
  int workers = 0;                // see DeviceOptions
};

// One variable: its shard on every processor of this process, dense in declared dim order.
struct VariableMemory {
  Value value;                                // local type and sharding
  Indexed<ProcessorId, comm::Memory> shards;  // by processor; empty for those of other processes

  void* on(ProcessorId processor) const { return shards[processor].data(); }
};

class PendingStep;

class Processors {
 public:
  // UserError if the wire has not the mesh's size.
  Processors(const Mesh& mesh, std::unique_ptr<comm::Wire> wire, const Engine& engine,
             const ProcessorOptions& options = {});

  const Mesh& mesh() const { return mesh_; }
  const Engine& engine() const { return engine_; }
  comm::Wire& wire() const { return *wire_; }
  const std::vector<ProcessorId>& local() const { return local_; }  // ascending
  ProcessorId first() const { return local_[0]; }                   // it hands out what this process prints and returns
  bool all_are_local() const { return gatherers_.empty(); }
  Device& device(ProcessorId processor) const { return *devices_[processor]; }
  comm::Deadline deadline() const { return std::chrono::duration<double>(options_.deadline_seconds); }

  // Waits for the step that the processors are at, if any, and throws what it threw. RunError if a step failed before.
  void make_ready();

  // Runs the job on every processor of this process. What fails on one, here or in another process, ends all and is
  // thrown as one report. Waits for all processors, however long they take.
  void on_each(const ProcessorThreads::Job& job);

  // Begins a step; the job owns what it uses, since a processor that hangs may outlive all else.
  void begin_step(const std::shared_ptr<PendingStep>& step, ProcessorThreads::Job job);
  bool has_pending_step() const { return !pending_.expired(); }
  // The end of a step that was begun. A processor that does not come back is left behind some time after the others
  // have failed. `doing` says where a processor is in its program.
  void end_step(const std::function<std::string(ProcessorId processor)>& doing);

  VariableMemory allocate(const Value& value);
  void upload(const Array& whole, VariableMemory& variable);

  // The whole value, in every process. Collective.
  Array gather(const Value& value, const std::string& what,
               const std::function<const void*(ProcessorId processor)>& shard);
  Array gather(const VariableMemory& variable, const std::string& what);
  Array room_for(const Value& value) const;
  // One processor's part in gathering it: its shard, and what of the whole it sees to. On its own thread, if some
  // processors are in other processes.
  void gather_on(ProcessorId processor, const Value& value, const void* shard, const std::string& what, Array& whole);

  // `count` numbers of every processor, one processor after the other, in every process. Collective.
  std::vector<std::int64_t> gather_numbers(std::int64_t count, const std::string& what,
                                           const std::function<const std::int64_t*(ProcessorId processor)>& numbers);

 private:
  [[noreturn]] void fail(const ProcessorThreads::Outcome& outcome,
                         const std::function<std::string(ProcessorId processor)>& doing);

  const Mesh mesh_;
  const ProcessorOptions options_;
  const std::unique_ptr<comm::Wire> wire_;
  const std::vector<ProcessorId> local_;
  const Engine& engine_;
  Devices devices_;
  Indexed<ProcessorId, std::unique_ptr<Gatherer>> gatherers_;  // by processor, if some are in other processes
  std::string failure_;                                        // why nothing more can run, if so
  std::weak_ptr<PendingStep> pending_;                         // the step that the processors are at, if any
  std::unique_ptr<ProcessorThreads> threads_;                  // last: they use the rest
};

// From now on the wire decides which process tells the user what went wrong; whether that is so.
void note_wire_failure();
bool has_wire_failed();

}  // namespace weft
