#include "weft/error.h"
#include "weft/nn.h"
#include "weft/detail/words.h"

namespace weft::nn {

namespace {

struct Named {
  const char* name;
  Activation function;
};

const std::vector<Named>& table() {
  static const std::vector<Named> kTable = {
      {"linear", {}},
      {"relu", [](const Tensor& x, Site site) { return relu(x, site); }},
      {"leaky_relu", [](const Tensor& x, Site site) { return leaky_relu(x, 0.2, site); }},
      {"elu", [](const Tensor& x, Site site) { return elu(x, site); }},
      {"selu", [](const Tensor& x, Site site) { return selu(x, site); }},
      {"gelu", [](const Tensor& x, Site site) { return gelu(x, site); }},
      {"swish", [](const Tensor& x, Site site) { return swish(x, site); }},
      {"silu", [](const Tensor& x, Site site) { return swish(x, site); }},
      {"tanh", [](const Tensor& x, Site site) { return tanh(x, site); }},
      {"sigmoid", [](const Tensor& x, Site site) { return sigmoid(x, site); }},
      {"softplus", [](const Tensor& x, Site site) { return softplus(x, site); }},
  };
  return kTable;
}

}  // namespace

std::vector<std::string> activations() {
  std::vector<std::string> names;
  for (const Named& entry : table()) names.emplace_back(entry.name);
  return names;
}

Activation activation(const std::string& name) {
  for (const Named& entry : table())
    if (entry.name == name) return entry.function;
  std::string all;
  for (const std::string& known : activations()) all += (all.empty() ? "" : ", ") + known;
  const std::string near = nearest_word(name, activations());
  throw UserError({.code = "nn.unknown-activation",
                   .what = "there is no activation '" + name + "'",
                   .where = "nn::activation",
                   .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") + "the activations are: " + all});
}

}  // namespace weft::nn
