// Metrics: BLEU as sacreBLEU computes it, and perplexity and accuracy from the sums of a scoring graph.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array.h"
#include "weft/site.h"

namespace weft::evaluate {

struct Bleu {
  double score = 0;  // from 0 to 100
  std::array<std::int64_t, 4> correct{}, total{};
  std::array<double, 4> precisions{};  // in percent, after smoothing
  double brevity_penalty = 1;
  std::int64_t hypothesis_length = 0, reference_length = 0;
  std::string signature;  // sacreBLEU's, such as "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"

  std::string text() const;  // sacreBLEU's line: "BLEU|<signature> = 31.44 62.8/38.1/… (BP = 1.000 ratio = … )"
};

// The BLEU of a corpus, with exponential smoothing, equal to sacreBLEU's. `references` holds one or more translations of
// the corpus, each with a line for every hypothesis. The tokenizer is "13a" (WMT's, for languages with spaces), "char"
// (every character is a token) or "none" (words between spaces). UserError if the numbers of lines differ or are 0.
Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
          const std::string& tokenizer = "13a", Site site = Site::current());

// The tokens that BLEU counts in a line. UserError for an unknown tokenizer.
std::vector<std::string> tokens(std::string_view line, const std::string& tokenizer = "13a",
                                Site site = Site::current());
// The number of words between spaces, all space characters of Unicode included.
std::int64_t words(std::string_view text);

// The sums over the rows of many batches.
struct Scores {
  double negative_log_likelihood = 0;
  std::int64_t tokens = 0, correct = 0;
  std::int64_t sequences = 0, whole = 0;  // examples; examples whose tokens are all correct

  // Adds the first `rows` rows of a scoring graph's three results, [batch] each. Rows without tokens do not count.
  void add(const Array& negative_log_likelihood, const Array& tokens, const Array& correct, std::int64_t rows);
  // Adds packed rows, which hold several examples each. `outcomes` is SequenceGraph::outcomes, [batch length].
  void add_packed(const Array& negative_log_likelihood, const Array& tokens, const Array& correct,
                  const Array& outcomes);

  // All are 0 if nothing was added. Perplexities are in nats; `words` is the number of words of the scored text.
  double log_perplexity() const;
  double log_perplexity_per_word(std::int64_t words) const;
  double token_accuracy() const;
  double sequence_accuracy() const;
};

}  // namespace weft::evaluate
