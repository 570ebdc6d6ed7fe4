#include "runtime/cuda/tuning.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/cache_folder.h"
#include "base/str.h"
#include "runtime/cuda/kernel_cache.h"

namespace weft::cuda {

namespace {

constexpr std::size_t kDigits = 2 * sizeof(cublasLtMatmulAlgo_t);

std::string digits_of(const cublasLtMatmulAlgo_t& algorithm) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&algorithm);
  std::string text;
  for (std::size_t i = 0; i < sizeof algorithm; ++i) {
    text += "0123456789abcdef"[bytes[i] / 16];
    text += "0123456789abcdef"[bytes[i] % 16];
  }
  return text;
}

bool is_algorithm(const std::string& digits) {
  return digits.size() == kDigits && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<Tuning::Split> split_of(const std::string& text) {
  Tuning::Split split{};
  char end = 0;
  const bool is_one = std::sscanf(text.c_str(), "split:%d:%d:%d%c", &split[0], &split[1], &split[2], &end) == 3;
  return is_one ? std::optional(split) : std::nullopt;
}

}  // namespace

Tuning::Tuning(std::string card)
    : first_line_(str("weft products 1, ", card, ", cuBLASLt ", cublasLtGetVersion())),
      file_(cache_file("products", first_line_)) {
  read();
}

Tuning::~Tuning() {
  if (has_news_) write();
}

std::optional<cublasLtMatmulAlgo_t> Tuning::find(const std::string& product) const {
  const auto found = algorithms_.find(product);
  if (found == algorithms_.end() || !is_algorithm(found->second)) return std::nullopt;
  cublasLtMatmulAlgo_t algorithm{};
  auto* bytes = reinterpret_cast<unsigned char*>(&algorithm);
  for (std::size_t i = 0; i < sizeof algorithm; ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(found->second.substr(2 * i, 2), nullptr, 16));
  return algorithm;
}

void Tuning::keep(const std::string& product, const cublasLtMatmulAlgo_t& algorithm) {
  algorithms_[product] = digits_of(algorithm);
  has_news_ = true;
}

std::optional<Tuning::Split> Tuning::find_split(const std::string& product) const {
  const auto found = algorithms_.find(product);
  return found == algorithms_.end() ? std::nullopt : split_of(found->second);
}

void Tuning::keep_split(const std::string& product, const Split& split) {
  algorithms_[product] = str("split:", split[0], ":", split[1], ":", split[2]);
  has_news_ = true;
}

void Tuning::read() {
  std::ifstream in(file_);
  if (file_.empty() || !in) return;
  std::string line, product, digits;
  bool is_sound = static_cast<bool>(std::getline(in, line)) && line == first_line_;
  while (is_sound && std::getline(in, line)) {
    std::istringstream words(line);
    is_sound = words >> product >> digits && (is_algorithm(digits) || split_of(digits));
    if (is_sound) algorithms_[product] = digits;
  }
  if (is_sound) return;
  algorithms_.clear();
  warn_of_cache(str("the file of tuned products ", file_, " is damaged; products are timed again"));
}

// Another process may have kept other products meanwhile.
void Tuning::write() {
  if (file_.empty()) return;
  const std::map<std::string, std::string> own = algorithms_;
  if (std::filesystem::exists(file_)) read();
  for (const auto& [product, digits] : own) algorithms_[product] = digits;
  std::string text = first_line_ + "\n";
  for (const auto& [product, digits] : algorithms_) text += str(product, " ", digits, "\n");
  if (!write_whole(file_, text)) warn_of_cache(str("tuned products cannot be kept in ", file_));
}

}  // namespace weft::cuda
