// Optimizers: plain functions that add their ops to the graph, on global shapes, and return the updates.
#pragma once

#include <string>

#include "weft/graph.h"
#include "weft/session.h"

namespace weft::optim {

// w -= rate * g, for every variable that the loss depends on.
Updates sgd(const Tensor& loss, const Tensors& variables, double rate, Site site = Site::current());
// The rate is a scalar input of the graph, given at each run.
Updates sgd(const Tensor& loss, const Tensors& variables, const Tensor& rate, Site site = Site::current());

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
  bool bias_correction = true;  // false: the seed's AdamWeightDecay
};

// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= rate/(1-b1^t) * m / (sqrt(v / (1-b2^t)) + epsilon) + rate decay w.
// The factors that change with the step are scalar inputs, computed in double on the host: pass feeds(step, rate).
class Adam {
 public:
  Adam(const Tensor& loss, const Tensors& variables, const AdamOptions& options = {}, Site site = Site::current());

  const Updates& updates() const { return updates_; }
  // The inputs of step t = 1, 2, …
  Feeds feeds(std::int64_t step, double rate) const;

 private:
  AdamOptions options_;
  Tensor rate_, second_scale_, decay_;
  Updates updates_;
};

}  // namespace weft::optim
