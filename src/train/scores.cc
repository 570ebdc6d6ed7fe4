#include <cmath>
#include <map>

#include "weft/evaluate.h"

namespace weft::evaluate {

namespace {

double over(double sum, std::int64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }

}  // namespace

void Scores::add(const Array& nll, const Array& counted, const Array& right, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t n = std::llround(counted.at(row)), hits = std::llround(right.at(row));
    if (n == 0) continue;
    negative_log_likelihood += nll.at(row);
    tokens += n;
    correct += hits;
    ++sequences;
    whole += hits == n;
  }
}

void Scores::add_packed(const Array& nll, const Array& counted, const Array& right, const Array& outcomes) {
  const std::int64_t rows = outcomes.shape()[0].size, length = outcomes.shape()[1].size;
  Scores of_rows;
  of_rows.add(nll, counted, right, rows);
  negative_log_likelihood += of_rows.negative_log_likelihood;
  tokens += of_rows.tokens;
  correct += of_rows.correct;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::map<std::int64_t, bool> all_right;  // by segment
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t outcome = std::llround(outcomes.at(row * length + i));
      if (outcome == 0) continue;
      const auto [segment, is_new] = all_right.emplace(outcome / 2, true);
      segment->second = segment->second && outcome % 2 == 1;
    }
    for (const auto& [segment, is_whole] : all_right) whole += is_whole;
    sequences += static_cast<std::int64_t>(all_right.size());
  }
}

double Scores::log_perplexity() const { return over(negative_log_likelihood, tokens); }
double Scores::log_perplexity_per_word(std::int64_t words) const { return over(negative_log_likelihood, words); }
double Scores::token_accuracy() const { return over(static_cast<double>(correct), tokens); }
double Scores::sequence_accuracy() const { return over(static_cast<double>(whole), sequences); }

}  // namespace weft::evaluate
