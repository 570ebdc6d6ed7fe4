#include "decode_roofs.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <new>
#include <thread>
#include <variant>

#include "product_roof.h"
#include "weft/detail/train_parts.h"
#include "weft/explain.h"

namespace weft::tools {

namespace {

using Vector [[gnu::vector_size(32)]] = std::int64_t;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The whole numbers among the model's settings.
std::map<std::string, std::int64_t> sizes_of(const train::Config& config) {
  const auto model = config.model->clone();
  std::map<std::string, std::int64_t> sizes;
  for (const train::Setting& setting : model->settings())
    if (const auto* const* number = std::get_if<std::int64_t*>(&setting.field)) sizes[setting.name] = **number;
  return sizes;
}

// Memory in large pages, where the system has them: a roof should not wait for translations of addresses.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes), begin_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
    madvise(begin_, bytes_, MADV_HUGEPAGE);
    std::fill_n(static_cast<char*>(begin_), bytes_, 1);
  }
  ~Pages() { munmap(begin_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  const Vector* begin() const { return static_cast<const Vector*>(begin_); }

 private:
  std::size_t bytes_;
  void* begin_;
};

thread_local volatile std::int64_t kept;  // so that no measured work is dropped

// Reads `streams` parts of the vectors side by side: processors prefetch each part.
template <std::size_t streams>
[[gnu::noinline]] std::int64_t read_all(const Vector* from, std::size_t count) {
  constexpr std::size_t kUnroll = 8;  // more loads than the latency of an addition
  const std::size_t each = count / streams / kUnroll * kUnroll;
  std::array<Vector, kUnroll> sums{};
  for (std::size_t i = 0; i < each; i += kUnroll)
    for (std::size_t s = 0; s < streams; ++s)
#pragma GCC unroll 8
      for (std::size_t u = 0; u < kUnroll; ++u) sums[u] += from[s * each + i + u];
  Vector all{};
  for (const Vector& sum : sums) all += sum;
  return all[0] + all[1] + all[2] + all[3];
}

std::size_t threads_of(const train::Config& config) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int usable = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const std::int64_t asked = config.mesh.workers * Mesh::parse(config.mesh.mesh).size();
  return static_cast<std::size_t>(std::clamp<std::int64_t>(asked > 0 ? asked : usable, 1, usable));
}

// The median of several rounds, as other users of the memory slow steps and rounds alike; of two ways to read, the faster.
double read_rate(std::size_t threads, std::size_t bytes) {
  constexpr int kRounds = 7;
  constexpr double kBytesOfRound = 1e9;
  const std::size_t count = std::max<std::size_t>(bytes / threads / sizeof(Vector), 1024);
  const Pages pages(threads * count * sizeof(Vector));
  const auto all = static_cast<double>(threads * count * sizeof(Vector));
  const auto times = static_cast<int>(std::clamp(kBytesOfRound / all, 1.0, 1000.0));
  double best = 0;
  for (const auto read : {&read_all<1>, &read_all<4>}) {
    const auto share = [&](std::size_t thread) {
      for (int i = 0; i < times; ++i) kept = read(pages.begin() + thread * count, count);
    };
    std::vector<double> rates;
    for (int round = 0; round < kRounds; ++round)
      rates.push_back(all * times / seconds_of([&] {
                        std::vector<std::thread> others;
                        for (std::size_t t = 1; t < threads; ++t) others.emplace_back(share, t);
                        share(0);
                        for (std::thread& other : others) other.join();
                      }));
    std::ranges::sort(rates);
    best = std::max(best, rates[kRounds / 2]);
  }
  return best;
}

}  // namespace

DecodeWork decode_work(const train::Config& config, const std::vector<std::int64_t>& reads) {
  const bool translates = config.model->decoding() == train::Decoding::kTranslation;
  const std::map<std::string, Shape> shapes = train::weight_shapes(config);
  DecodeWork work;
  std::int64_t prompt_weights = 0;
  for (const auto& [name, shape] : shapes) {
    const bool is_logits = name == "logits/kernel" || (name == "embedding" && !shapes.contains("logits/kernel"));
    if (!is_logits && !name.ends_with("/kernel")) continue;
    const bool is_for_inputs = name.starts_with("encoder/") || name.ends_with("/cross_attention/k/kernel") ||
                               name.ends_with("/cross_attention/v/kernel");
    if (!is_for_inputs) work.step_weights += shape.elements();
    if (!is_logits) prompt_weights += shape.elements();
  }
  const bool is_i8 = config.decode.weights == decode::Weights::kI8;
  const std::int64_t bytes = is_i8 ? 1 : config.decode.weights == decode::Weights::kBF16 ? 2 : 4;
  work.step_bytes = work.step_weights * bytes;
  if (translates) return work;
  const std::map<std::string, std::int64_t> sizes = sizes_of(config);
  const std::int64_t inner = sizes.at("heads") * sizes.at("d_kv") * sizes.at("layers");
  for (const std::int64_t read : reads)  // of attention: scores and sums, each 2 flops, over half of the pairs
    work.prompt_flops += 2.0 * static_cast<double>(prompt_weights) * static_cast<double>(read) +
                         2.0 * static_cast<double>(inner) * static_cast<double>(read * read);
  return work;
}

DecodeRoofs measure_decode_roofs(const train::Config& config, std::int64_t bytes) {
  return {
      .read_bytes_per_second = read_rate(threads_of(config), static_cast<std::size_t>(bytes)),
      .product_flops = product_rates({config.mesh.device, config.mesh.plugin}, static_cast<int>(config.mesh.workers))
                           .back(),  // the best of several
      .peak_flops = measure_machine({config.mesh.device, config.mesh.plugin}, 1, static_cast<int>(config.mesh.workers))
                        .peak()};
}

}  // namespace weft::tools
