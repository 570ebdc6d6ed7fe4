// Session: processors, a wire and the variables. Executable: a graph compiled for a session's mesh under a layout.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/graph.h"
#include "weft/mesh.h"

namespace weft {

// How processors talk.
namespace wire {
struct Choice {
  std::string name;
};
Choice threads();  // processors are threads of this process
// Every processor is a process that mpirun or srun started: as many as the mesh has processors, on one host or many. All
// of them run the same program: they make the same sessions, compile the same graphs under the same layouts and call
// run, value and set_value in the same order with the same whole arrays, of which run looks at what Executable::local_range
// names. Whatever one call returns or throws it returns or throws in every process; print() speaks in that of processor 0.
Choice mpi();
// mpi() in a process that mpirun or srun started beside others, else threads().
Choice automatic();
// What a command's --wire means: "threads", "mpi", or "" for automatic(). UserError for "threads" in a process that
// mpirun or srun started beside others: each of them would do all of the work.
Choice named(const std::string& name);

// The number of this process among those that mpirun or srun started together; 0 if it was started alone.
int process();
// For the end of main: writes the error to standard error, once for all processes of a host. One process does so at
// once; the others wait for mpirun to end them. A process that nobody ends, and whose error only it may know, speaks then.
void report(const std::exception& error);
}  // namespace wire

// Who computes.
namespace device {
struct Choice {
  std::string name;
};
Choice cpu();        // fast: vectors, oneDNN's products, all cores that the process may use
Choice reference();  // slow and readable: what the others are held to
// The names of the devices of this build, the default first: what --device may say.
std::vector<std::string> names();
}  // namespace device

using Updates = Tensors;                              // what assign() or an optimizer returns
using Feeds = std::vector<std::pair<Tensor, Array>>;  // inputs and their values

// Which runs of an executable are noted, instruction by instruction: see Executable::trace.
struct TraceOptions {
  std::int64_t first = 0;  // the first run is 0
  std::int64_t steps = 0;  // how many; 0: none, at no cost. Fewer if the program is very long
};

struct CompileOptions {
  Tensors fetch = {};                    // what run() returns
  Updates update = {};                   // what run() changes
  bool metrics = false;                  // also report the graph's scalar metrics
  std::optional<DType> compute_as = {};  // kF64: all floats become f64, with the same random draws
  std::int64_t memory_bytes = 0;         // most for variables and arena on each processor, by recomputation; 0: any
  bool check_finite = false;             // a run fails at the first instruction that makes a NaN or an infinity; slow
  bool check_ids = false;                // a run fails at the first gather() of an id out of range; labels may be < 0
  TraceOptions trace = {};
  // Called after the partitioner and after every pass with its name and the program's text.
  std::function<void(std::string_view pass, const std::string& text)> dump = {};
};

struct SessionOptions {
  std::uint64_t seed = 0;         // of variables and random ops
  double deadline_seconds = 600;  // how long a processor waits for the others before it reports who is missing
  int workers = 0;                // threads of each processor; 0: the cores of the process over its processors
  Store store = {};               // how the variables are stored; of all executables of the session
  std::function<void(const std::string& line)> print = {};  // takes what print() says; default: standard output
};

// The results of one run.
class Values {
 public:
  // The whole tensor, gathered, dense in its dim order. UserError if it was not fetched.
  const Array& operator[](const Tensor& x) const;
  double scalar(const Tensor& x) const;
  const std::map<std::string, double>& metrics() const { return metrics_; }

 private:
  friend class PendingRun;
  std::vector<std::pair<Tensor, Array>> arrays_;
  std::map<std::string, double> metrics_;
};

struct SessionState;
struct ExecutableState;
struct RunState;
struct Machine;

// A step that has been started. If it goes unasked it waits for the step's end and forgets what that gave or threw.
class PendingRun {
 public:
  PendingRun(PendingRun&& other) noexcept = default;
  PendingRun& operator=(PendingRun&& other) noexcept { return std::swap(state_, other.state_), *this; }
  ~PendingRun();

  Values get();  // waits; returns or throws what run() would. UserError if it was asked before

 private:
  friend class Executable;
  explicit PendingRun(std::shared_ptr<RunState> state) : state_(std::move(state)) {}
  std::shared_ptr<RunState> state_;
};

class Executable {
 public:
  // One step. Variables change only if all goes well on every processor. UserError for missing, unknown or misshapen
  // inputs; RunError, with the processor's coordinates, if a processor fails: the session is then unusable.
  Values run(const Feeds& feeds = {});
  // The same, without waiting for the step; but waits for, and throws what was thrown by, one that was started before in
  // this session, as everything does that needs the processors. Who reads the results of a step after it has started the
  // next leaves the processors no time to idle.
  PendingRun start(const Feeds& feeds = {});
  // What the processors of this process look at of an input along one of its dims: [first, second).
  std::pair<std::int64_t, std::int64_t> local_range(const Tensor& input, const std::string& dim) const;

  double compile_seconds() const;  // what it took from the graph to bound kernels; memory apart
  std::string report() const;      // bytes, flops and collectives per processor, and the warnings
  // What is legal but hardly meant: axes of the mesh that split nothing, so that processors do the same work.
  std::vector<std::string> warnings() const;
  std::string text() const;  // the program, as the processors run it

  // The number of the next run, which random ops draw by: 0 at first, one more after every run. A resumed run that sets it
  // to where the other one was draws the same numbers. UserError if it is negative or 2^32 or more.
  std::int64_t step() const;
  void set_step(std::int64_t step);

  // What the traced runs did, of all processors, in the JSON that chrome://tracing and Perfetto show: docs/bench.md. An
  // instruction's roof is what one processor of `machine` could reach; `peaks` says where its numbers are from. All
  // processes must ask. UserError if no run has been traced.
  std::string trace(const Machine& machine, const std::string& peaks = "given") const;

 private:
  friend class Session;
  explicit Executable(std::shared_ptr<ExecutableState> state) : state_(std::move(state)) {}
  std::shared_ptr<ExecutableState> state_;
};

// The piece of a variable that one processor holds: where it begins, and its sizes, along the dims of `whole`.
struct VariableShard {
  std::string variable;
  std::string slot_of;  // the variable whose optimizer state this is, if any
  Shape whole;
  DType dtype = DType::kF32;   // of the bytes that the processor holds
  DType stored = DType::kF32;  // what a checkpoint holds: VariableOptions::stored, `dtype` of optimizer state
  std::vector<std::int64_t> begin, sizes;
  int processor = 0;
  bool is_primary = false;  // of all that hold this very piece it is the first: at coordinate 0 of the other axes

  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

class Session {
 public:
  explicit Session(const Mesh& mesh, const wire::Choice& wire = wire::automatic(),
                   const device::Choice& device = device::cpu(), const SessionOptions& options = {});

  // UserError, with the fix, if the layout cannot work. Variables that are new to the session get their first values.
  Executable compile(const Graph& graph, const Layout& layout, const CompileOptions& options);

  Array value(const std::string& variable) const;  // gathered, so all processes must ask; UserError if there is none
  void set_value(const std::string& variable, const Array& value);
  std::vector<std::string> variables() const;
  const Mesh& mesh() const;
  // Whether any process says so; all of them must ask.
  bool any(bool here) const;
  const std::vector<int>& processors() const;  // those of this process, ascending

  // The pieces that the processors of this process hold, by variable and processor; and their bytes, dense in the order
  // of the variable's dims. Nothing is sent: each process sees to its own. InternalError for another number of bytes.
  std::vector<VariableShard> shards() const;
  void read_shard(const VariableShard& shard, std::span<std::byte> out) const;
  void write_shard(const VariableShard& shard, std::span<const std::byte> in);

  // Waits for all processes. If some come with an error, every process throws the one of the lowest processor; `what`
  // says in reports what is waited for. All processes must call.
  void agree(const std::exception_ptr& error, const std::string& what) const;

  // The most memory that each process has had in RAM so far, all processes together; so all of them must ask.
  std::int64_t peak_resident_bytes() const;

 private:
  friend struct SessionState;
  explicit Session(std::shared_ptr<SessionState> state) : state_(std::move(state)) {}
  std::shared_ptr<SessionState> state_;
};

// The value of a tensor on one processor, without ceremony. Variables have their first values.
Array eval(const Tensor& x, const Feeds& feeds = {}, const SessionOptions& options = {});

}  // namespace weft
