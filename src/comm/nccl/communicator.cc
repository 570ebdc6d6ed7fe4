#include "comm/nccl/communicator.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::chrono::seconds kFinalize{5};  // for peers to take what was sent, at the end
constexpr std::chrono::milliseconds kLookAgainAfter{1};

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return ncclFloat32;
    case DType::kBF16: return ncclBfloat16;
    case DType::kF16: return ncclFloat16;
    case DType::kF64: return ncclFloat64;
    case DType::kI32: return ncclInt32;
    case DType::kI64: return ncclInt64;
    case DType::kU32: return ncclUint32;
    case DType::kU8:
    case DType::kBool: return ncclUint8;
    case DType::kI8: return ncclInt8;
  }
  throw InternalError("a dtype that NCCL does not have");
}

// Bools are bytes 0 and 1: "any" is their largest, "all" their smallest.
ncclRedOp_t reduction_of(DType dtype, Reduce reduce) {
  if (dtype == DType::kBool) return reduce == Reduce::kSum || reduce == Reduce::kMax ? ncclMax : ncclMin;
  switch (reduce) {
    case Reduce::kSum: return ncclSum;
    case Reduce::kProduct: return ncclProd;
    case Reduce::kMax: return ncclMax;
    case Reduce::kMin: return ncclMin;
  }
  throw InternalError("a reduction that NCCL does not have");
}

}  // namespace

Communicator::Communicator(const NcclCalls& nccl, const CudaCalls& cuda, int device, int size, int rank)
    : nccl_(nccl), cuda_(cuda), device_(device), size_(size), rank_(rank) {
  if (size == 1) has_begun_ = true;
}

Communicator::~Communicator() {
  if (!comm_) return;
  cuda_.set_device(device_);
  ncclResult_t state = ncclInProgress;
  if (nccl_.comm_async_error(comm_, &state) == ncclSuccess && state == ncclSuccess) {
    nccl_.comm_finalize(comm_);
    const auto end = std::chrono::steady_clock::now() + kFinalize;
    for (state = ncclInProgress; state == ncclInProgress && std::chrono::steady_clock::now() < end;) {
      if (nccl_.comm_async_error(comm_, &state) != ncclSuccess) state = ncclInternalError;
      if (state == ncclInProgress) std::this_thread::sleep_for(kLookAgainAfter);
    }
  }
  if (state == ncclSuccess) nccl_.comm_destroy(comm_);
  else nccl_.comm_abort(comm_);
}

ncclUniqueId Communicator::make_id(const NcclCalls& nccl) {
  ncclUniqueId id{};
  if (const ncclResult_t result = nccl.get_unique_id(&id); result != ncclSuccess)
    throw RunError({.code = "nccl.no-id",
                    .what = str("ncclGetUniqueId failed: ", nccl.error_text(result), ": ", nccl.last_error(nullptr)),
                    .where = "the nccl wire",
                    .fix = "name the network interface in NCCL_SOCKET_IFNAME; NCCL_DEBUG=WARN says more"});
  return id;
}

bool Communicator::note(ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return true;
  if (failure_.empty()) failure_ = str(nccl_.error_text(result), ": ", nccl_.last_error(comm_));
  return false;
}

void Communicator::begin(const ncclUniqueId& id) {
  const std::lock_guard lock(mutex_);
  if (has_begun_ || is_gone_) return;
  has_begun_ = true;
  cuda_.set_device(device_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  note(nccl_.comm_init_rank(&comm_, size_, id, rank_, &config));
}

Communicator::State Communicator::state() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty() || is_gone_) return State::kFailed;
  if (size_ == 1) return State::kReady;
  if (!comm_) return State::kBusy;
  ncclResult_t result = ncclInProgress;
  if (!note(nccl_.comm_async_error(comm_, &result)) || !note(result)) return State::kFailed;
  return result == ncclInProgress ? State::kBusy : State::kReady;
}

bool Communicator::launch(const Operation& operation, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return false;
  const std::size_t bytes = operation.in_count * size_of(operation.dtype);
  if (size_ == 1) return launch_alone(operation, stream);
  const void* in = operation.in;
  if (needs_scratch(operation)) {
    if (cuda_.copy(operation.scratch, in, bytes, stream) != cudaSuccess) return false;
    in = operation.scratch;
  }
  if (operation.what == Collective::kPermute && operation.source < 0 && bytes > 0 &&
      cuda_.fill_zeros(operation.out, bytes, stream) != cudaSuccess)
    return false;
  return note(issue(operation, in, stream));
}

// A group of one: copies.
bool Communicator::launch_alone(const Operation& operation, cudaStream_t stream) {
  const std::size_t bytes = operation.in_count * size_of(operation.dtype);
  if (bytes == 0) return true;
  if (operation.what == Collective::kPermute && operation.source < 0)
    return cuda_.fill_zeros(operation.out, bytes, stream) == cudaSuccess;
  return operation.in == operation.out || cuda_.copy(operation.out, operation.in, bytes, stream) == cudaSuccess;
}

ncclResult_t Communicator::issue(const Operation& o, const void* in, cudaStream_t stream) {
  const ncclDataType_t type = type_of(o.dtype);
  switch (o.what) {
    case Collective::kAllReduce:
      return nccl_.all_reduce(in, o.out, o.in_count, type, reduction_of(o.dtype, o.reduce), comm_, stream);
    case Collective::kReduceScatter:
      return nccl_.reduce_scatter(in, o.out, o.out_count, type, reduction_of(o.dtype, o.reduce), comm_, stream);
    case Collective::kAllGather: return nccl_.all_gather(in, o.out, o.in_count, type, comm_, stream);
    case Collective::kBarrier: return ncclSuccess;  // the caller's exchange of calls is one
    case Collective::kAllToAll:
    case Collective::kPermute: break;
  }
  if (o.in_count == 0) return ncclSuccess;
  const bool is_permute = o.what == Collective::kPermute;
  const std::size_t count = is_permute ? o.in_count : o.in_count / at(size_), bytes = count * size_of(o.dtype);
  ncclResult_t result = nccl_.group_start();
  for (int peer = 0; peer < size_ && note(result); ++peer) {
    const std::size_t offset = is_permute ? 0 : at(peer) * bytes;
    if (!is_permute || peer == o.target)
      result = nccl_.send(static_cast<const std::byte*>(in) + offset, count, type, peer, comm_, stream);
    if (note(result) && (!is_permute || peer == o.source))
      result = nccl_.receive(static_cast<std::byte*>(o.out) + offset, count, type, peer, comm_, stream);
  }
  const ncclResult_t ended = nccl_.group_end();
  return result == ncclSuccess || result == ncclInProgress ? ended : result;
}

void Communicator::abort() {
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
    comm = std::exchange(comm_, nullptr);
  }
  if (!comm) return;
  cuda_.set_device(device_);
  nccl_.comm_abort(comm);
}

}  // namespace weft::comm
