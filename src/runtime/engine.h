// The engine seam: what a machine is to everything above it. Reference and CPU are engines behind it; nothing above
// knows memory, threads or streams.
//
//   Engine        a way to run programs: what it has kernels for, what the passes must know of it, its devices
//   Device        the memory of one processor, and what works on it
//   BoundProgram  a program on a device: a place for every value, a kernel for every instruction
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/wire.h"
#include "program/compiled.h"
#include "runtime/trace.h"
#include "weft/array.h"
#include "weft/graph.h"

namespace weft {

// A value that print() or a metric hands over, whole.
struct HostEvent {
  std::string what;
  std::string text;
  Array value;
};

// What is new at each step.
struct StepArgs {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  comm::Deadline deadline = {};                     // of every wait for peers
  std::function<void(const HostEvent&)> host = {};  // takes what print() and metrics say; empty: nobody listens
};

// What a run looks for in every step.
struct Checks {
  bool finite = false;  // a NaN or an infinity in the results of every instruction
  bool ids = false;     // an id that is out of range in the operands of every gather()
};

// An instruction as an engine runs it: what a trace names and a failure speaks of.
struct RunInstr {
  const Program* program = nullptr;
  const Instr* instr = nullptr;
  bool finishes = false;       // what is left of a collective after its start
  std::string served_by = {};  // the engine whose kernel it is: not always the one that was asked for

  std::string tensor() const;           // the name of its first result, or of its first operand if it has no result
  std::string lines() const;            // the user's lines that it comes from
  std::string name_and_tensor() const;  // "all_reduce of 'loss'"
};

// The bytes of one processor as the compiler of an engine reports them, where the engine compiles whole programs: they
// stand in place of the memory plan. Rounded up by the compiler, as it lays tensors out.
struct CompilerMemory {
  std::string compiler = {};  // its name
  std::int64_t arguments = 0, outputs = 0;
  std::int64_t aliased = 0;  // of the outputs: they overwrite arguments
  std::int64_t temporaries = 0, code = 0;
  std::int64_t peak = 0;                // of all of it; 0: not reported
  double seconds = 0, cpu_seconds = 0;  // of the compiler
  std::string topology = {};            // that it was compiled for ahead of time
  std::string refusal = {};             // why the program does not fit into the devices' memory; "": it does
  std::string executable = {};          // the file that keeps what was compiled ahead of time
};

// Threads: made, started and waited for by the processor's own thread.
class BoundProgram {
 public:
  virtual ~BoundProgram() = default;

  // Where inputs are uploaded to before a step, and where outputs lie after it: dense, on the device. An output that is
  // the contents of a variable has those from before the step.
  virtual void* input(std::size_t i) const = 0;
  virtual void* output(std::size_t i) const = 0;

  // Starts a step: runs the body, then gives the variables their new contents. May return before all is done, or after.
  virtual void start(const StepArgs& step) = 0;
  // Whether a step may be started before the one before has been waited for: wait() then waits for all of them.
  virtual bool queues() const { return false; }
  // Waits for the step's end. Throws what it failed with: then the wire is aborted, so that no peer waits.
  virtual void wait() = 0;

  // Where the last step is or ended, "all_reduce of 'loss', digits.cc:12 mean"; "" if all of it has been run. From any
  // thread.
  virtual std::string doing() const = 0;

  // From now on steps that the log covers are noted in it; null: none. Records name instructions by their number here.
  virtual void trace_to(TraceLog* log) = 0;
  virtual std::vector<RunInstr> instructions() const = 0;

  // Of an engine that compiles whole programs.
  virtual std::optional<CompilerMemory> compiler_memory() const { return std::nullopt; }
};

// The use of a piece of memory. A device counts the bytes it has given out for each use.
enum class MemoryUse : std::uint8_t { kVariables, kArena, kScratch };

// Memory and kernels of one processor. Threads: used by the processor's own thread.
class Device {
 public:
  virtual ~Device() = default;

  // Zeroed memory of the device. Every processor makes the same calls in the same order.
  virtual comm::Memory allocate(std::size_t bytes, MemoryUse use) = 0;
  virtual std::int64_t allocated(MemoryUse use) const = 0;

  // Bytes from the host to the device and back.
  virtual void write(std::span<const std::byte> from, void* to) = 0;
  virtual void read(const void* from, std::span<std::byte> to) = 0;
  // This processor's shard of a whole array, dense on the device, and back to its place in the array.
  virtual void upload(const Array& whole, const Value& value, void* shard) = 0;
  virtual void download(const void* shard, const Value& value, Array& whole) = 0;
  // First values of this processor's shard of a variable, whose memory is zero: by name, place and seed alone.
  virtual void fill(void* shard, const Value& value, const std::string& name, const Init& init, std::uint64_t seed) = 0;

  // `variables`: where each variable of the program lies, in the program's order. All programs of a device share one
  // arena: whoever starts a step of another program has read the outputs of the last.
  virtual std::unique_ptr<BoundProgram> bind(std::shared_ptr<const Compiled> compiled,
                                             const std::vector<void*>& variables, const Checks& checks) = 0;

  // For traces: the number of lanes for what one instruction does side by side, and the time of the clock of all records,
  // in nanoseconds. From any thread.
  virtual int lanes() const = 0;
  virtual std::int64_t now() const = 0;
};

using Devices = Indexed<ProcessorId, std::unique_ptr<Device>>;  // by processor; null for those of other processes

struct DeviceOptions {
  int workers = 0;  // threads of each processor, for engines that have them; 0: the engine chooses
  // Engine::describe: ahead of time for devices that need not be here, for engines that can; "": for those here.
  std::string topology = {};
};

// A program as an engine would bind it on one processor.
struct BindReport {
  std::int64_t scratch_bytes = 0;  // that the processor's workers take besides variables and arena
  std::vector<RunInstr> instructions = {};
  std::optional<CompilerMemory> compiler = {};  // of an engine that compiles whole programs
};

// What one processor reaches at best: the roofs of explain and of traces.
struct Roofs {
  double flops_per_second = 0;  // f32 multiply-adds, counted as two
  double bytes_per_second = 0;  // of its memory, read and written
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const std::string& name() const = 0;     // what a command's --device means
  virtual const Target& target() const = 0;        // for the passes and the memory plan
  virtual bool has(const Instr& instr) const = 0;  // a kernel for it
  // What binding the program would give, for a run with all processors on this machine. Nothing is allocated.
  virtual BindReport describe(const std::shared_ptr<const Compiled>& compiled, const DeviceOptions& options) const = 0;
  // Measures one processor while `processors` of them work at once on this machine, in about a tenth of a second.
  virtual Roofs measure(int processors, const DeviceOptions& options) const = 0;
  // The devices of this process, for a mesh whose processors the wire joins; the wire and the mesh outlive them.
  virtual Devices open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions& options) const = 0;
};

// UserError listing all instructions that the engine lacks.
void check_engine(const Program& program, const Engine& engine);

// The engines of this build, the default first. The one place that lists them.
const std::vector<const Engine*>& engines();
// Makes an engine of the caller's known by its name, for the rest of the program's life.
void add_engine(const Engine& engine);
// The names of these engines and of engines in libraries that are opened on demand, which may prove unusable.
std::vector<std::string> engine_names();
// UserError if there is none of that name, or if it cannot be used here. `plugin`: of the engine xla (xla/open.h);
// `nondeterministic`: the one of cuda whose sums may come in any order. `over_nccl`: the one of cuda whose processors have a
// card each, in a process each.
const Engine& engine_named(const std::string& name, const std::string& where, const std::string& plugin = {},
                           bool nondeterministic = false, bool over_nccl = false);

}  // namespace weft
