#include "lm_config.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "weft/detail/models.h"

namespace weft::tools {

namespace {

std::string lower(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

}  // namespace

std::optional<std::string> lm_config(const std::string& name, std::int64_t positions) {
  const std::string known = lower(name);
  const std::vector<std::string> configs = models::language_model_configs();
  if (std::ranges::find(configs, known) == configs.end()) return std::nullopt;
  const models::Sizes sizes = models::default_sizes("lm/" + known);
  const models::LanguageModelDesign design = models::language_model_design(known, sizes);
  const bool is_16_bit = design.activations == DType::kBF16;
  std::ostringstream text;
  text << std::boolalpha << "name = \"" << known << "\"\n[model]\nkind = \"lm\"\nvocab_divisor = 1\n";
  for (const char* size : {"vocab", "d_model", "heads", "d_kv", "d_ff", "layers"})
    text << size << " = " << sizes.at(size) << "\n";
  text << "norm = \"" << (design.norm == models::Norm::kLayer ? "layer" : "rms")
       << "\"\nnorm_epsilon = " << design.norm_epsilon
       << "\npositions = \"learned\"\nmax_length = " << std::max(sizes.at("length"), positions) << "\nactivation = [\""
       << design.activation << "\"]\nff_bias = " << design.biases << "\nattention_bias = " << design.biases
       << "\ntied = " << design.tied << "\ntied_scale = false\nactivations = \"" << name_of(design.activations)
       << "\"\n[data]\nvocabulary = \"bytes\"\n"
       << "[decode]\nweights = \"" << (is_16_bit ? "bf16" : "f32") << "\"\n";
  return text.str();
}

}  // namespace weft::tools
