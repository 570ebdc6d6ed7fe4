#include "train/rules.h"

#include <charconv>
#include <sstream>

#include "weft/error.h"

namespace weft::train {

namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& where, const std::string& why) {
  throw UserError({.code = "optimizer.bad-rule",
                   .what = "the optimizer's rule \"" + text + "\" " + why,
                   .where = where,
                   .fix = "write \"PATTERN: rate 0.1, decay 0\" or \"PATTERN: frozen\", the pattern a regular "
                          "expression that is searched in the variables' names"});
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

}  // namespace

optim::Rule parse_rule(const std::string& text, const std::string& where) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse(text, where, "names no pattern");
  optim::Rule rule;
  rule.pattern = trimmed(text.substr(0, colon));
  std::istringstream words(text.substr(colon + 1));
  for (std::string word; std::getline(words, word, ',');) {
    word = trimmed(word);
    if (word == "frozen") {
      rule.train = false;
      continue;
    }
    const std::size_t space = word.find(' ');
    const std::string name = word.substr(0, space),
                      digits = space == std::string::npos ? "" : trimmed(word.substr(space));
    double number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
      refuse(text, where, "has no number behind '" + word + "'");
    if (name == "rate") rule.rate_scale = number;
    else if (name == "decay") rule.weight_decay = number;
    else refuse(text, where, "says '" + name + "', which is no word of a rule");
  }
  return rule;
}

std::string text_of(const optim::Rule& rule) {
  std::ostringstream out;
  out.precision(17);
  out << rule.pattern << ":";
  if (!rule.train) out << " frozen";
  else out << " rate " << rule.rate_scale;
  if (rule.weight_decay) out << ", decay " << *rule.weight_decay;
  return out.str();
}

}  // namespace weft::train
