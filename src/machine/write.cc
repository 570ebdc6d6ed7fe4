// Machine::text(): a description that Machine::parse() reads.
#include <charconv>

#include "base/str.h"
#include "weft/machine.h"

namespace weft {

namespace {

// A float of TOML: the shortest digits that read back as the same number, in exponent form.
std::string number(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific, 5).ptr;
  return std::string(digits, end);
}

std::string list(const std::vector<double>& values) {
  std::vector<std::string> words;
  for (const double value : values) words.push_back(number(value));
  return str("[", join(words, ", "), "]");
}

std::string axes_text(const Table& table, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < table.axes.size(); ++i) text += str(names[i], " = ", list(table.axes[i]), "\n");
  return text;
}

std::string rate_text(const std::string& name, const Table& table) {
  return str(name, " = ", table.axes.empty() ? number(table.values[0]) : list(table.values), "\n");
}

std::string rates_text(const Rates& rates) {
  std::string text = str("\n[[rates]]\ncores = ", rates.cores, "\noverhead = ", number(rates.overhead),
                         "\npointwise = ", number(rates.pointwise), "\nhidden = ", number(rates.hidden),
                         "\nrandom = ", number(rates.random), "\n");
  text += rates.sweep.axes.empty()
              ? rate_text("sweep", rates.sweep)
              : str("[rates.sweep]\n", axes_text(rates.sweep, {"bytes"}), rate_text("rate", rates.sweep));
  for (const ProductRates& one : rates.products)
    text += str("[[rates.product]]\ndtype = \"", one.dtype, "\"\n", axes_text(one.rate, {"m", "n", "k"}),
                rate_text("rate", one.rate), "tile = [", join(one.tile, ", "), "]\n");
  for (const AttendRates& one : rates.attention)
    text += str("[[rates.attend]]\ndtype = \"", one.dtype, "\"\n", axes_text(one.forward, {"length", "key"}),
                rate_text("forward", one.forward), rate_text("backward", one.backward));
  return text;
}

std::string link_text(const Link& link) {
  static constexpr const char* kNames[] = {"ring", "torus", "switch", "shared memory"};
  return str("\n[[link]]\nname = \"", link.name, "\"\ntopology = \"", kNames[static_cast<std::size_t>(link.topology)],
             "\"\nsides = [", join(link.sides, ", "), "]\nlatency = ", number(link.latency),
             "\nbandwidth = ", number(link.bandwidth), "\nshared_by = ", link.shared_by, "\n");
}

}  // namespace

std::string Machine::text() const {
  std::string text = str("processors = ", processors, "\n");
  if (cores > 0) text += str("cores = ", cores, "\n");
  if (memory_bytes > 0) text += str("memory = \"", memory_bytes >> 20, "MiB\"\n");
  text += str("bytes_per_second = ", number(bytes_per_second), "\nstep_seconds = ", number(step_seconds),
              "\noverlap = ", overlaps ? "true" : "false", "\nskew = ", number(skew), "\n\n[peak]\n");
  for (const auto& [dtype, peak] : peaks) text += str(dtype, " = ", number(peak), "\n");
  for (const Rates& one : rates) text += rates_text(one);
  for (const Link& link : links) text += link_text(link);
  for (const CollectiveTimes& one : collectives)
    text += str("\n[[collective]]\nkind = \"", one.kind, "\"\n", axes_text(one.seconds, {"processors", "bytes"}),
                rate_text("seconds", one.seconds));
  return text;
}

}  // namespace weft
