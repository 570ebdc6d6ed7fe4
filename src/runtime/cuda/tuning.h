// Tuning: which algorithm of cuBLASLt, or which split of an own kernel, is fastest for a product, found by timing and kept in a file for this card and this
// version of the library. A missing file or a line that cannot be read costs the time to measure again, nothing else.
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>
#include <optional>
#include <string>

namespace weft::cuda {

class Tuning {
 public:
  explicit Tuning(std::string card);  // its name: part of the file's first line
  ~Tuning();                          // writes the file if something is new
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  // By the text of a product: its sizes, strides and types, without spaces.
  std::optional<cublasLtMatmulAlgo_t> find(const std::string& product) const;
  void keep(const std::string& product, const cublasLtMatmulAlgo_t& algorithm);
  // How one of the engine's own kernels divides a product: three numbers.
  using Split = std::array<int, 3>;
  std::optional<Split> find_split(const std::string& product) const;
  void keep_split(const std::string& product, const Split& split);

 private:
  void read();
  void write();

  const std::string first_line_, file_;
  std::map<std::string, std::string> algorithms_;  // as hexadecimal digits, or "split:1:8:2"
  bool has_news_ = false;
};

}  // namespace weft::cuda
