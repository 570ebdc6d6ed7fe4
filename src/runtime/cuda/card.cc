#include "runtime/cuda/card.h"

#include <cuda.h>

#include <algorithm>
#include <vector>

#include "base/str.h"
#include "runtime/cuda/cudnn.h"
#include "weft/error.h"

namespace weft::cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw RunError(
      {.code = "cuda.call-failed",
       .what = str(call, " failed: ", cudaGetErrorString(status)),
       .where = "device cuda",
       .fix = status == cudaErrorMemoryAllocation
                  ? "use a smaller model or batch, microbatches or recomputation (--memory), or a card with "
                    "more memory; `nvidia-smi` lists what other processes hold"
                  : "see `weft doctor` and `nvidia-smi`; a failed kernel is a fault of Weft: please report it"});
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RunError({.code = "cuda.product-failed",
                  .what = str(call, " failed: ", cublasLtGetStatusString(status)),
                  .where = "device cuda",
                  .fix = "see `weft doctor` for the versions of the CUDA libraries"});
}

namespace {

constexpr int kLeastMajor = 8;  // sm_80: bf16

cudaDeviceProp properties_of(int number) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count <= number) {
    cudaGetLastError();
    throw RunError(
        {.code = "cuda.no-card",
         .what = status == cudaSuccess ? "this machine has no CUDA card"
                                       : str("CUDA finds no card: ", cudaGetErrorString(status)),
         .where = "device cuda",
         .fix = "run on a machine with an NVIDIA card and driver (`nvidia-smi` lists them), or use --device cpu"});
  }
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, number), "cudaGetDeviceProperties");
  if (found.major < kLeastMajor)
    throw RunError(
        {.code = "cuda.card-too-old",
         .what = str("the card ", found.name, " is sm_", found.major, found.minor, "; Weft needs sm_80 or newer"),
         .where = "device cuda",
         .fix = "use a card of the Ampere generation or later, or --device cpu"});
  return found;
}

}  // namespace

Card::Card(int number, bool deterministic) : number_(number), deterministic_(deterministic) {
  const cudaDeviceProp found = properties_of(number);
  architecture_ = str("sm_", found.major, found.minor);
  multiprocessors_ = found.multiProcessorCount;
  has_clusters_ = found.major >= 9;
  use();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaStreamCreateWithFlags(&second_stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cublasLtCreate(&products_), "cublasLtCreate");
  tuning_ = std::make_unique<Tuning>(str(found.name, " ", architecture_));
  check(cudaMalloc(&workspace_, kProductWorkspace), "cudaMalloc");
  check(cudaMalloc(&step_words_, kStepWords), "cudaMalloc");
}

Card::~Card() {
  cudaFree(step_words_);
  cudaFree(workspace_);
  if (products_) cublasLtDestroy(products_);
  if (second_stream_) cudaStreamDestroy(second_stream_);
  if (stream_) cudaStreamDestroy(stream_);
}

void Card::use() const { check(cudaSetDevice(number_), "cudaSetDevice"); }

std::string describe_card(int number) {
  const cudaDeviceProp found = properties_of(number);
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  const auto gib = static_cast<double>(found.totalGlobalMem) / static_cast<double>(std::size_t{1} << 30);
  const auto tenths = static_cast<std::int64_t>(gib * 10);
  const std::size_t products = cublasLtGetVersion();
  return str(found.name, " (sm_", found.major, found.minor, ", ", tenths / 10, ".", tenths % 10, " GiB), CUDA ",
             runtime / 1000, ".", runtime % 1000 / 10, ", cuBLASLt ", products / 10000, ".", products / 100 % 100, ", ",
             describe_cudnn());
}

// ---- memory that grows

namespace {

// Functions of the driver, which no library may link: a machine without a driver must be able to load this one.
struct Driver {
  CUresult (*reserve)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
  CUresult (*free)(CUdeviceptr, std::size_t);
  CUresult (*create)(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long);
  CUresult (*release)(CUmemGenericAllocationHandle);
  CUresult (*map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*unmap)(CUdeviceptr, std::size_t);
  CUresult (*set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
};

template <class F>
void find(F& function, const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
        "cudaGetDriverEntryPointByVersion");
  internal_check(found != nullptr, name);
  function = reinterpret_cast<F>(found);
}

const Driver& driver() {
  static const Driver kDriver = [] {
    Driver d{};
    find(d.reserve, "cuMemAddressReserve");
    find(d.free, "cuMemAddressFree");
    find(d.create, "cuMemCreate");
    find(d.release, "cuMemRelease");
    find(d.map, "cuMemMap");
    find(d.unmap, "cuMemUnmap");
    find(d.set_access, "cuMemSetAccess");
    return d;
  }();
  return kDriver;
}

void check_memory(CUresult status, std::size_t bytes) {
  if (status == CUDA_SUCCESS) return;
  throw RunError({.code = "cuda.no-memory",
                  .what = str("the card has no ", bytes, " bytes left for the arena (CUDA driver status ",
                              static_cast<int>(status), ")"),
                  .where = "device cuda",
                  .fix =
                      "use a smaller model or batch, microbatches or recomputation (--memory); `nvidia-smi` lists what "
                      "other processes hold"});
}

constexpr std::size_t kGrain = std::size_t{2} << 20;

}  // namespace

struct GrowingArena::Space {
  CUdeviceptr begin = 0;
  std::size_t reserved = 0, mapped = 0;
  struct Piece {
    CUmemGenericAllocationHandle handle;
    std::size_t offset, bytes;
  };
  std::vector<Piece> pieces;
};

GrowingArena::GrowingArena(const Card& card) : card_(card), space_(std::make_unique<Space>()) {
  std::size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  space_->reserved = (total + kGrain - 1) / kGrain * kGrain;
  check_memory(driver().reserve(&space_->begin, space_->reserved, 0, 0, 0), space_->reserved);
}

GrowingArena::~GrowingArena() {
  cudaStreamSynchronize(card_.stream());
  for (const Space::Piece& piece : space_->pieces) {
    driver().unmap(space_->begin + piece.offset, piece.bytes);
    driver().release(piece.handle);
  }
  if (space_->begin != 0) driver().free(space_->begin, space_->reserved);
}

std::byte* GrowingArena::data() const { return reinterpret_cast<std::byte*>(space_->begin); }

void GrowingArena::grow(std::size_t bytes) {
  bytes_ = std::max(bytes_, bytes);
  const std::size_t wanted = (bytes + kGrain - 1) / kGrain * kGrain;
  if (wanted <= space_->mapped) return;
  const std::size_t more = wanted - space_->mapped;
  if (wanted > space_->reserved) check_memory(CUDA_ERROR_OUT_OF_MEMORY, more);
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(cudaGetDevice(&kind.location.id), "cudaGetDevice");
  CUmemGenericAllocationHandle handle = 0;
  check_memory(driver().create(&handle, more, &kind, 0), more);
  space_->pieces.push_back({handle, space_->mapped, more});
  check_memory(driver().map(space_->begin + space_->mapped, more, 0, handle, 0), more);
  CUmemAccessDesc access{};
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_memory(driver().set_access(space_->begin + space_->mapped, more, &access, 1), more);
  check(cudaMemsetAsync(data() + space_->mapped, 0, more, card_.stream()), "cudaMemsetAsync");
  space_->mapped = wanted;
}

}  // namespace weft::cuda
