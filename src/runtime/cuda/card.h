// Card: one GPU of this process: its stream, its libraries, and the memory that they work in.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "program/memory_plan.h"
#include "runtime/cuda/tuning.h"

namespace weft::cuda {

// RunError with the name of the call, unless it succeeded.
void check(cudaError_t status, const char* call);
void check(cublasStatus_t status, const char* call);

// What lies on the card besides variables and arena: the workspace of products, and the words of a step.
constexpr std::size_t kProductWorkspace = std::size_t{64} << 20, kStepWords = 256;
struct StepWords {
  std::uint64_t seed = 0;
  std::uint32_t step = 0, unused = 0;
};

constexpr std::int64_t kCardAlignment = 256;  // of cudaMalloc, and what cuBLASLt likes best
inline std::int64_t card_aligned(std::int64_t bytes) { return aligned_bytes(bytes, kCardAlignment); }

class Card {
 public:
  // RunError if there is none, or if it is too old. The calling thread uses it from now on.
  explicit Card(int number = 0, bool deterministic = true);
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  ~Card();

  void use() const;                                                  // by the calling thread
  const std::string& architecture() const { return architecture_; }  // "sm_90"
  // Whether blocks form clusters, and kernels may be started before those before them have ended.
  bool has_clusters() const { return has_clusters_; }
  int multiprocessors() const { return multiprocessors_; }
  bool deterministic() const { return deterministic_; }  // every sum has one order
  cudaStream_t stream() const { return stream_; }
  cudaStream_t second_stream() const { return second_stream_; }  // of captured steps, for work beside the first
  cublasLtHandle_t products() const { return products_; }
  void* product_workspace() const { return workspace_; }
  Tuning& tuning() const { return *tuning_; }
  // Seed and number of the present step, on the card: kernels read them, so that a captured step serves all steps.
  void* step_words() const { return step_words_; }

 private:
  const int number_;
  const bool deterministic_;
  std::string architecture_;
  int multiprocessors_ = 1;
  bool has_clusters_ = false;
  cudaStream_t stream_ = nullptr, second_stream_ = nullptr;
  cublasLtHandle_t products_ = nullptr;
  void* workspace_ = nullptr;
  std::unique_ptr<Tuning> tuning_;
  void* step_words_ = nullptr;
};

// "NVIDIA H200 (sm_90, 139.8 GiB), CUDA 13.0, cuBLASLt 13.1"; throws what a Card would.
std::string describe_card(int number = 0);

// Address space for all memory of a card, of which the first bytes are there: it grows where it lies.
class GrowingArena {
 public:
  explicit GrowingArena(const Card& card);
  ~GrowingArena();
  GrowingArena(const GrowingArena&) = delete;
  GrowingArena& operator=(const GrowingArena&) = delete;

  std::byte* data() const;
  std::size_t bytes() const { return bytes_; }  // that were asked for
  void grow(std::size_t bytes);                 // the new ones are zero

 private:
  struct Space;
  const Card& card_;
  std::unique_ptr<Space> space_;
  std::size_t bytes_ = 0;
};

}  // namespace weft::cuda
