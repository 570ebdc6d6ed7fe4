#include "optim/common.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

Momentum::Momentum(const Tensor& loss, const Tensors& variables, const MomentumOptions& options, Site site) {
  check_option("momentum.bad-momentum", "momentum", options.momentum, 0, 1, site);
  const std::vector<Weight> weights =
      prepare(loss, variables, {"momentum", options.clip_norm, options.weight_decay, options.rules}, site);
  const UpdatePhase phase(loss);
  rate_ = Graph(loss.graph()).input("momentum/rate", {}, DType::kF32, site);
  for (const Weight& weight : weights) {
    const Tensor v = slot(weight.variable, "v", weight.variable.shape(), site);
    const Tensor fresh = multiply(gradient(weight, site), scaled(rate_, weight.rate_scale, site), site);
    const Tensor new_v = add(fresh, multiply(v, options.momentum, site), site);
    updates_.push_back(assign(v, new_v, site));
    apply(weight, new_v, site);
  }
}

Feeds Momentum::scalars(std::int64_t, double rate, Site) const { return {{rate_, Array::scalar(rate, DType::kF64)}}; }

}  // namespace weft::optim
