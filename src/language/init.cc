// Initializers by dim names.
#include <cmath>

#include "weft/graph.h"

namespace weft::init {

namespace {

// The standard deviation of a standard normal distribution that is truncated at two deviations.
constexpr double kTruncatedDeviation = 0.87962566103423978;

}  // namespace

Init zeros() { return constant(0); }
Init ones() { return constant(1); }
Init constant(const Number& value) { return {.kind = Init::Kind::kConstant, .a = value}; }
Init uniform(double low, double high) { return {.kind = Init::Kind::kUniform, .a = low, .b = high}; }
Init normal(double deviation, double mean) { return {.kind = Init::Kind::kNormal, .a = mean, .b = deviation}; }
Init truncated_normal(double deviation, double mean) {
  return {.kind = Init::Kind::kTruncatedNormal, .a = mean, .b = deviation};
}
Init values(Array array) {
  return {.kind = Init::Kind::kValues, .values = std::make_shared<const Array>(std::move(array))};
}

Init variance_scaling(double scale, Fan fan, const Shape& in, const Shape& out, bool uniform) {
  const double fan_in = static_cast<double>(in.elements()), fan_out = static_cast<double>(out.elements());
  const double size = fan == Fan::kIn ? fan_in : fan == Fan::kOut ? fan_out : (fan_in + fan_out) / 2;
  const double deviation = std::sqrt(scale / size);
  if (!uniform) return truncated_normal(deviation / kTruncatedDeviation);
  return init::uniform(-std::sqrt(3.0) * deviation, std::sqrt(3.0) * deviation);
}

Init stacked(Init each, const DimRef& dim, std::vector<std::string> parts, std::vector<double> scales) {
  each.stacked = dim.name();
  each.parts = std::move(parts);
  each.scales = std::move(scales);
  return each;
}

Init fan_in(const Shape& dims) { return normal(1 / std::sqrt(static_cast<double>(dims.elements()))); }

}  // namespace weft::init
