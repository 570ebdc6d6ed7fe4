// The machine model of explain: one rate for work and one for memory, given, or measured by an engine.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "base/str.h"
#include "runtime/engine.h"
#include "weft/error.h"
#include "weft/explain.h"

namespace weft {

namespace {

// The words of a machine text; '#' begins a comment.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    for (std::string& word : split_words(line.substr(0, line.find('#')), " ,;\t\r")) words.push_back(std::move(word));
  return words;
}

std::optional<double> rate_of(const std::string& digits) {
  double rate = 0;
  const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), rate);
  const bool good = failure == std::errc() && stop == digits.data() + digits.size() && rate > 0 && rate < 1e30;
  return good ? std::optional(rate) : std::nullopt;
}

Machine machine_of(const std::string& text, const std::string& where) {
  Machine machine;
  for (const std::string& word : words_of(text)) {
    const std::optional<double> rate = word.size() > 2 && word[1] == '=' ? rate_of(word.substr(2)) : std::nullopt;
    if (!rate || (word[0] != 'F' && word[0] != 'B'))
      throw UserError({.code = "machine.bad-text",
                       .what = str("'", word, "' does not describe a machine"),
                       .where = where,
                       .fix = "write F=<flops per second> and B=<bytes per second>, as in F=2e11,B=2e10"});
    (word[0] == 'F' ? machine.flops_per_second : machine.bytes_per_second) = *rate;
  }
  if (machine.flops_per_second == 0 || machine.bytes_per_second == 0)
    throw UserError({.code = "machine.missing-rate",
                     .what = str("the machine lacks ", machine.flops_per_second == 0 ? "F, its flops" : "B, its bytes",
                                 " per second"),
                     .where = where,
                     .fix = "give both, as in F=2e11,B=2e10"});
  return machine;
}

}  // namespace

Machine parse_machine(const std::string& text) {
  if (text.find('=') != std::string::npos) return machine_of(text, str("machine \"", text, "\""));
  std::ifstream file(text);
  if (!file)
    throw UserError({.code = "machine.unreadable-file",
                     .what = str("the machine file '", text, "' cannot be read"),
                     .where = text,
                     .fix = "give the path of a file, or the rates themselves, as in F=2e11,B=2e10"});
  std::ostringstream content;
  content << file.rdbuf();
  return machine_of(content.str(), str("machine file ", text));
}

Machine measure_machine(const device::Choice& device, int processors, int workers) {
  const Roofs roofs = engine_named(device.name, "measure_machine", device.plugin)
                          .measure(std::max(1, processors), {.workers = workers});
  return {roofs.flops_per_second, roofs.bytes_per_second};
}

}  // namespace weft
