// Results over all processes of a session; the memory of this process.
#include <malloc.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "api/state.h"
#include "weft/detail/session_access.h"

namespace weft {

void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);  // other libraries return it by themselves
#endif
}

}  // namespace weft

namespace weft::detail {

namespace {

// The kernel's own high-water mark. getrusage would also count what was there before this program was started.
std::int64_t peak_bytes_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::int64_t kibibytes = 0;
    if (line.starts_with("VmHWM:") && std::istringstream(line.substr(6)) >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

const std::vector<ProcessorId>& processors(const Session& session) {
  return SessionState::of(session).processors->local();
}

bool any(const Session& session, bool here) {
  Processors& processors = *SessionState::of(session).processors;
  if (processors.all_are_local()) return here;
  processors.make_ready();
  const std::int64_t mine = here ? 1 : 0;
  const std::vector<std::int64_t> all =
      processors.gather_numbers(1, "of a question to all processes", [&](ProcessorId) { return &mine; });
  return std::accumulate(all.begin(), all.end(), std::int64_t{0}) > 0;
}

std::int64_t peak_resident_bytes(const Session& session) {
  Processors& processors = *SessionState::of(session).processors;
  processors.make_ready();
  const std::int64_t mine = peak_bytes_of_this_process(), none = 0;
  const std::vector<std::int64_t> all = processors.gather_numbers(
      1, "of the memory in use", [&](ProcessorId p) { return p == processors.first() ? &mine : &none; });
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

}  // namespace weft::detail
