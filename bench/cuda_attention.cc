// cuda_attention: causal attention of packed bf16 q, k and v by cuDNN's plans, forward and backward, deterministic and not:
// milliseconds a call of many back to back, TFLOP/s (causal count; backward 2.5 x forward), and workspace.
// weft_bench_cuda_attention [calls]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/cuda/card.h"
#include "runtime/cuda/cudnn.h"

using namespace weft;
using namespace weft::cuda;

namespace {

struct Sizes {
  std::int64_t batch, heads, length, depth;
};

class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

// bf16 numbers between -1 and 1.
void fill(std::byte* place, std::size_t bytes) {
  std::vector<std::uint16_t> numbers(std::size_t{1} << 20);
  std::uint32_t state = 1;
  for (std::uint16_t& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = static_cast<std::uint16_t>((state >> 16 & 0x807f) | (0x3d00 + (state >> 8 & 0x0180)));
  }
  for (std::size_t done = 0; done < bytes; done += numbers.size() * 2)
    check(cudaMemcpy(place + done, numbers.data(), std::min(bytes - done, numbers.size() * 2), cudaMemcpyHostToDevice),
          "cudaMemcpy");
}

double milliseconds(const SdpaPlan& plan, const std::unordered_map<SdpaRole, void*>& places, const Card& card,
                    int calls) {
  const Memory workspace(static_cast<std::size_t>(plan.workspace_bytes()) + 1);
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> times;
  for (int round = 0; round < 6; ++round) {
    check(cudaEventRecord(begin, card.stream()), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) plan.run(places, workspace.data(), card.stream());
    check(cudaEventRecord(end, card.stream()), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float all = 0;
    check(cudaEventElapsedTime(&all, begin, end), "cudaEventElapsedTime");
    if (round > 0) times.push_back(static_cast<double>(all) / calls);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void measure(const Sizes& s, const Card& card, int calls) {
  const std::int64_t row = s.heads * s.depth, all = s.batch * s.length * row;
  const auto bytes = static_cast<std::size_t>(all) * 2;
  const Memory qkv(3 * bytes), derivatives(3 * bytes), y(bytes), dy(bytes),
      sums(static_cast<std::size_t>(s.batch * s.heads * s.length) * 4), lengths(static_cast<std::size_t>(s.batch) * 4);
  fill(qkv.data(), 3 * bytes);
  fill(dy.data(), bytes);
  std::vector<std::int32_t> length(static_cast<std::size_t>(s.batch), static_cast<std::int32_t>(s.length));
  check(cudaMemcpy(lengths.data(), length.data(), length.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
  std::unordered_map<SdpaRole, void*> places = {{SdpaRole::kY, y.data()},
                                                {SdpaRole::kDy, dy.data()},
                                                {SdpaRole::kSums, sums.data()},
                                                {SdpaRole::kLengths, lengths.data()},
                                                {SdpaRole::kMemoryLengths, lengths.data()}};
  for (std::int64_t i = 0; i < 3; ++i) {
    places[static_cast<SdpaRole>(i)] = qkv.data() + i * row * 2;
    places[static_cast<SdpaRole>(static_cast<std::int64_t>(SdpaRole::kDq) + i)] = derivatives.data() + i * row * 2;
  }
  Sdpa sdpa{.batch = s.batch,
            .heads = s.heads,
            .memory_heads = s.heads,
            .length = s.length,
            .memory = s.length,
            .key = s.depth,
            .value = s.depth,
            .scale = 0.125,
            .causal = true};
  const Sdpa::Strides packed = {3 * s.length * row, s.depth, 3 * row}, dense = {s.length * row, s.depth, row};
  sdpa.strides = {packed, packed, packed, dense, dense, packed, packed, packed};
  const double flops = 2.0 * static_cast<double>(all) * static_cast<double>(s.length);
  const auto line = [&](const char* what, double factor) {
    std::printf("B%ld H%ld S%ld D%ld %-22s ", static_cast<long>(s.batch), static_cast<long>(s.heads),
                static_cast<long>(s.length), static_cast<long>(s.depth), what);
    const SdpaPlan* plan = sdpa_plan(sdpa);
    if (!plan) {
      std::printf("refused: %s\n", sdpa_refusal(sdpa).c_str());
      return;
    }
    const double ms = milliseconds(*plan, places, card, calls);
    std::printf("%.3f ms  %.0f TFLOP/s  workspace %.1f MiB", ms, factor * flops / ms * 1e-9,
                static_cast<double>(plan->workspace_bytes()) / (1 << 20));
    for (Sdpa other = sdpa; ++other.proposal < plan->proposals();)
      if (const SdpaPlan* rest = sdpa_plan(other))
        std::printf("%s %.3f", other.proposal == 1 ? "  other proposals" : ",",
                    milliseconds(*rest, places, card, calls));
    std::printf("\n");
    std::fflush(stdout);
  };
  line("forward", 1);
  sdpa.back = true;
  line("backward deterministic", 2.5);
  sdpa.deterministic = false;
  line("backward", 2.5);
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 20;
  const Card card;
  std::printf("%s\n", describe_card().c_str());
  for (const Sizes& shape : {Sizes{32, 12, 1024, 64}, Sizes{32, 8, 1024, 128}, Sizes{8, 32, 2048, 64},
                             Sizes{8, 16, 2048, 128}, Sizes{64, 32, 256, 128}, Sizes{64, 32, 256, 256},
                             Sizes{16, 256, 256, 256}, Sizes{4, 12, 1024, 64}, Sizes{16, 25, 1024, 64}})
    measure(shape, card, calls);
}
