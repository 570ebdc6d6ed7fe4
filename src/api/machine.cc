// The machine model of explain: one rate for work and one for memory, given or measured.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/str.h"
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
      throw UserError({.what = str("'", word, "' does not describe a machine"),
                       .where = where,
                       .fix = "write F=<flops per second> and B=<bytes per second>, as in F=2e11,B=2e10"});
    (word[0] == 'F' ? machine.flops_per_second : machine.bytes_per_second) = *rate;
  }
  if (machine.flops_per_second == 0 || machine.bytes_per_second == 0)
    throw UserError({.what = str("the machine lacks ", machine.flops_per_second == 0 ? "F, its flops" : "B, its bytes",
                                 " per second"),
                     .where = where,
                     .fix = "give both, as in F=2e11,B=2e10"});
  return machine;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

using Vector [[gnu::vector_size(32)]] = float;  // eight floats: one register of the baseline machine

// Multiply-adds in registers only. More sums than a unit is deep, so that they do not wait for each other.
[[gnu::noinline, gnu::optimize("fp-contract=fast")]] float multiply_adds(int rounds, float factor) {
  std::array<Vector, 12> sums{};
  for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += static_cast<float>(j);  // unlike, or they would become one
  const Vector by = Vector{} + factor, plus = Vector{} + 1.0f;
  for (int i = 0; i < rounds; ++i)
#pragma GCC unroll 12  // or the sums would go through memory
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = sums[j] * by + plus;
  Vector all{};
  for (const Vector& sum : sums) all += sum;
  return all[0] + all[7];
}

thread_local volatile float kept;  // so that no measured work is dropped

// The best of several, since whatever else runs here only slows it.
template <class Operation>
double best_seconds(int times, const Operation& operation) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const double begin = now();
    operation();
    best = std::min(best, now() - begin);
  }
  return best;
}

}  // namespace

Machine parse_machine(const std::string& text) {
  if (text.find('=') != std::string::npos) return machine_of(text, str("machine \"", text, "\""));
  std::ifstream file(text);
  if (!file)
    throw UserError({.what = str("the machine file '", text, "' cannot be read"),
                     .where = text,
                     .fix = "give the path of a file, or the rates themselves, as in F=2e11,B=2e10"});
  std::ostringstream content;
  content << file.rdbuf();
  return machine_of(content.str(), str("machine file ", text));
}

namespace {

Machine measure_thread() {
  constexpr int kRounds = 200'000;
  const double flops = 2.0 * 8 * 12 * kRounds;
  const double flop_seconds = best_seconds(5, [] { kept = multiply_adds(kRounds, 0.5f); });
  const std::size_t count = std::size_t{4} << 20;  // 16 MiB each: beyond the caches of one core
  std::vector<float> from(count, 1.0f), to(count, 0.0f);
  const double copy_seconds = best_seconds(5, [&] {
    std::copy(from.begin(), from.end(), to.begin());
    kept = to[count / 2];
  });
  return {.flops_per_second = flops / flop_seconds,
          .bytes_per_second = 2.0 * static_cast<double>(count * sizeof(float)) / copy_seconds};
}

}  // namespace

Machine measure_machine(int threads) {
  std::vector<Machine> each(static_cast<std::size_t>(std::max(1, threads)));
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < each.size(); ++i) others.emplace_back([&, i] { each[i] = measure_thread(); });
  each[0] = measure_thread();
  for (std::thread& thread : others) thread.join();
  Machine all;
  for (const Machine& one : each) {
    all.flops_per_second += one.flops_per_second;
    all.bytes_per_second += one.bytes_per_second;
  }
  return all;
}

}  // namespace weft
