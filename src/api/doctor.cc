// What of this machine Weft can use. Reads the system's own files; a missing one gives "unknown", never an error.
#include "weft/doctor.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "api/explain_parts.h"
#include "base/str.h"
#include "comm/wire.h"
#include "weft/error.h"

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

// The text after the colon of the first line of a file that begins with `key`.
std::string field(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "unknown" : line.substr(begin);
  }
  return "unknown";
}

std::string memory() {
  const MachineMemory machine = machine_memory();
  if (machine.total == 0) return "unknown";
  return str(bytes_text(machine.total), ", ", bytes_text(machine.available), " available");
}

// The first number of a text; 0 if it does not begin with one.
std::int64_t number_in(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What a file of control group 2 says; 0 if there is none, or no limit.
std::int64_t control_group(const char* name) {
  std::ifstream file(str("/sys/fs/cgroup/", name));
  std::string text;
  file >> text;
  return number_in(text);
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

}  // namespace

std::vector<std::pair<std::string, std::string>> doctor() {
  const Machine machine = measure_machine();
  const std::string mpi = comm::mpi_version();
  return {{"wires", mpi.empty() ? "threads" : str("threads, mpi (", mpi.substr(0, mpi.find_first_of(",\n")), ")")},
          {"runtimes", "cpu, reference"},
          {"not in this build", str(mpi.empty() ? "wires mpi, nccl" : "wire nccl", "; runtime cuda")},
          {"processor", field("/proc/cpuinfo", "model name")},
          {"cores", cores()},
          {"simd", simd()},
          {"memory", memory()},
          {"one thread", str(count_text(machine.flops_per_second), "flop/s in f32, ",
                             count_text(machine.bytes_per_second), "B/s copying")},
          {"compiler", str("g++ ", __VERSION__)}};
}

MachineMemory machine_memory() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  MachineMemory memory{.total = pages < 0 || size < 0 ? 0 : pages * size};
  memory.available = number_in(field("/proc/meminfo", "MemAvailable")) * 1024;
  if (const std::int64_t most = control_group("memory.max"); most > 0 && most < memory.total) {
    memory.total = most;
    memory.available = std::min(memory.available, std::max<std::int64_t>(0, most - control_group("memory.current")));
  }
  return memory;
}

std::string memory_text(const Explanation& step, int processors, const MachineMemory& machine) {
  const std::int64_t each = step.variable_bytes + step.arena_bytes, all = each * processors;
  const std::string one = str("variables ", bytes_text(step.variable_bytes), " + step ", bytes_text(step.arena_bytes));
  const std::string needs = str(processors == 1 ? one : str(processors, " x (", one, ")"), " = ", bytes_text(all));
  if (machine.total > 0 && all > machine.total)
    throw UserError(
        {.what = str("the run needs more memory than the ", bytes_text(machine.total), " of this machine: ", needs),
         .where = str("mesh ", step.mesh, ", layout \"", step.layout, "\""),
         .fix = "use a smaller model or batch, microbatches, recomputation (a memory limit), a storage "
                "layout, or processors on more machines"});
  const std::string line = str(needs, machine.total > 0 ? " of " + bytes_text(machine.total) : "");
  if (machine.available == 0 || all <= machine.available) return line;
  return str(line, "\nwarning: only ", bytes_text(machine.available),
             " are available now; the run may be slow or be killed");
}

}  // namespace weft
