#include "lm_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <thread>

namespace weft::tools {

namespace {

constexpr std::uint64_t kSeed = 1234;
constexpr int kBatchStream = 1000000;

constexpr std::uint64_t splitmix64(std::uint64_t x) {
  std::uint64_t z = x + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Element i of the stream is splitmix64(this + i).
std::uint64_t first_of(int stream) { return splitmix64((kSeed << 20) + static_cast<std::uint64_t>(stream)); }

// Elements begin … begin + count of a stream of weights: uniform, with this deviation. A plain loop, because it must be
// fast.
void draw(std::uint64_t base, std::int64_t begin, std::int64_t count, float width, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = splitmix64(base + static_cast<std::uint64_t>(begin + i));
    const float unit = static_cast<float>(static_cast<std::int32_t>(bits >> 40)) * 0x1p-24f;
    to[i] = (unit - 0.5f) * width;
  }
}

// On several threads, because the largest models have billions of weights.
Array values_of(const LmWeight& weight) {
  constexpr std::int64_t kLeast = 1 << 20, kMost = 16;  // elements of a thread; threads
  Array values(weight.shape, DType::kF32);
  auto* to = reinterpret_cast<float*>(values.bytes());
  const auto width = static_cast<float>(2 * std::numbers::sqrt3 * weight.deviation);
  const std::int64_t rows = weight.shape[0].size, run = values.elements() / rows / weight.streams;
  const auto draw_rows = [&](std::int64_t begin, std::int64_t end) {
    for (int s = 0; s < weight.streams; ++s)
      for (std::int64_t row = begin; row < end; ++row)
        draw(first_of(weight.stream + s), row * run, run, width, to + (row * weight.streams + s) * run);
  };
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t parts = std::clamp<std::int64_t>(values.elements() / kLeast, 1, std::min({cores, kMost, rows}));
  std::vector<std::thread> others;
  for (std::int64_t part = 1; part < parts; ++part)
    others.emplace_back(draw_rows, rows * part / parts, rows * (part + 1) / parts);
  draw_rows(0, rows / parts);
  for (std::thread& other : others) other.join();
  return values;
}

// Lists the weights in the order of their streams.
class WeightLister {
 public:
  WeightLister(const models::Sizes& sizes, const models::LanguageModelDesign& design)
      : sizes_(sizes),
        design_(design),
        model_(of("d_model")),
        heads_(of("heads")),
        d_kv_(of("d_kv")),
        d_ff_(of("d_ff")) {}

  std::vector<LmWeight> all() {
    add("embedding", {of("vocab"), model_}, deviation({model_}));
    add("positions", {of("length"), model_}, deviation({model_}));
    for (std::int64_t i = 0; i < sizes_.at("layers"); ++i) {
      const std::string layer = "layer_" + std::to_string(i) + "/";
      norm(layer + "attention_norm");
      attention(layer + "attention/");
      norm(layer + "feed_forward_norm");
      add(layer + "feed_forward/in/kernel", {model_, d_ff_}, deviation({model_}));
      bias(layer + "feed_forward/in/bias", {d_ff_});
      add(layer + "feed_forward/out/kernel", {d_ff_, model_}, residual_deviation({d_ff_}));
      bias(layer + "feed_forward/out/bias", {model_});
    }
    norm("final_norm");
    if (!design_.tied) add("logits/kernel", {model_, of("vocab")}, deviation({model_}));
    return weights_;
  }

 private:
  Dim of(const std::string& name) const { return {name, sizes_.at(name)}; }

  double deviation(const Shape& in) const {
    return design_.deviation > 0 ? design_.deviation : 1 / std::sqrt(static_cast<double>(in.elements()));
  }
  double residual_deviation(const Shape& in) const {
    return design_.residual_deviation > 0 ? design_.residual_deviation : deviation(in);
  }

  void add(const std::string& variable, const Shape& shape, double deviation, int streams = 1) {
    weights_.push_back({variable, shape, deviation, next_, streams});
    next_ += streams;
  }

  void norm(const std::string& name) {
    add(name + "/scale", {model_}, 0);
    if (design_.norm == models::Norm::kLayer) add(name + "/bias", {model_}, 0);
  }

  void bias(const std::string& name, const Shape& shape, int streams = 1) {
    if (design_.biases) add(name, shape, 0, streams);
  }

  void attention(const std::string& name) {
    add(name + "qkv/kernel", {model_, {"qkv", 3}, heads_, d_kv_}, deviation({model_}), 3);
    bias(name + "qkv/bias", {{"qkv", 3}, heads_, d_kv_}, 3);
    add(name + "o/kernel", {heads_, d_kv_, model_}, residual_deviation({heads_, d_kv_}));
    bias(name + "o/bias", {model_});
  }

  const models::Sizes& sizes_;
  const models::LanguageModelDesign& design_;
  Dim model_, heads_, d_kv_, d_ff_;
  std::vector<LmWeight> weights_;
  int next_ = 0;
};

}  // namespace

std::vector<LmWeight> lm_weights(const models::Sizes& sizes, const models::LanguageModelDesign& design) {
  return WeightLister(sizes, design).all();
}

void set_lm_weights(Session& session, const models::Sizes& sizes, const models::LanguageModelDesign& design) {
  for (const LmWeight& weight : lm_weights(sizes, design))
    if (weight.deviation > 0) session.set_value(weight.variable, values_of(weight));
}

Feeds lm_batch(const models::LanguageModel& lm, const models::Sizes& sizes) {
  const std::int64_t batch = sizes.at("batch"), length = sizes.at("length");
  const auto vocab = static_cast<std::uint64_t>(sizes.at("vocab"));
  const std::uint64_t base = first_of(kBatchStream);
  Array inputs(lm.inputs.shape(), DType::kI32), targets(lm.targets.shape(), DType::kI32);
  auto* in = reinterpret_cast<std::int32_t*>(inputs.bytes());
  auto* out = reinterpret_cast<std::int32_t*>(targets.bytes());
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i <= length; ++i) {
      const auto place = static_cast<std::uint64_t>(b * (length + 1) + i);
      const auto token = static_cast<std::int32_t>(splitmix64(base + place) % vocab);
      if (i < length) in[b * length + i] = token;
      if (i > 0) out[b * length + i - 1] = token;
    }
  return {{lm.inputs, inputs}, {lm.targets, targets}};
}

double lm_gflop(const models::Sizes& sizes) {
  const auto of = [&](const char* name) { return static_cast<double>(sizes.at(name)); };
  const double inner = of("heads") * of("d_kv");
  const double layer = 4 * of("d_model") * inner + 2 * of("d_model") * of("d_ff") + 2 * of("length") * inner;
  const double token = of("layers") * layer + of("d_model") * of("vocab");
  return 3 * 2 * token * of("batch") * of("length") * 1e-9;  // forward, and twice that backward
}

double lm_attention_gflop(const models::Sizes& sizes) {
  const auto of = [&](const char* name) { return static_cast<double>(sizes.at(name)); };
  const double token = of("layers") * 2 * of("length") * of("heads") * of("d_kv");
  return 3 * 2 * token * of("batch") * of("length") * 1e-9;
}

}  // namespace weft::tools
