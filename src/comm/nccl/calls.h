// The functions of NCCL and of CUDA that the nccl wire calls, as two tables. NCCL's library is opened when a wire is made,
// so nothing links it. Tests fill both tables from a library that stands for NCCL.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace weft::comm {

struct NcclCalls {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank;
  decltype(&ncclCommGetAsyncError) comm_async_error;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGetErrorString) error_text;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
};

// UserError if the library cannot be opened or is older than kLeastNccl. The library stays open. "": the library that
// WEFT_NCCL_LIBRARY names, or libnccl.so.2 where the loader looks.
constexpr int kLeastNccl = NCCL_VERSION(2, 19, 0);
const NcclCalls& open_nccl(const std::string& library = "");

// "NCCL 2.28.9", or why there is none.
std::string describe_nccl();

using DeviceId = std::array<char, 16>;

struct CudaCalls {
  cudaError_t (*device_count)(int* count);
  cudaError_t (*device_id)(int device, DeviceId* id);
  cudaError_t (*set_device)(int device);
  bool (*is_on_device)(const void* data);  // the device reads and writes it in place
  cudaError_t (*allocate)(void** data, std::size_t bytes);
  cudaError_t (*free)(void* data);
  cudaError_t (*allocate_host)(void** data, std::size_t bytes);  // pinned
  cudaError_t (*free_host)(void* data);
  cudaError_t (*create_stream)(cudaStream_t* stream);
  cudaError_t (*destroy_stream)(cudaStream_t stream);
  cudaError_t (*create_event)(cudaEvent_t* event);
  cudaError_t (*destroy_event)(cudaEvent_t event);
  cudaError_t (*record_event)(cudaEvent_t event, cudaStream_t stream);
  cudaError_t (*query_event)(cudaEvent_t event);
  cudaError_t (*copy)(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*fill_zeros)(void* data, std::size_t bytes, cudaStream_t stream);
  const char* (*error_text)(cudaError_t status);
};

const CudaCalls& cuda_calls();

}  // namespace weft::comm
