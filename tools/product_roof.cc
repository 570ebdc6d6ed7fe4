#include "product_roof.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "weft/ops.h"

namespace weft::tools {

std::vector<double> product_rates(const device::Choice& device, int workers, const ProductRoofOptions& options) {
  const Dim rows{"rows", options.side}, inner{"inner", options.side}, columns{"columns", options.side};
  const VariableOptions as{.stored = options.dtype};
  Graph graph;
  // Random, because zeros take less power; scaled, because the results of a chain keep their size.
  const double deviation = 1 / std::sqrt(static_cast<double>(options.side));
  const Tensor a = graph.variable("a", {rows, inner}, init::normal(1), as);
  const Tensor b = graph.variable("b", {inner, columns}, init::normal(deviation), as);
  const Tensor c = graph.variable("c", {rows, inner}, init::zeros(), as);
  Tensor x = a;
  for (int i = 0; i < options.chain; ++i) x = rename(einsum({x, b}, {rows, columns}), columns, inner.name);
  Session session(Mesh(), wire::threads(), device, {.workers = workers});
  Executable products = session.compile(graph, {}, {.update = {assign(c, x)}});
  const auto seconds = [&] {
    const auto begin = std::chrono::steady_clock::now();
    products.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (double loaded = 0; loaded < options.load_seconds;) loaded += seconds();
  const double side = static_cast<double>(options.side);
  std::vector<double> rates;
  for (int round = 0; round < options.rounds; ++round)
    rates.push_back(2 * side * side * side * options.chain / seconds());
  std::ranges::sort(rates);
  return rates;
}

}  // namespace weft::tools
