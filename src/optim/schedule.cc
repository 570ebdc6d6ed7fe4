#include "weft/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <sstream>

#include "weft/error.h"
#include "weft/detail/words.h"

namespace weft::optim {

namespace {

constexpr double kEndless = std::numeric_limits<double>::max();
constexpr double kSmallest = 1e-9;

enum class Role { kPlain, kSteps, kTotal };  // kSteps: below 1 it is a fraction of the total

struct Number {
  const char* name;
  Role role = Role::kPlain;
  double low = -kEndless, high = kEndless;
  std::optional<double> fallback = {};  // of kTotal: the argument of parse()
};

using Numbers = std::vector<double>;

double linear_decay(double steps, double total, double t) { return std::clamp((total - t) / steps, 0.0, 1.0); }
double truncated_rsqrt(double steps, double t) { return 1 / std::sqrt(std::max(t, steps)); }

double slanted_triangular(const Numbers& n, double t) {
  const double ratio = n[1], total = n[2], cut = n[0] * total;
  const double p = t < cut ? t / cut : std::max(0.0, 1 - (t - cut) / (total - cut));
  return (1 + p * (ratio - 1)) / ratio;
}

double cosine(const Numbers& n, double t) {
  const double total = n[0], floor = n[1], begin = n[2];
  const double done = std::clamp((t - begin) / std::max(total - begin, 1.0), 0.0, 1.0);
  return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

struct Kind {
  const char* name;
  std::vector<Number> numbers;
  double (*at)(const Numbers& numbers, double t);
};

const std::vector<Kind>& kinds() {
  const Number steps{"n", Role::kSteps, kSmallest}, total{"T", Role::kTotal, 1};
  static const std::vector<Kind> all = {
      {"constant", {{"x"}}, [](const Numbers& n, double) { return n[0]; }},
      {"linear_warmup", {steps}, [](const Numbers& n, double t) { return std::min(1.0, t / n[0]); }},
      {"linear_decay", {steps, total}, [](const Numbers& n, double t) { return linear_decay(n[0], n[1], t); }},
      {"truncated_rsqrt", {steps}, [](const Numbers& n, double t) { return truncated_rsqrt(n[0], t); }},
      {"noam",
       {steps, {"fraction", Role::kSteps, kSmallest, 1 - kSmallest, 0.1}, total},
       [](const Numbers& n, double t) { return truncated_rsqrt(n[0], t) * linear_decay(n[1], n[2], t); }},
      {"slanted_triangular",
       {{"cut", Role::kPlain, kSmallest, 1 - kSmallest, 0.1}, {"ratio", Role::kPlain, 1, kEndless, 32}, total},
       slanted_triangular},
      {"cosine", {total, {"floor", Role::kPlain, 0, 1, 0}, {"begin", Role::kSteps, 0, kEndless, 0}}, cosine},
      {"exponential",
       {{"x", Role::kPlain, kSmallest}, steps},
       [](const Numbers& n, double t) { return std::pow(n[0], t / n[1]); }},
      {"offset", {{"n", Role::kPlain, 0}}, [](const Numbers&, double) { return 1.0; }},
  };
  return all;
}

const Kind& kind_called(const std::string& name) {
  return *std::find_if(kinds().begin(), kinds().end(), [&](const Kind& kind) { return kind.name == name; });
}

std::string plain(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), number).ptr};
}

// "cosine [T] [floor] [begin]".
std::string form(const Kind& kind) {
  std::string text = kind.name;
  for (const Number& number : kind.numbers) {
    const bool optional = number.fallback || number.role == Role::kTotal;
    text += optional ? " [" + std::string(number.name) + "]" : " " + std::string(number.name);
  }
  return text;
}

struct Word {
  std::string text;
  std::size_t column;
};

// The words of the text; a '*' is a separate word.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  bool fresh = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool space = text[i] == ' ' || text[i] == '\t' || text[i] == '\n', star = text[i] == '*';
    if (!space && (fresh || star)) words.push_back({"", i + 1});
    if (!space) words.back().text += text[i];
    fresh = space || star;
  }
  return words;
}

// Reads one factor after the other.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), words_(words_of(text)) {}

  bool done() const { return next_ == words_.size(); }
  std::size_t column() const { return done() ? text_.size() + 1 : words_[next_].column; }

  // After the first factor.
  void take_star() {
    if (words_[next_].text == "*") ++next_;
  }

  const Kind& kind() {
    const Word word = done() ? Word{"", text_.size() + 1} : words_[next_++];
    std::vector<std::string> names;
    for (const Kind& kind : kinds()) names.push_back(kind.name);
    const auto found = std::find(names.begin(), names.end(), word.text);
    if (found != names.end()) return kinds()[static_cast<std::size_t>(found - names.begin())];
    const std::string near = nearest_word(word.text, names);
    std::string list;
    for (const Kind& kind : kinds()) list += (list.empty() ? "" : ", ") + form(kind);
    throw UserError({.code = "schedule.unknown-factor",
                     .what = "'" + word.text + "' is not a factor of a schedule",
                     .where = at(word.column),
                     .fix = near.empty() ? "write factors with '*' between them: " + list
                                         : "did you mean '" + near + "'? The factors are: " + list});
  }

  // The numbers that are written, each within its range.
  Numbers given(const Kind& kind) {
    Numbers numbers;
    for (; !done() && words_[next_].text != "*"; ++next_) {
      const Word& word = words_[next_];
      double value = 0;
      const char* end = word.text.data() + word.text.size();
      const auto read = std::from_chars(word.text.data(), end, value);
      const bool fits = numbers.size() < kind.numbers.size() && read.ec == std::errc() && read.ptr == end;
      if (!fits || !(value >= kind.numbers[numbers.size()].low && value <= kind.numbers[numbers.size()].high))
        throw UserError({.code = "schedule.bad-word",
                         .what = "'" + word.text + "' cannot be here in the factor " + kind.name,
                         .where = at(word.column),
                         .fix = "write " + form(kind) + ranges(kind)});
      numbers.push_back(value);
    }
    return numbers;
  }

  // Adds defaults and turns fractions into steps. `column`: where the factor ends.
  Numbers filled(const Kind& kind, const Numbers& given, double total, std::size_t column) const {
    Numbers numbers = given;
    for (std::size_t i = 0; i < kind.numbers.size(); ++i) {
      const Number& number = kind.numbers[i];
      if (number.role == Role::kTotal && i < given.size()) total = given[i];
      if (i < given.size()) continue;
      if (number.role != Role::kTotal && !number.fallback)
        throw UserError({.code = "schedule.missing-number",
                         .what = "the factor " + std::string(kind.name) + " lacks its number " + number.name,
                         .where = at(column),
                         .fix = "write " + form(kind) + ranges(kind)});
      numbers.push_back(number.fallback.value_or(total));
    }
    for (std::size_t i = 0; i < kind.numbers.size(); ++i) {
      const bool fraction = kind.numbers[i].role == Role::kSteps && numbers[i] > 0 && numbers[i] < 1;
      if ((fraction || kind.numbers[i].role == Role::kTotal) && total < 1)
        throw UserError({.code = "schedule.needs-total-steps",
                         .what = "the factor " + std::string(kind.name) + " needs the total number of steps",
                         .where = at(column),
                         .fix = "say how many steps the training has, or write T: " + form(kind)});
      if (fraction) numbers[i] *= total;
    }
    return numbers;
  }

 private:
  Place at(std::size_t column) const {
    return "schedule \"" + std::string(text_) + "\", column " + std::to_string(column);
  }

  static std::string ranges(const Kind& kind) {
    std::string text;
    for (const Number& number : kind.numbers) {
      if (number.low > -kEndless) text += ", " + std::string(number.name) + " from " + plain(number.low);
      if (number.high < kEndless) text += " to " + plain(number.high);
    }
    return text;
  }

  std::string_view text_;
  std::vector<Word> words_;
  std::size_t next_ = 0;
};

}  // namespace

Schedule Schedule::parse(std::string_view text, std::int64_t total_steps) {
  Schedule schedule;
  Reader reader(text);
  std::vector<std::size_t> ends;
  do {
    if (!ends.empty()) reader.take_star();
    const Kind& kind = reader.kind();
    schedule.factors_.push_back({kind.name, reader.given(kind), {}});
    ends.push_back(reader.column());
  } while (!reader.done());
  for (const Factor& factor : schedule.factors_)
    if (factor.name == "offset" && !factor.given.empty()) schedule.offset_ += factor.given[0];
  const double total = static_cast<double>(total_steps) - schedule.offset_;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    Factor& factor = schedule.factors_[i];
    factor.numbers = reader.filled(kind_called(factor.name), factor.given, total, ends[i]);
  }
  return schedule;
}

double Schedule::at(std::int64_t step) const {
  const double t = std::max(static_cast<double>(step) - offset_, 0.0);
  double rate = 1;
  for (const Factor& factor : factors_) rate *= kind_called(factor.name).at(factor.numbers, t);
  return rate;
}

std::string Schedule::text() const {
  if (factors_.empty()) return "constant 1";
  std::string text;
  for (const Factor& factor : factors_) {
    text += (text.empty() ? "" : " * ") + factor.name;
    for (double number : factor.given) text += " " + plain(number);
  }
  return text;
}

}  // namespace weft::optim
