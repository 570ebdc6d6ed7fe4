// The roofs of a host: what its cores compute and move at best.
#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "runtime/host/host_clock.h"
#include "runtime/host/host_engine.h"

namespace weft {

namespace {

using Vector [[gnu::vector_size(32)]] = float;      // eight floats: one register of the baseline machine
using WideVector [[gnu::vector_size(64)]] = float;  // one register of AVX-512

// Multiply-adds in registers only. More sums than a unit is deep, so that they do not wait for each other.
template <class V>
[[gnu::always_inline, gnu::optimize("fp-contract=fast")]] inline float add_products(int rounds, float factor) {
  std::array<V, 12> sums{};
  for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += static_cast<float>(j);  // unlike, or they would become one
  const V by = V{} + factor, plus = V{} + 1.0f;
  for (int i = 0; i < rounds; ++i)
#pragma GCC unroll 12  // or the sums would go through memory
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = sums[j] * by + plus;
  V all{};
  for (const V& sum : sums) all += sum;
  return all[0] + all[7];
}

[[gnu::noinline, gnu::optimize("fp-contract=fast")]] float multiply_adds(int rounds, float factor) {
  return add_products<Vector>(rounds, factor);
}

#if defined(__x86_64__)
[[gnu::noinline, gnu::target("avx512f"), gnu::optimize("fp-contract=fast")]] float wide_multiply_adds(int rounds,
                                                                                                      float factor) {
  return add_products<WideVector>(rounds, factor);
}

bool has_wide_vectors() { return __builtin_cpu_supports("avx512f"); }
#else
float wide_multiply_adds(int, float) { return 0; }

bool has_wide_vectors() { return false; }
#endif

thread_local volatile float kept;  // so that no measured work is dropped

// The best of several, since whatever else runs here only slows it.
template <class Operation>
double best_seconds(int times, const Operation& operation) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const std::int64_t begin = host_now();
    operation();
    best = std::min(best, static_cast<double>(host_now() - begin) * 1e-9);
  }
  return best;
}

Roofs measure_thread() {
  constexpr int kRounds = 200'000;
  constexpr double kMultiplyAdds = 12.0 * kRounds;  // of vectors
  double flop_rate = 2 * 8 * kMultiplyAdds / best_seconds(5, [] { kept = multiply_adds(kRounds, 0.5f); });
  // Some CPUs compute vectors of 64 bytes in halves, and gain nothing.
  if (has_wide_vectors())
    flop_rate =
        std::max(flop_rate, 2 * 16 * kMultiplyAdds / best_seconds(5, [] { kept = wide_multiply_adds(kRounds, 0.5f); }));
  const std::size_t count = std::size_t{4} << 20;  // 16 MiB each: beyond the caches of one core
  std::vector<float> from(count, 1.0f), to(count, 0.0f);
  const double copy_seconds = best_seconds(5, [&] {
    std::copy(from.begin(), from.end(), to.begin());
    kept = to[count / 2];
  });
  return {.flops_per_second = flop_rate,
          .bytes_per_second = 2.0 * static_cast<double>(count * sizeof(float)) / copy_seconds};
}

}  // namespace

// All computing threads measure at once; the roof of a processor is its share of the result.
Roofs HostEngine::measure(int processors, const DeviceOptions& options) const {
  const int cores = usable_cores();
  const int workers = !shares_work_ ? 1 : options.workers > 0 ? options.workers : cores;
  std::vector<Roofs> each(static_cast<std::size_t>(std::clamp(processors * workers, 1, cores)));
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < each.size(); ++i) others.emplace_back([&, i] { each[i] = measure_thread(); });
  each[0] = measure_thread();
  for (std::thread& thread : others) thread.join();
  Roofs mean;
  for (const Roofs& one : each) {
    mean.flops_per_second += one.flops_per_second / processors;
    mean.bytes_per_second += one.bytes_per_second / processors;
  }
  return mean;
}

}  // namespace weft
