// A stack of layers: attention and a feed-forward net, each after a norm and added back, and a last norm.
#pragma once

#include "models/transformer/attention.h"

namespace weft::models {

// x in which each element has been dropped as the options say, if it is being trained.
Tensor dropped(const Tensor& x, const Settings& s);

// Variables are in `scope` ("" for none): "layer_0/attention_norm", "layer_0/attention", "layer_0/cross_attention_norm",
// … and "final_norm". With a pass that can recall, each layer looks at an encoder too.
Tensor stack(const Tensor& x, const Settings& s, const Pass& pass, std::int64_t layers, const std::string& scope);

}  // namespace weft::models
