// Numbers of every processor, brought together; and the memory of all processes.
#include <cstring>
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

std::vector<std::int64_t> SessionState::gather_numbers(
    std::int64_t count, const std::string& what, const std::function<const std::int64_t*(int processor)>& numbers) {
  Axes all(mesh.axes().size());
  std::iota(all.begin(), all.end(), 0);
  const Value value{.name = "numbers",
                    .dtype = DType::kI64,
                    .shape = {{"processor", 1}, {"number", count}},
                    .sharding = {.dims = {all, {}}, .partial = {}}};
  const Array whole = gathered(value, what, numbers);
  std::vector<std::int64_t> result(static_cast<std::size_t>(whole.elements()));
  std::memcpy(result.data(), whole.bytes(), result.size() * sizeof(std::int64_t));
  return result;
}

bool Session::any(bool here) const {
  if (state_->gatherers.empty()) return here;
  state_->make_ready();
  const std::int64_t mine = here ? 1 : 0;
  const std::vector<std::int64_t> all =
      state_->gather_numbers(1, "of a question, Session::any", [&](int) { return &mine; });
  return std::accumulate(all.begin(), all.end(), std::int64_t{0}) > 0;
}

std::int64_t Session::peak_resident_bytes() const {
  state_->make_ready();
  const std::int64_t mine = peak_bytes_of_this_process(), none = 0;
  const std::vector<std::int64_t> all =
      state_->gather_numbers(1, "of the memory in use, Session::peak_resident_bytes",
                             [&](int p) { return p == state_->here[0] ? &mine : &none; });
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

}  // namespace weft
