// The table of the CUDA runtime.
#include <cstring>

#include "comm/nccl/calls.h"

namespace weft::comm {

namespace {

cudaError_t device_id(int device, DeviceId* id) {
  cudaDeviceProp found{};
  const cudaError_t status = cudaGetDeviceProperties(&found, device);
  static_assert(sizeof found.uuid.bytes == sizeof(DeviceId));
  if (status == cudaSuccess) std::memcpy(id->data(), found.uuid.bytes, sizeof(DeviceId));
  return status;
}

bool is_on_device(const void* data) {
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, data) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return found.type == cudaMemoryTypeDevice;
}

cudaError_t create_stream(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking); }
cudaError_t create_event(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); }

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t fill_zeros(void* data, std::size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(data, 0, bytes, stream);
}

}  // namespace

const CudaCalls& cuda_calls() {
  static const CudaCalls kCalls = {
      .device_count = [](int* count) { return cudaGetDeviceCount(count); },
      .device_id = device_id,
      .set_device = [](int device) { return cudaSetDevice(device); },
      .is_on_device = is_on_device,
      .allocate = [](void** data, std::size_t bytes) { return cudaMalloc(data, bytes); },
      .free = [](void* data) { return cudaFree(data); },
      .allocate_host = [](void** data, std::size_t bytes) { return cudaMallocHost(data, bytes); },
      .free_host = [](void* data) { return cudaFreeHost(data); },
      .create_stream = create_stream,
      .destroy_stream = [](cudaStream_t stream) { return cudaStreamDestroy(stream); },
      .create_event = create_event,
      .destroy_event = [](cudaEvent_t event) { return cudaEventDestroy(event); },
      .record_event = [](cudaEvent_t event, cudaStream_t stream) { return cudaEventRecord(event, stream); },
      .query_event = [](cudaEvent_t event) { return cudaEventQuery(event); },
      .copy = copy,
      .fill_zeros = fill_zeros,
      .error_text = [](cudaError_t status) { return cudaGetErrorString(status); },
  };
  return kCalls;
}

}  // namespace weft::comm
