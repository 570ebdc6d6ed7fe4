#include "optim/common.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

Updates sgd(const Tensor& loss, const Tensors& variables, const Tensor& rate, Site site) {
  const Tensors derivatives = derivatives_of(loss, variables, site);
  const UpdatePhase phase(loss);
  Updates updates;
  for (std::size_t i = 0; i < variables.size(); ++i)
    updates.push_back(assign_sub(variables[i], multiply(cast(derivatives[i], rate.dtype(), site), rate, site), site));
  return updates;
}

Updates sgd(const Tensor& loss, const Tensors& variables, double rate, Site site) {
  return sgd(loss, variables, constant(Graph(loss.graph()), rate, {}, loss.dtype(), site), site);
}

Sgd::Sgd(const Tensor& loss, const Tensors& variables, const SgdOptions& options, Site site) {
  const std::vector<Weight> weights =
      prepare(loss, variables, {"sgd", options.clip_norm, options.weight_decay, options.rules}, site);
  const UpdatePhase phase(loss);
  rate_ = Graph(loss.graph()).input("sgd/rate", {}, DType::kF32, site);
  for (const Weight& weight : weights)
    apply(weight, multiply(gradient(weight, site), scaled(rate_, weight.rate_scale, site), site), site);
}

Feeds Sgd::scalars(std::int64_t, double rate, Site) const { return {{rate_, Array::scalar(rate, DType::kF64)}}; }

}  // namespace weft::optim
