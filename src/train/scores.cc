#include <cmath>

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

double Scores::log_perplexity() const { return over(negative_log_likelihood, tokens); }
double Scores::log_perplexity_per_word(std::int64_t words) const { return over(negative_log_likelihood, words); }
double Scores::token_accuracy() const { return over(static_cast<double>(correct), tokens); }
double Scores::sequence_accuracy() const { return over(static_cast<double>(whole), sequences); }

}  // namespace weft::evaluate
