#include "optim/common.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

Momentum::Momentum(const Tensor& loss, const Tensors& variables, const MomentumOptions& options, Site site) {
  check_option("momentum", options.momentum, 0, 1, site);
  const Tensors derivatives = gradients({loss}, variables, {}, site);
  const UpdatePhase phase(loss);
  rate_ = Graph(loss.graph()).input("momentum/rate", {}, DType::kF32, site);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!derivatives[i]) continue;
    const Tensor v = slot(variables[i], "v", variables[i].shape(), site);
    const Tensor fresh = multiply(cast(derivatives[i], DType::kF32, site), rate_, site);
    const Tensor new_v = add(fresh, multiply(v, options.momentum, site), site);
    updates_.push_back(assign(v, new_v, site));
    updates_.push_back(assign_sub(variables[i], new_v, site));
  }
}

Feeds Momentum::scalars(std::int64_t, double rate, Site) const { return {{rate_, Array::scalar(rate, DType::kF64)}}; }

}  // namespace weft::optim
