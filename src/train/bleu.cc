#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "weft/error.h"
#include "weft/evaluate.h"

namespace weft::evaluate {

namespace {

constexpr std::size_t kOrders = 4;

using Counts = std::map<std::vector<std::string>, std::int64_t>;

// How often each run of 1 to 4 tokens occurs.
Counts runs_of(const std::vector<std::string>& tokens) {
  Counts counts;
  for (std::size_t n = 1; n <= kOrders; ++n)
    for (std::size_t i = 0; i + n <= tokens.size(); ++i)
      ++counts[{tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

// What the references of one line allow, and the length that is nearest to the hypothesis', of two the shorter.
struct Allowed {
  Counts counts;
  std::int64_t length = -1;

  void add(const std::vector<std::string>& reference, std::int64_t hypothesis_length) {
    for (const auto& [run, count] : runs_of(reference)) counts[run] = std::max(counts[run], count);
    const auto size = static_cast<std::int64_t>(reference.size());
    const std::int64_t now = std::abs(size - hypothesis_length), before = std::abs(length - hypothesis_length);
    if (length < 0 || now < before || (now == before && size < length)) length = size;
  }
};

// The geometric mean of the precisions; each order without a match counts for half as much as the one before.
void finish(Bleu& bleu) {
  const auto hypothesis = static_cast<double>(bleu.hypothesis_length),
             reference = static_cast<double>(bleu.reference_length);
  if (hypothesis < reference) bleu.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  if (std::all_of(bleu.correct.begin(), bleu.correct.end(), [](std::int64_t n) { return n == 0; })) return;
  double share = 1, logs = 0;
  for (std::size_t n = 0; n < kOrders; ++n) {
    if (bleu.total[n] == 0) return;  // no line is that long: the score is 0
    if (bleu.correct[n] == 0) share /= 2;
    const double matches = bleu.correct[n] == 0 ? share : static_cast<double>(bleu.correct[n]);
    bleu.precisions[n] = 100 * matches / static_cast<double>(bleu.total[n]);
    logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(logs / kOrders);
}

std::string fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, number);
  return text;
}

void check(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
           Site site) {
  if (hypotheses.empty() || references.empty())
    throw UserError({.code = "bleu.nothing-to-compare",
                     .what = "BLEU of " + std::to_string(hypotheses.size()) + " lines against " +
                             std::to_string(references.size()) + " references",
                     .where = site,
                     .fix = "give at least one line and one reference"});
  for (const std::vector<std::string>& reference : references)
    if (reference.size() != hypotheses.size())
      throw UserError({.code = "bleu.line-counts-differ",
                       .what = "BLEU of " + std::to_string(hypotheses.size()) + " lines against a reference of " +
                               std::to_string(reference.size()),
                       .where = site,
                       .fix = "give as many lines of each reference as of the translation, in the same order"});
}

}  // namespace

Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
          const std::string& tokenizer, Site site) {
  check(hypotheses, references, site);
  Bleu bleu;
  for (std::size_t line = 0; line < hypotheses.size(); ++line) {
    const std::vector<std::string> hypothesis = tokens(hypotheses[line], tokenizer, site);
    const auto length = static_cast<std::int64_t>(hypothesis.size());
    Allowed allowed;
    for (const std::vector<std::string>& reference : references)
      allowed.add(tokens(reference[line], tokenizer, site), length);
    bleu.hypothesis_length += length;
    bleu.reference_length += allowed.length;
    for (const auto& [run, count] : runs_of(hypothesis)) {
      bleu.total[run.size() - 1] += count;
      const auto found = allowed.counts.find(run);
      if (found != allowed.counts.end()) bleu.correct[run.size() - 1] += std::min(count, found->second);
    }
  }
  finish(bleu);
  bleu.signature = "nrefs:" + std::to_string(references.size()) + "|case:mixed|eff:no|tok:" + tokenizer +
                   "|smooth:exp|version:2.6.0";
  return bleu;
}

std::string Bleu::text() const {
  std::string shares;
  for (double precision : precisions) shares += (shares.empty() ? "" : "/") + fixed(precision, 1);
  const double ratio =
      reference_length == 0 ? 0 : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
  return "BLEU|" + signature + " = " + fixed(score, 2) + " " + shares + " (BP = " + fixed(brevity_penalty, 3) +
         " ratio = " + fixed(ratio, 3) + " hyp_len = " + std::to_string(hypothesis_length) +
         " ref_len = " + std::to_string(reference_length) + ")";
}

}  // namespace weft::evaluate
