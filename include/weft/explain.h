// explain: the cost of a program on each processor, counted on the compiled program. Nothing is run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/graph.h"
#include "weft/machine.h"
#include "weft/mesh.h"
#include "weft/session.h"

namespace weft {

// The peaks of one processor of a device while `processors` of them work at once, each with as many workers (0: the device
// chooses), measured in about a tenth of a second: Machine::uniform. weft calibrate measures more.
Machine measure_machine(const device::Choice& device = device::cpu(), int processors = 1, int workers = 1);

// All counts are for one step and, unless said otherwise, for one processor.
struct Explanation {
  // The collectives of one kind, group, dtype and phase together.
  struct Collective {
    std::string kind;               // "all_reduce", …
    std::vector<std::string> axes;  // of the group, major to minor
    DType dtype = DType::kF32;      // on the wire
    std::string phase;              // "forward", "recompute", "backward", "update"
    std::int64_t elements = 0;      // that enter the collectives
    std::int64_t bytes = 0;
    int count = 0;
    std::vector<std::string> cause;  // "file:line op"
  };
  struct Warning {
    std::string kind;  // "idle axis", "replicated work", "replicated tensors", "stored whole", "slow kernel"
    std::vector<std::string> axes;   // along which processors do, or hold, the same
    std::vector<std::string> cause;  // "file:line op", or the names of tensors
    double share = 0;  // of the step's flops; for tensors the bytes of their variables over the bytes of all variables
    std::string text;
  };
  // How a value is split over the mesh.
  struct Placed {
    std::string name;
    std::string use;  // "variable", "input", "output" or "value"
    DType dtype = DType::kF32;
    Shape whole, shard;
    std::vector<Axes> split;  // per dim
    Axes partial;             // over which a reduction is still pending
    std::int64_t bytes = 0;   // of the shard
  };
  // Instructions of one kind that the kernels of one engine serve.
  struct Kernel {
    std::string instruction;  // "contract", …
    std::string served_by;    // the device itself, or "reference" where its fast kernels do not fit
    int count = 0;
    double share = 0;  // of the step's work, as the machine's rates count it
  };
  struct Pass {
    std::string name;
    double seconds = 0;
  };
  // The account of a compiler that made the whole program: of device xla. Bytes of one device, as the compiler lays
  // tensors out.
  struct Compiler {
    std::string name;  // the plugin's file
    std::int64_t arguments = 0, outputs = 0;
    std::int64_t aliased = 0;  // of the outputs: they overwrite arguments
    std::int64_t temporaries = 0, code = 0;
    std::int64_t peak = 0;                // 0: not reported
    double seconds = 0, cpu_seconds = 0;  // of the compiler; 0: not known
    std::string topology;                 // that it was compiled for ahead of time; "": for the devices here
    std::string refusal;                  // why the program does not fit into the memory of the devices; "": it does
    std::string executable;               // the file that keeps what was compiled ahead of time; "": none
  };

  Mesh mesh;
  std::string layout;
  Store store;
  Machine machine;
  std::int64_t parameters = 0;  // elements of trainable variables, unsplit
  std::int64_t parameters_per_processor = 0;
  std::map<std::string, double> contract_flops;  // by phase
  double executed_flops = 0;                     // of all instructions
  double recomputed_flops = 0;                   // of the instructions that are repeated to save memory
  double model_flops = 0;                        // nominal: of the user's ops, on unsplit tensors
  std::vector<Collective> collectives;
  double work_ratio = 1;             // the work of all processors over the work of a single processor; docs/explain.md
  std::int64_t variable_bytes = 0;   // of all variables, optimizer state included
  std::int64_t arena_bytes = 0;      // of everything else but scratch, as planned: what a run allocates
  std::int64_t workspace_bytes = 0;  // the most of the arena that kernels have at once besides operands and results
  std::int64_t scratch_bytes = 0;    // of the threads of a processor, all together
  std::int64_t live_bytes = 0;       // the most of it that is in use at once: no plan needs less
  std::optional<Compiler>
      compiler;                 // without a topology its account stands in place of the plan: arena_bytes is from it
  std::vector<Kernel> kernels;  // by instruction; bodies of loops included
  std::vector<Warning> warnings;
  std::vector<Placed> tensors;
  std::function<std::string()> program;  // makes its text
  int instructions = 0;
  std::vector<Pass> passes;  // the compiler's, in order
  double compile_seconds = 0;

  // For people: the summary, pictures, the program. Pictures show the tensors of these names; by default the biggest
  // variables, inputs and outputs. UserError for an unknown name.
  std::string text(const std::vector<std::string>& show = {}) const;
  std::string summary() const;  // costs, collectives and warnings
  // One object; docs/explain.md lists the keys.
  std::string json() const;
};

// UserError, with the fix, if the layout cannot work.
Explanation explain(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                    const Machine& machine, const Store& store = {}, const device::Choice& device = device::cpu());

// A grid of the mesh with the indices that each processor holds. Long axes are shortened.
std::string picture(const Explanation::Placed& tensor, const Mesh& mesh);

}  // namespace weft
