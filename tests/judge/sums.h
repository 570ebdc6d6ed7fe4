// Sums that are still open: what einsum, reduce, scatters, convolutions and pools have in common.
#pragma once

#include "judge/judge.h"

namespace weft::judge {

// One sum per element of y.
class Sums {
 public:
  Sums(const Arithmetic& arithmetic, Value& y)
      : out_(arithmetic, y),
        y_(y),
        error_(y.size(), 0),
        magnitude_(y.size(), 0),
        count_(y.size(), 0),
        whole_(y.size(), true) {}

  void add(std::size_t k, double term, double error) {
    y_.f[k] += term;
    error_[k] += error;
    magnitude_[k] += std::fabs(term);
    count_[k] += 1;
    if (term != std::floor(term)) whole_[k] = false;
  }
  void add(std::size_t k, std::int64_t term, bool known) {
    y_.i[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(y_.i[k]) + static_cast<std::uint64_t>(term));
    if (!known) error_[k] = kUnknown;
  }
  // `more`: factors of each term beyond the first, which round too.
  void finish(double more = 0) {
    for (std::size_t k = 0; k < y_.size(); ++k)
      if (!y_.is_real()) out_.whole(k, y_.dtype == DType::kBool ? y_.i[k] != 0 : y_.i[k], error_[k] == 0);
      else if (count_[k] == 1 && more == 0) out_.exactly(k, y_.f[k], error_[k]);
      else out_.sum(k, y_.f[k], error_[k], magnitude_[k], count_[k], more, whole_[k]);
  }

 private:
  Writer out_;
  Value& y_;
  std::vector<double> error_, magnitude_, count_;
  std::vector<bool> whole_;
};

}  // namespace weft::judge
