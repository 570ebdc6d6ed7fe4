// Decoding without caches, beams side by side or batches: every prefix is scored whole, and the search is written as the
// formulas are (docs/decoding.md). What the decoder is held to.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "weft/decode.h"

namespace weft::test {

using Ids = std::vector<std::int32_t>;

// The logits of the next token, from a scoring graph of one row that sees the whole sequence.
class NextToken {
 public:
  NextToken(Session& session, const models::TransformerOptions& model, const Layout& layout, std::int64_t length,
            std::int64_t inputs_length)
      : graph_(models::scoring_graph(model, {.batch = 1,
                                             .length = length,
                                             .inputs_length = inputs_length,
                                             .packed = inputs_length > 0 || model.prefix})),
        run_(session.compile(graph_.graph, layout, {.fetch = {graph_.logits}})) {}

  void set_inputs(const Ids& inputs) {
    inputs_ = inputs;
    known_.clear();
  }

  const std::vector<double>& logits(const Ids& prefix) {
    const auto [at, is_new] = known_.try_emplace(prefix);
    if (!is_new) return at->second;
    Feeds feeds;
    for (const auto& [name, x] : graph_.features) feeds.emplace_back(x, feature(name, x.shape(), prefix));
    const std::vector<double> all = run_.run(feeds)[graph_.logits].values();
    const auto vocab = graph_.logits.shape().size_of("vocab");
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(prefix.size()) * vocab;
    return at->second = std::vector<double>(begin, begin + vocab);
  }

  // After `prefix`, of which the last `generated` tokens are generated, by the rules of the options.
  std::vector<double> log_probabilities(const Ids& prefix, std::int64_t generated, const decode::Options& o) {
    std::vector<double> x = logits(prefix);
    for (std::size_t id = 0; id < x.size(); ++id) {
      const auto token = static_cast<std::int32_t>(id);
      const bool is_end = token == 1 || has(o.stop_tokens, token);
      if (has(prefix, token)) x[id] = x[id] > 0 ? x[id] / o.repetition_penalty : x[id] * o.repetition_penalty;
      if (repeats(prefix, token, static_cast<std::size_t>(o.no_repeat_ngram))) x[id] -= 1e9;
      if (is_end && generated < o.min_tokens) x[id] -= 1e9;
    }
    if (o.never_end) x[1] -= 1e9;
    const double most = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double logit : x) sum += std::exp(logit - most);
    for (double& logit : x) logit -= most + std::log(sum);
    return x;
  }

 private:
  static constexpr std::int32_t kAny = 2;  // stands for what comes after the prefix: no padding

  static bool has(const Ids& ids, std::int32_t id) { return std::ranges::find(ids, id) != ids.end(); }

  // Whether the prefix has the run of `size` tokens that it would end with after this token.
  static bool repeats(Ids prefix, std::int32_t token, std::size_t size) {
    if (size == 0 || prefix.size() < size) return false;
    const Ids before = prefix;
    prefix.push_back(token);
    return std::search(before.begin(), before.end(), prefix.end() - static_cast<std::ptrdiff_t>(size), prefix.end()) !=
           before.end();
  }

  // With an encoder or a prefix all targets count, those of value 0 too: their segments say so.
  Array feature(const std::string& name, const Shape& shape, const Ids& prefix) const {
    Ids values(static_cast<std::size_t>(shape.elements()), 0);
    const Ids& ids = name.starts_with("targets") ? prefix : inputs_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int32_t id = i < ids.size() ? ids[i] : name.starts_with("targets") ? kAny : 0;
      if (name.ends_with("_positions")) values[i] = static_cast<std::int32_t>(i);
      else if (name.ends_with("_segments")) values[i] = name.starts_with("targets") || id != 0;
      else values[i] = id;
    }
    return Array(shape, values);
  }

  models::SequenceGraph graph_;
  Executable run_;
  Ids inputs_;
  std::map<Ids, std::vector<double>> known_;
};

inline bool ends(const decode::Options& o, std::int32_t id) {
  return id == 1 || std::ranges::find(o.stop_tokens, id) != o.stop_tokens.end();
}

inline decode::Hypothesis plain_greedy(NextToken& next, const Ids& prompt, const decode::Options& options) {
  decode::Hypothesis found;
  Ids all = prompt;
  while (static_cast<std::int64_t>(all.size()) < options.max_length && !found.ended) {
    const std::vector<double> logs = next.log_probabilities(all, static_cast<std::int64_t>(found.ids.size()), options);
    const auto best = static_cast<std::int32_t>(std::max_element(logs.begin(), logs.end()) - logs.begin());
    found.score += logs[static_cast<std::size_t>(best)];
    found.log_probabilities.push_back(logs[static_cast<std::size_t>(best)]);
    found.ended = ends(options, best);
    if (found.ended) found.end_token = best;
    else found.ids.push_back(best);
    all.push_back(best);
  }
  return found;
}

// Of one row, which stops by itself.
inline std::vector<decode::Hypothesis> plain_beams(NextToken& next, const Ids& prompt, const decode::Options& o) {
  using decode::Hypothesis;
  const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
  const auto length = static_cast<double>(o.max_length - static_cast<std::int64_t>(prompt.size()));
  const auto k = static_cast<std::size_t>(o.beams);
  std::set<std::int32_t> ending = {1};
  ending.insert(o.stop_tokens.begin(), o.stop_tokens.end());
  const std::size_t considered = k * (1 + ending.size());
  std::vector<Hypothesis> alive = {{}}, finished;
  for (double tokens = 1; tokens <= length; ++tokens) {
    std::vector<Hypothesis> all;
    for (const Hypothesis& a : alive) {
      Ids prefix = prompt;
      prefix.insert(prefix.end(), a.ids.begin(), a.ids.end());
      const std::vector<double> logs = next.log_probabilities(prefix, static_cast<std::int64_t>(a.ids.size()), o);
      for (std::size_t id = 0; id < logs.size(); ++id) {
        const auto token = static_cast<std::int32_t>(id);
        all.push_back({a.ids, a.score + logs[id], ends(o, token), a.log_probabilities});
        all.back().log_probabilities.push_back(logs[id]);
        if (ends(o, token)) all.back().end_token = token;
        else all.back().ids.push_back(token);
      }
    }
    std::stable_sort(all.begin(), all.end(), better);
    all.resize(std::min(all.size(), considered));
    alive.clear();
    for (Hypothesis& h : all) {
      if (h.score < -1e6) continue;  // a token without a probability
      if (!h.ended && alive.size() < k) alive.push_back(h);
      if (h.ended) {
        finished.push_back(h);
        finished.back().score /= std::pow((5 + tokens) / 6, o.alpha);
      }
    }
    std::stable_sort(finished.begin(), finished.end(), better);
    finished.resize(std::min(finished.size(), k));
  }
  std::vector<Hypothesis> best = finished.empty() ? alive : finished;
  best.resize(std::min(best.size(), static_cast<std::size_t>(o.n_best)));
  return best;
}

}  // namespace weft::test
