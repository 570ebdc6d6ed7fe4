// What a Session and its Executables share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/processor_threads.h"
#include "api/gatherer.h"
#include "comm/wire.h"
#include "program/builder.h"
#include "runtime/bound_program.h"
#include "weft/session.h"

namespace weft {

// One variable: its shard on every processor of this process, dense in declared dim order.
struct SessionVariable {
  Value value;                      // local type and sharding
  std::vector<comm::Arena> shards;  // by processor; empty for those of other processes
  std::string slot_of = {};         // the variable whose optimizer state this is
};

struct SessionState {
  Mesh mesh;
  SessionOptions options;
  std::unique_ptr<comm::Wire> wire;
  std::vector<int> here;  // the processors of this process
  const Engine* engine = nullptr;
  std::vector<std::unique_ptr<Workers>> workers;  // by processor; null for those of other processes
  std::map<std::string, SessionVariable> variables;
  std::vector<std::unique_ptr<Gatherer>> gatherers;  // by processor, if some are in other processes
  std::string failure;                               // why the session is unusable, if it is
  std::weak_ptr<RunState> running;                   // the step that the processors are at, if any
  std::unique_ptr<ProcessorThreads> threads;         // last: its threads use the rest

  // A session on any wire and backend; tests make their own. UserError if the wire has not the mesh's size.
  static Session open(const Mesh& mesh, std::unique_ptr<comm::Wire> wire, const Engine& engine,
                      const SessionOptions& options);

  // Waits for the step that the processors are at, if any, and throws what it threw. RunError if a step failed before.
  void make_ready();
  const SessionVariable& variable(const std::string& name) const;
  comm::Deadline deadline() const { return std::chrono::duration<double>(options.deadline_seconds); }

  // Runs the job on every processor of this process. What fails on one, here or in another process, ends all and is thrown
  // as one report. Waits for all processors, however long they take.
  void on_local_processors(const ProcessorThreads::Job& job);

  // The end of a step that threads->begin began. A processor that does not come back is left behind some time after the
  // others have failed: the job owns what it uses. `doing` says where a processor is in its program.
  void end_step(const std::function<std::string(int processor)>& doing);

  // The whole value, in every process. Collective.
  Array gathered(const Value& value, const std::string& what, const std::function<const void*(int processor)>& shard);
  Array room_for(const Value& value) const;
  // One processor's part in gathering it: its shard, and what of the whole it sees to. On its own thread, if some
  // processors are in other processes.
  void gather_on(int processor, const Value& value, const void* shard, const std::string& what, Array& whole);

  // `count` numbers of every processor, one processor after the other, in every process. Collective.
  std::vector<std::int64_t> gather_numbers(std::int64_t count, const std::string& what,
                                           const std::function<const std::int64_t*(int processor)>& numbers);

 private:
  [[noreturn]] void fail(const ProcessorThreads::Outcome& outcome,
                         const std::function<std::string(int processor)>& doing);
};

struct ExecutableState {
  std::shared_ptr<SessionState> session;
  std::shared_ptr<GraphData> graph;
  Program program;
  Tensors fetch;
  std::vector<std::unique_ptr<TraceLog>> logs;       // by processor, as bound; empty without a trace
  std::vector<std::unique_ptr<BoundProgram>> bound;  // by processor; null for those of other processes
  std::uint32_t step = 0;
  double compile_seconds = 0;
};

// Waits for a step and throws what it threw, if it did: the same every time.
void finish(RunState& step);

// A variable's first values, by its name and the seed alone; `out` is a shard of it, of zeros, that the workers share.
void fill_initial(const TensorView& out, const std::string& name, const Init& init, std::uint64_t seed,
                  Workers& workers);
Array initial_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed);

// The text with the coordinates of every processor that it names by number: "processor 3 (data=1 model=1)".
std::string with_coordinates(const std::string& text, const Mesh& mesh);

// From now on the wire decides which process tells the user what went wrong.
void note_wire_failure();

}  // namespace weft
