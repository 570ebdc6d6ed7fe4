// The language models of `weft bench lm`.
#include <array>
#include <cmath>

#include "models/catalog.h"
#include "weft/error.h"

namespace weft::models {

namespace {

struct Benchmark {
  std::string config;
  Sizes sizes;
  LanguageModelDesign design;
  std::string layout = "heads,d_ff,vocab:model";  // for two processors
};

// vocab, d_model, heads, d_kv, d_ff, layers, length, batch.
Sizes sizes(const std::array<std::int64_t, 8>& s) {
  return {{"vocab", s[0]}, {"d_model", s[1]}, {"heads", s[2]},  {"d_kv", s[3]},
          {"d_ff", s[4]},  {"layers", s[5]},  {"length", s[6]}, {"batch", s[7]}};
}

LanguageModelDesign of_rate(double rate) { return {.rate = rate}; }

// For cards: bf16 between f32 tables and an f32 loss.
LanguageModelDesign large(const std::string& activation) {
  return {.norm = Norm::kRms,
          .activation = activation,
          .deviation = 0.02,
          .activations = DType::kBF16,
          .rate = 1e-4,
          .adam = {.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8}};
}

LanguageModelDesign gpt2() {
  LanguageModelDesign design = large("gelu");
  design.norm = Norm::kLayer;
  design.norm_epsilon = 1e-5;
  design.biases = design.tied = true;
  return design;
}

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> kBenchmarks = {
      {"tiny", sizes({256, 64, 4, 16, 128, 2, 32, 4}), of_rate(1e-3)},
      {"small", sizes({8192, 256, 4, 64, 1024, 4, 128, 16}), of_rate(1e-4)},
      {"medium", sizes({32768, 512, 8, 64, 2048, 6, 256, 8}), of_rate(3e-5)},
      {"gpt2-124m", sizes({50304, 768, 12, 64, 3072, 12, 1024, 32}), gpt2()},
      {"gpt2-1.5b", sizes({50304, 1600, 25, 64, 6400, 48, 1024, 16}), gpt2(), "d_ff,vocab:model"},
      {"wide", sizes({32768, 1024, 32, 128, 16384, 4, 256, 64}), large("relu")},
      {"llama-1b", sizes({32768, 2048, 32, 64, 8192, 16, 2048, 8}), large("gelu")},
      {"paper-0.67b", sizes({32768, 1024, 32, 256, 32768, 6, 256, 64}), large("relu")},
      {"paper-4.9b", sizes({32768, 1024, 256, 256, 262144, 6, 256, 16}), large("relu")},
  };
  return kBenchmarks;
}

}  // namespace

std::vector<std::string> language_model_configs() {
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks()) names.push_back(benchmark.config);
  return names;
}

LanguageModelDesign language_model_design(const std::string& config, const Sizes& sizes) {
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.config != config) continue;
    LanguageModelDesign design = benchmark.design;
    // The sum of the 2 layers terms of the residual stream keeps the deviation.
    design.residual_deviation = design.deviation / std::sqrt(2 * static_cast<double>(sizes.at("layers")));
    return design;
  }
  throw InternalError("there is no benchmark '" + config + "'");
}

std::vector<Entry> benchmark_models() {
  std::vector<Entry> all;
  for (const Benchmark& benchmark : benchmarks())
    all.push_back({"lm/" + benchmark.config,
                   "the transformer as `weft bench lm --config " + benchmark.config + "` trains it", benchmark.sizes,
                   "model:2", benchmark.layout,
                   [design = benchmark.design](Model& model, const Sizes& sizes) {
                     build_language_model(model, sizes, design);
                   }});
  return all;
}

}  // namespace weft::models
