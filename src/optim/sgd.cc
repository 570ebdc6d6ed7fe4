#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

Updates sgd(const Tensor& loss, const Tensors& variables, const Tensor& rate, Site site) {
  const Tensors derivatives = gradients({loss}, variables, {}, site);
  const UpdatePhase phase(loss);
  Updates updates;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (derivatives[i])
      updates.push_back(assign_sub(variables[i], multiply(cast(derivatives[i], rate.dtype(), site), rate, site), site));
  return updates;
}

Updates sgd(const Tensor& loss, const Tensors& variables, double rate, Site site) {
  return sgd(loss, variables, constant(Graph(loss.graph()), rate, {}, loss.dtype(), site), site);
}

}  // namespace weft::optim
