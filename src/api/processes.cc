// Session::any and Session::peak_resident_bytes: results over all processes.
#include <fstream>
#include <numeric>
#include <sstream>

#include "api/state.h"

namespace weft {

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

bool Session::any(bool here) const {
  if (state_->processors->all_are_local()) return here;
  state_->processors->make_ready();
  const std::int64_t mine = here ? 1 : 0;
  const std::vector<std::int64_t> all =
      state_->processors->gather_numbers(1, "of a question, Session::any", [&](int) { return &mine; });
  return std::accumulate(all.begin(), all.end(), std::int64_t{0}) > 0;
}

std::int64_t Session::peak_resident_bytes() const {
  state_->processors->make_ready();
  const std::int64_t mine = peak_bytes_of_this_process(), none = 0;
  const std::vector<std::int64_t> all =
      state_->processors->gather_numbers(1, "of the memory in use, Session::peak_resident_bytes",
                                         [&](int p) { return p == state_->processors->first() ? &mine : &none; });
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

}  // namespace weft
