#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "api/system_files.h"
#include "base/str.h"
#include "weft/detail/doctor.h"

namespace weft {

namespace {

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

}  // namespace

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

}  // namespace weft
