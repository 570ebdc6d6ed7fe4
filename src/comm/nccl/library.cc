#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/str.h"
#include "comm/nccl/calls.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr const char* kLibrary = "libnccl.so.2";

std::string version_text(int version) {
  return version < 10000 ? str(version / 1000, ".", version / 100 % 10, ".", version % 100)
                         : str(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

[[noreturn]] void refuse(const std::string& what) {
  throw UserError({.code = "nccl.no-library",
                   .what = str("NCCL cannot be used: ", what),
                   .where = "opening NCCL's library",
                   .fix = str("install NCCL ", version_text(kLeastNccl),
                              " or newer (the package libnccl2), or name its file in WEFT_NCCL_LIBRARY")});
}

template <class F>
void find(void* library, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) refuse(str("the library has no function ", name));
}

NcclCalls opened(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) refuse(dlerror());
  NcclCalls calls{};
  find(library, calls.get_version, "ncclGetVersion");
  int version = 0;
  calls.get_version(&version);
  if (version < kLeastNccl) refuse(str(name, " is NCCL ", version_text(version), ", which is too old"));
  find(library, calls.get_unique_id, "ncclGetUniqueId");
  find(library, calls.comm_init_rank, "ncclCommInitRankConfig");
  find(library, calls.comm_async_error, "ncclCommGetAsyncError");
  find(library, calls.comm_finalize, "ncclCommFinalize");
  find(library, calls.comm_destroy, "ncclCommDestroy");
  find(library, calls.comm_abort, "ncclCommAbort");
  find(library, calls.error_text, "ncclGetErrorString");
  find(library, calls.last_error, "ncclGetLastError");
  find(library, calls.all_reduce, "ncclAllReduce");
  find(library, calls.reduce_scatter, "ncclReduceScatter");
  find(library, calls.all_gather, "ncclAllGather");
  find(library, calls.send, "ncclSend");
  find(library, calls.receive, "ncclRecv");
  find(library, calls.group_start, "ncclGroupStart");
  find(library, calls.group_end, "ncclGroupEnd");
  return calls;
}

}  // namespace

const NcclCalls& open_nccl(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, NcclCalls> libraries;
  const char* named = std::getenv("WEFT_NCCL_LIBRARY");
  const std::string name = !library.empty() ? library : named && *named ? named : kLibrary;
  const std::lock_guard lock(mutex);
  const auto found = libraries.find(name);
  return found != libraries.end() ? found->second : libraries.emplace(name, opened(name)).first->second;
}

std::string describe_nccl() {
  try {
    int version = 0;
    open_nccl().get_version(&version);
    return str("NCCL ", version_text(version));
  } catch (const UserError& error) {
    return str("no NCCL (", error.text().what, ")");
  }
}

}  // namespace weft::comm
