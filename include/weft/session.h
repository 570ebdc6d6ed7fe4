// Session: processors, a wire and the variables. Executable: a graph compiled for a session's mesh under a layout.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/graph.h"
#include "weft/mesh.h"

namespace weft {

// How processors communicate.
namespace wire {
struct Choice {
  std::string name;
};
Choice threads();  // processors are threads of this process
// Every processor is a process that mpirun or srun started: as many as the mesh has processors, on one host or many.
// All processes run the same program: they make the same sessions, compile the same graphs under the same layouts and
// call run, value and set_value in the same order with the same unsplit arrays. run reads only the part of an array
// that Executable::local_range names. A call returns or throws the same in every process. print() prints in the process
// of processor 0.
Choice mpi();
// Like mpi(), for the device cuda: every process has a card of its own, and NCCL joins the cards (docs/cluster.md).
Choice nccl();
// mpi() in a process that mpirun or srun started with others, nccl() in one with WEFT_NCCL_RANK, otherwise threads().
Choice automatic();
// The choice for a command's --wire: "threads", "mpi", "nccl", or "" for automatic(). UserError for "threads" in a process that
// mpirun or srun started together with other processes: each of them would do all of the work.
Choice named(const std::string& name);

// The number of this process among the processes that mpirun or srun started together; 0 if it was started alone.
int process();
// For the end of main: writes the error to standard error, once for all processes of a host. One process prints at once.
// The remaining processes wait for mpirun to end them. If it does not, they print errors that only they may know.
void report(const std::exception& error);
}  // namespace wire

// The engine that computes.
namespace device {
struct Choice {
  std::string name;
  std::string plugin = {};        // of xla: the plugin's shared library; "": the environment variable WEFT_PLUGIN
  std::string topology = {};      // of xla, for explain(): compile ahead of time for devices such as "v4:2x2x1"
  bool nondeterministic = false;  // of cuda: sums in any order where that is faster; two runs differ by roundings
  bool over_nccl = false;         // of cuda, for explain(): one card per processor, joined by wire::nccl()
};
Choice cpu();        // fast: vectors, oneDNN's products, all cores that the process may use
Choice reference();  // slow and readable; tests compare all devices with it
Choice cuda();       // one NVIDIA card for all processors of the mesh; UserError says why it cannot be used
// The devices of a PJRT plugin, one for each processor of the mesh: TPUs, GPUs or the CPU (docs/xla.md).
Choice xla(const std::string& plugin = {});
// The names of all devices, the default first: the values of --device.
std::vector<std::string> names();
}  // namespace device

using Updates = Tensors;  // the results of assign() or of an optimizer
// Inputs and their values. A run copies an array straight to the processors if it has the dtype and dim order of the
// input. Array::view() and Array::wrap() keep the array itself from being copied.
using Feeds = std::vector<std::pair<Tensor, Array>>;

// The runs of an executable that are recorded instruction by instruction: see Executable::trace.
struct TraceOptions {
  std::int64_t first = 0;  // the first run is 0
  std::int64_t steps = 0;  // the number of runs; 0: none, at no cost. Fewer if the program is very long
};

struct CompileOptions {
  Tensors fetch = {};                    // the tensors that run() returns
  Updates update = {};                   // the variables that run() changes
  bool metrics = false;                  // also report the graph's scalar metrics
  std::optional<DType> compute_as = {};  // kF64: all floats become f64, with the same random draws
  std::int64_t memory_bytes = 0;  // the limit for variables and arena on each processor, met by recomputation; 0: none
  bool check_finite = false;      // a run fails at the first instruction that produces a NaN or infinity; slow
  bool check_ids = false;         // a run fails at the first gather() of an id out of range; labels may be < 0
  TraceOptions trace = {};
  // Called after the partitioner and after every pass with its name and the program's text.
  std::function<void(std::string_view pass, const std::string& text)> dump = {};
};

struct SessionOptions {
  std::uint64_t seed = 0;         // of variables and random ops
  double deadline_seconds = 600;  // how long a processor waits before it reports the missing processors
  int workers = 0;                // threads of each processor; 0: the cores of the process over its processors
  Store store = {};               // the storage layout of the variables, for all executables of the session
  std::function<void(const std::string& line)> print = {};  // receives the lines of print(); default: standard output
};

// The results of one run.
class Values {
 public:
  // The unsplit tensor, gathered, dense in its dim order. UserError if it was not fetched.
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

// A step that has been started. The destructor waits for the step's end and drops its results or its error if get() was
// not called.
class PendingRun {
 public:
  PendingRun(PendingRun&& other) noexcept = default;
  PendingRun& operator=(PendingRun&& other) noexcept { return std::swap(state_, other.state_), *this; }
  ~PendingRun();

  Values get();  // waits; returns or throws like run(). UserError if called twice

 private:
  friend class Executable;
  explicit PendingRun(std::shared_ptr<RunState> state) : state_(std::move(state)) {}
  std::shared_ptr<RunState> state_;
};

// Bytes of one processor, as planned: what it allocates.
struct PlannedMemory {
  std::int64_t variables = 0;
  // Of all other values and of workspaces; the executables of a session share one. Of device xla: what its compiler says
  // that one executable needs besides its variables.
  std::int64_t arena = 0;
  std::int64_t workspaces = 0;  // the most of the arena that kernels have at once besides operands and results
  std::int64_t scratch = 0;     // of its threads

  std::int64_t sum() const { return variables + arena + scratch; }
};

class Executable {
 public:
  // Runs one step and waits for it. Variables change only if every processor succeeds. UserError for missing, unknown
  // or misshapen inputs; RunError, with the processor's coordinates, if a processor fails: the session is then
  // unusable.
  Values run(Feeds feeds = {});
  // Starts a step and returns at once. If an earlier step of this session is still running, waits for it first; if that
  // step failed, throws its error. All other calls that need the processors do the same. Start step n + 1 before you
  // read step n, and the processors never wait for the host.
  PendingRun start(Feeds feeds = {});
  // The range [first, second) of an input along one of its dims that the processors of this process read. UserError if
  // the input lacks the dim.
  std::pair<std::int64_t, std::int64_t> local_range(const Tensor& input, const DimRef& dim) const;

  // The times of Session::compile: from the graph to the memory plan, and from there to bound kernels, with the memory and
  // the initial values of the variables that were new to the session.
  double plan_seconds() const;
  double bind_seconds() const;
  PlannedMemory memory() const;
  std::string report() const;  // bytes, flops and collectives per processor, and the warnings
  // Warnings about legal programs: axes of the mesh that split nothing, so that processors repeat the same work.
  std::vector<std::string> warnings() const;
  std::string text() const;  // the program, as the processors run it

  // The number of the next run, which keys the random ops: 0 at first, one more after every run. A resumed run that
  // sets it to the number of the interrupted run draws the same random numbers. UserError if it is negative or 2^32 or
  // more.
  std::int64_t step() const;
  void set_step(std::int64_t step);

  // The traced runs of all processors in the JSON that chrome://tracing and Perfetto show: docs/bench.md. The roof of
  // an instruction is what one processor of `machine` could reach; `peaks` says where the numbers of `machine` are
  // from. All processes must call. UserError if no run has been traced.
  std::string trace(const Machine& machine, const std::string& peaks = "given") const;

 private:
  friend class Session;
  explicit Executable(std::shared_ptr<ExecutableState> state) : state_(std::move(state)) {}
  std::shared_ptr<ExecutableState> state_;
};

class Session {
 public:
  explicit Session(const Mesh& mesh, const wire::Choice& wire = wire::automatic(),
                   const device::Choice& device = device::cpu(), const SessionOptions& options = {});

  // UserError, with the fix, if the layout cannot work. Initializes the variables that are new to the session.
  Executable compile(const Graph& graph, const Layout& layout, const CompileOptions& options);

  Array value(const std::string& variable) const;  // unsplit; all processes must call; UserError if unknown
  void set_value(const std::string& variable, const Array& value);
  std::vector<std::string> variables() const;
  const Mesh& mesh() const;

 private:
  friend struct SessionState;
  explicit Session(std::shared_ptr<SessionState> state) : state_(std::move(state)) {}
  std::shared_ptr<SessionState> state_;
};

// The value of a tensor on one processor, without a session. Variables have their initial values.
Array eval(const Tensor& x, const Feeds& feeds = {}, const SessionOptions& options = {});

}  // namespace weft
