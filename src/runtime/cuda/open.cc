#include "runtime/cuda/open.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/str.h"
#include "runtime/cuda/entry.h"

namespace weft {

namespace {

constexpr const char* kName = "libweft_cuda.so";

// Where this code lies: the program, or libweft.so.
std::filesystem::path folder_of_this() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&cuda_library), &info) == 0 || !info.dli_fname) return {};
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::canonical(
      std::filesystem::path(info.dli_fname).has_parent_path() ? info.dli_fname : "/proc/self/exe", ignored);
  return file.parent_path();
}

// Beside the program, one folder up (a build folder), in lib beside bin, or where the loader looks.
void* opened(std::string& why) {
  const std::filesystem::path folder = folder_of_this();
  for (const std::filesystem::path& place :
       {folder / kName, folder / ".." / kName, folder / ".." / "lib" / kName, std::filesystem::path(kName)}) {
    if (place.has_parent_path() && !std::filesystem::exists(place)) continue;
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    why = dlerror();
  }
  return nullptr;
}

CudaLibrary find() {
  CudaLibrary result{.fix = "see `weft doctor`, or use --device cpu"};
  std::string why;
  void* library = opened(why);
  if (!library) {
    result.found = str("the CUDA engine cannot be opened: ", why);
    return result;
  }
  const auto entry = reinterpret_cast<CudaEntry>(dlsym(library, kCudaEntry));
  if (!entry) result.found = str(kName, " is not of this version of Weft");
  else entry(result);
  return result;
}

}  // namespace

const CudaLibrary& cuda_library() {
  static const CudaLibrary kLibrary = find();
  return kLibrary;
}

}  // namespace weft
