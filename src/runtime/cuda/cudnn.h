// Attention by cuDNN. Its library is opened when it is first asked for: a machine without it, and a build without its
// headers, have the engine's own kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "weft/dtype.h"

namespace weft::cuda {

// The operands and results of attention. kSums: the logsumexp of every query's scores.
enum class SdpaRole : std::uint8_t { kQ, kK, kV, kY, kDy, kDq, kDk, kDv, kSums, kLengths, kMemoryLengths };
constexpr std::size_t kSdpaStrided = 8;  // roles up to kDv have strides; the sums lie [batch, heads, length]

// What a plan is for. Query head i reads memory head i / (heads / memory_heads).
struct Sdpa {
  using Strides = std::array<std::int64_t, 3>;  // in elements, along batch, heads and positions; depth has stride 1
  DType dtype = DType::kBF16;
  std::int64_t batch = 1, heads = 1, memory_heads = 1, length = 1, memory = 1, key = 8, value = 8;
  double scale = 1;
  bool causal = false, back = false;
  bool deterministic = true;  // of `back`: the same bits in every run
  int proposal = 0;           // of those that cuDNN has for it, the one that it holds for the fastest first
  std::array<Strides, kSdpaStrided> strides = {};
  auto operator<=>(const Sdpa&) const = default;
};

class SdpaPlan {
 public:
  virtual ~SdpaPlan() = default;
  virtual std::int64_t workspace_bytes() const = 0;
  virtual int proposals() const = 0;
  // Whether it takes kLengths and kMemoryLengths: two i32 per batch, the length and the memory.
  virtual bool takes_lengths() const = 0;
  virtual void run(const std::unordered_map<SdpaRole, void*>& places, void* workspace, cudaStream_t stream) const = 0;
};

// The plan on the present card, kept for the life of the process. Null where cuDNN refuses it, or is not here.
const SdpaPlan* sdpa_plan(const Sdpa& sdpa);
// Why it is null.
std::string sdpa_refusal(const Sdpa& sdpa);

// "cuDNN 9.14.0", or "no cuDNN (…)".
std::string describe_cudnn();
bool has_cudnn();

}  // namespace weft::cuda
