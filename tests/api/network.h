// A small network and its training, to compare sessions by the bits of all that they give.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace weft {

inline bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.elements()) * size_of(a.dtype())) == 0;
}

// Variables, feeds, fetched tensors, metrics, random numbers.
struct Network {
  Dim batch{"batch", 8}, io{"io", 4}, hidden{"hidden", 12};
  Graph g;
  Tensor x = g.input("x", {batch, io});
  Tensor w = g.variable("w", {io, hidden}, init::fan_in(io));
  Tensor v = g.variable("v", {hidden, io}, init::fan_in(hidden));
  Tensor h = relu(einsum({x, w}, {batch, hidden}));
  Tensor y = einsum({dropout(h, 0.5, {batch, hidden}), v}, {batch, io});
  Tensor loss = mean(square(y - x));
  Updates updates = optim::sgd(loss, g.variables(), 0.1);

  Network() { scalar_metric("loss", loss); }

  Feeds feeds() const {
    Array values({batch, io}, DType::kF32);
    for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, std::sin(static_cast<double>(i)));
    return {{x, values}};
  }
};

struct Trained {
  std::vector<Array> arrays;
  std::map<std::string, double> metrics;
  bool operator==(const Trained& other) const {
    if (metrics != other.metrics || arrays.size() != other.arrays.size()) return false;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (!same_bits(arrays[i], other.arrays[i])) return false;
    return true;
  }
};

inline Trained train(Session& session, const std::string& layout) {
  const Network net;
  Executable step = session.compile(net.g, Layout::parse(layout),
                                    {.fetch = {net.h, net.y, net.loss}, .update = net.updates, .metrics = true});
  Trained trained;
  for (int i = 0; i < 3; ++i) {
    const Values values = step.run(net.feeds());
    for (const Tensor& x : {net.h, net.y, net.loss}) trained.arrays.push_back(values[x]);
    trained.metrics = values.metrics();
  }
  for (const std::string& name : session.variables()) trained.arrays.push_back(session.value(name));
  return trained;
}

}  // namespace weft
