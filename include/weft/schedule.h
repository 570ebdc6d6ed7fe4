// Learning-rate schedules: products of factors of the step, computed in double on the host. See docs/optimizers.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/site.h"

namespace weft::optim {

// A text of factors with '*' between them: "constant 0.001 * linear_warmup 100 * cosine 1000 0.1".
// t is the step, counted from 1. T is the total number of steps: parse() gives it, unless the factor has [T].
//   constant x                            x
//   linear_warmup n                       min(1, t / n)
//   linear_decay n [T]                    min(1, (T - t) / n), never below 0: the last n steps
//   truncated_rsqrt n                     1 / sqrt(max(t, n))
//   noam n [fraction=0.1] [T]             truncated_rsqrt n * linear_decay fraction T
//   slanted_triangular [cut=0.1] [ratio=32] [T]   p up from 0 to 1 within cut T steps, then down: (1 + p (ratio - 1)) / ratio
//   cosine [T] [floor=0] [begin=0]        1 at step begin and before, floor at T and after, half a cosine between them
//   exponential x n                       x^(t / n)
//   offset n                              1; every factor sees t = step - n (0 if that is less), and parse()'s T less n
// n below 1 is a fraction of T.
class Schedule {
 public:
  Schedule() = default;  // 1 at every step
  // UserError, with the column, for any other text, and if a factor needs T and T is not known.
  static Schedule parse(std::string_view text, std::int64_t total_steps = 0);

  double at(std::int64_t step) const;
  std::string text() const;  // parse() accepts it with the same total

 private:
  struct Factor {
    std::string name;
    std::vector<double> given, numbers;  // given: as written; numbers: with defaults, and fractions of T as steps
  };
  std::vector<Factor> factors_;
  double offset_ = 0;
};

}  // namespace weft::optim
