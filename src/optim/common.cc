#include "optim/common.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <sstream>

#include "weft/error.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

std::string text(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

Tensor slot(const Tensor& variable, const std::string& suffix, const Shape& shape, Site site) {
  Graph g(variable.graph());
  const std::string name = variable_name(variable);
  return g.variable("/" + name + "." + suffix, shape, init::zeros(), {.trainable = false, .slot_of = name}, site);
}

Tensor blended(const Tensor& old, const Tensor& now, double beta, Site site) {
  return add(multiply(old, beta, site), multiply(now, 1 - beta, site), site);
}

std::string plain_name(const Tensor& variable) {
  std::string name = variable_name(variable);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

bool found(const std::string& pattern, const std::string& name, Site site) {
  try {
    return std::regex_search(name, std::regex(pattern));
  } catch (const std::regex_error&) {
    throw UserError({.code = "optimizer.bad-pattern",
                     .what = "'" + pattern + "' is not a regular expression",
                     .where = site,
                     .fix = "check its brackets, and escape special characters by a backslash"});
  }
}

void check_option(ErrorCode code, const std::string& option, double value, double low, double high, Site site) {
  if (value >= low && value < high) return;
  const bool open_end = std::isinf(high);
  throw UserError({.code = code,
                   .what = option + " cannot be " + text(value),
                   .where = site,
                   .fix = open_end ? "give a finite number from " + text(low) + " on"
                                   : "give a number from " + text(low) + " on and below " + text(high)});
}

Tensors derivatives_of(const Tensor& loss, const Tensors& variables, Site site) {
  if (loss && !loss.shape().empty()) {
    std::ostringstream shape;
    shape << loss.shape();
    throw UserError({.code = "optimizer.loss-not-scalar",
                     .what = "the loss '" + loss.name() + "' " + shape.str() + " is not a scalar",
                     .where = site,
                     .fix = "give mean(loss), or reduce_sum(loss) for the sum over its elements"});
  }
  const Tensors derivatives = gradients({loss}, variables, {}, site);
  std::string names;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (!derivatives[i]) names += (names.empty() ? "'" : ", '") + variable_name(variables[i]) + "'";
  if (!names.empty())
    throw UserError({.code = "optimizer.independent-variables",
                     .what = "the loss '" + loss.name() + "' does not depend on variables to be trained: " + names,
                     .where = site,
                     .fix = "let the loss use them, leave them out of the optimizer's variables, or declare them with "
                            "VariableOptions::trainable = false"});
  return derivatives;
}

Tensor scaled(const Tensor& rate, double scale, Site site) { return scale == 1 ? rate : multiply(rate, scale, site); }

Tensors matching(const Tensors& variables, const std::string& pattern, Site site) {
  Tensors chosen;
  std::string names;
  for (const Tensor& variable : variables) {
    if (found(pattern, plain_name(variable), site)) chosen.push_back(variable);
    names += (names.empty() ? "" : ", ") + plain_name(variable);
  }
  if (chosen.empty())
    throw UserError({.code = "optimizer.pattern-finds-nothing",
                     .what = "no variable has a name in which '" + pattern + "' is found",
                     .where = site,
                     .fix = "names are written with '_' for '.': " + (names.empty() ? "there are none" : names)});
  return chosen;
}

}  // namespace weft::optim
