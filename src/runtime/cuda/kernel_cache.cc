#include "runtime/cuda/kernel_cache.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <set>

#include "base/cache_folder.h"
#include "base/str.h"
#include "runtime/cuda/nvrtc.h"

namespace weft::cuda {

std::string cache_file(const std::string& kind, const std::string& about) {
  const std::string folder = cache_folder("WEFT_CUDA_CACHE", "cuda");
  if (folder == "off") return "";
  return str(folder, "/", kind, "-", hash_text(about, 1), hash_text(about, 2));
}

void warn_of_cache(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::lock_guard lock(mutex);
  if (warned.insert(text).second) std::cerr << str("warning: ", text, "\n");
}

namespace {

std::string file_of(const std::string& source, const std::string& architecture) {
  return cache_file("kernels", str(architecture, " NVRTC ", nvrtc_version(), "\n", source));
}

// The binary's own hash comes first, so that a damaged file is seen before the card gets it.
constexpr std::size_t kHashDigits = 16;

}  // namespace

std::optional<std::string> find_binary(const std::string& source, const std::string& architecture) {
  const std::string file = file_of(source, architecture);
  if (file.empty()) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string bytes{std::istreambuf_iterator<char>(in.rdbuf()), {}};
  if (bytes.size() > kHashDigits) {
    std::string binary = bytes.substr(kHashDigits);
    if (hash_text(binary, 3) == bytes.substr(0, kHashDigits)) return binary;
  }
  warn_of_cache(str("the file of compiled kernels ", file, " is damaged; they are compiled again"));
  return std::nullopt;
}

void keep_binary(const std::string& source, const std::string& architecture, const std::string& binary) {
  const std::string file = file_of(source, architecture);
  if (!file.empty() && !write_whole(file, hash_text(binary, 3) + binary))
    warn_of_cache(str("compiled kernels cannot be kept in ", std::filesystem::path(file).parent_path().string(),
                      "; set WEFT_CUDA_CACHE to another folder, or to off"));
}

}  // namespace weft::cuda
