#include "base/cache_folder.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/philox.h"
#include "base/str.h"

namespace weft {

std::string cache_folder(const char* setting, const std::string& name) {
  if (const char* given = std::getenv(setting)) return given;
  if (const char* base = std::getenv("XDG_CACHE_HOME")) return str(base, "/weft/", name);
  if (const char* home = std::getenv("HOME")) return str(home, "/.cache/weft/", name);
  return "off";
}

std::string hash_text(const std::string& text, int salt) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash_key(text, salt)));
  return digits.data();
}

bool write_whole(const std::string& file, const std::string& bytes) {
  static std::atomic<int> count = 0;
  const std::string part = str(file, ".", getpid(), ".", ++count);
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), failure);
  std::ofstream out(part, std::ios::binary);
  out << bytes;
  out.close();
  if (out) std::filesystem::rename(part, file, failure);
  if (out && !failure) return true;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  return false;
}

}  // namespace weft
