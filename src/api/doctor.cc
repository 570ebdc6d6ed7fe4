// Lists what Weft can use on this machine. Reads files of the system; a missing file gives "unknown", never an error.
#include "weft/detail/doctor.h"

#include <sched.h>
#include <unistd.h>

#include "api/explain_parts.h"
#include "api/system_files.h"
#include "base/str.h"
#include "comm/wire.h"
#include "runtime/cuda/open.h"
#include "runtime/xla/open.h"
#include "weft/error.h"
#include "weft/session.h"

namespace weft {

namespace {

// "0-3,8": the cores that this process may run on.
std::string mask_text(const cpu_set_t& set) {
  std::vector<std::string> runs;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    const int first = core;
    while (core + 1 < CPU_SETSIZE && CPU_ISSET(core + 1, &set)) ++core;
    runs.push_back(first == core ? str(first) : str(first, "-", core));
  }
  return join(runs, ",");
}

std::string cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return str(online, " online, mask unknown");
  return str(online, " online, ", CPU_COUNT(&set), " in the affinity mask (", mask_text(set), ")");
}

std::string memory() {
  const MachineMemory machine = machine_memory();
  if (machine.total == 0) return "unknown";
  return str(bytes_text(machine.total), ", ", bytes_text(machine.available), " available");
}

std::string simd() {
#if defined(__x86_64__)
  std::vector<std::string> found;
  const auto add = [&](bool has, const char* name) {
    if (has) found.emplace_back(name);
  };
  add(__builtin_cpu_supports("sse4.2"), "sse4.2");
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  add(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
  return join(found, " ") + " (built for x86-64-v3)";
#else
  return "the compiler's baseline";
#endif
}

std::string nccl() {
  const CudaLibrary& cuda = cuda_library();
  if (!cuda.make_nccl_wire) return str("not used: ", cuda.found);
  return cuda.has_card ? cuda.nccl : str(cuda.nccl, "; not used: ", cuda.found);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> doctor(const std::string& plugin) {
  const Machine machine = measure_machine();
  const std::string mpi = comm::mpi_version();
  std::vector<std::pair<std::string, std::string>> found = {
      {"wires", mpi.empty() ? "threads" : str("threads, mpi (", mpi.substr(0, mpi.find_first_of(",\n")), ")")},
      {"devices", join(device::names(), ", ")},
      {"device cuda", cuda_library().has_card ? cuda_library().found : str("not used: ", cuda_library().found)},
      {"wire nccl", nccl()},
      {"processor", field("/proc/cpuinfo", "model name")},
      {"cores", cores()},
      {"simd", simd()},
      {"memory", memory()},
      {"one thread",
       str(count_text(machine.peak()), "flop/s in f32, ", count_text(machine.bytes_per_second), "B/s copying")},
      {"compiler", str("g++ ", __VERSION__)}};
  const std::vector<std::pair<std::string, std::string>> xla = describe_xla(plugin);
  found.insert(found.begin() + 3, xla.begin(), xla.end());
  if (mpi.empty()) found.emplace_back("not in this build", "wire mpi");
  return found;
}

std::string memory_text(const Explanation& step, int processors, const MachineMemory& machine) {
  const std::int64_t each = step.variable_bytes + step.arena_bytes + step.scratch_bytes, all = each * processors;
  std::string one = str("variables ", bytes_text(step.variable_bytes), " + arena ", bytes_text(step.arena_bytes));
  if (step.workspace_bytes > 0) one += str(" (workspaces ", bytes_text(step.workspace_bytes), " of it)");
  if (step.scratch_bytes > 0) one += str(" + scratch ", bytes_text(step.scratch_bytes));
  const std::string needs = str(processors == 1 ? one : str(processors, " x (", one, ")"), " = ", bytes_text(all));
  if (machine.total > 0 && all > machine.total)
    throw UserError(
        {.code = "memory.machine-too-small",
         .what = str("the run needs more memory than the ", bytes_text(machine.total), " of this machine: ", needs),
         .where = str("mesh ", step.mesh, ", layout \"", step.layout, "\""),
         .fix = "use a smaller model or batch, microbatches, recomputation (a memory limit), a storage "
                "layout, or processors on more machines"});
  const std::string line = str(needs, machine.total > 0 ? " of " + bytes_text(machine.total) : "");
  if (machine.available == 0 || all <= machine.available) return line;
  return str(line, "\nwarning: only ", bytes_text(machine.available),
             " are available now; the run may be slow or be killed");
}

}  // namespace weft
