// Helpers of the optimizers: slots, names as patterns see them, checks of options.
#pragma once

#include <string>

#include "weft/error.h"
#include "weft/graph.h"

namespace weft::optim {

// State of a variable: f32 zeros. Its name is the variable's name plus the suffix; open scopes do not change it.
Tensor slot(const Tensor& variable, const std::string& suffix, const Shape& shape, Site site);

// beta * old + (1 - beta) * now.
Tensor blended(const Tensor& old, const Tensor& now, double beta, Site site);

// The rate of one weight.
Tensor scaled(const Tensor& rate, double scale, Site site);

// The variable's name with '_' for '.'.
std::string plain_name(const Tensor& variable);

// Whether a regular expression is found in the name. UserError for an invalid expression.
bool found(const std::string& pattern, const std::string& name, Site site);

// The gradients of the loss with respect to each variable. UserError if the loss is not a scalar or does not depend on
// one of them.
Tensors derivatives_of(const Tensor& loss, const Tensors& variables, Site site);

std::string text(double number);

// UserError unless low <= value < high; `option` is a text that begins with the option's name, such as "beta1 of Adam".
void check_option(ErrorCode code, const std::string& option, double value, double low, double high, Site site);

}  // namespace weft::optim
