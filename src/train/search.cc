#include "train/search.h"

#include <algorithm>
#include <cmath>

namespace weft::decode {

namespace {

// The one candidate there is, greedy or drawn.
class Single : public Search {
 public:
  Single() {
    tokens_ = {0};
    parents_ = {0};
  }

  void take(const Candidates& candidates) override {
    if (found_.ended) return;
    tokens_[0] = candidates.ids[0];
    found_.score += candidates.log_probabilities[0];
    if (tokens_[0] == kEnd) found_.ended = true;
    else found_.ids.push_back(tokens_[0]);
  }

  bool is_done() const override { return found_.ended; }
  std::vector<Hypothesis> result() const override { return {found_}; }

 private:
  Hypothesis found_;
};

// Keeps the likeliest sequences that go on, and apart from them the best that have ended.
class Beams : public Search {
 public:
  Beams(const Options& options, std::int64_t positions)
      : options_(options), most_penalty_(penalty(positions)), alive_(beams(), Hypothesis{.score = kNone}) {
    alive_[0].score = 0;  // all beams are alike at first: one of them counts
    tokens_.assign(beams(), 0);
    for (std::size_t b = 0; b < beams(); ++b) parents_.push_back(static_cast<std::int32_t>(b));
  }

  void take(const Candidates& candidates) override {
    ++length_;
    const std::vector<Step> best = best_steps(candidates);
    std::vector<Hypothesis> alive;
    for (const Step& step : best) {
      if (step.log_probability <= kNone / 2) continue;
      if (step.id == kEnd) {
        finished_.push_back({alive_[step.beam].ids, step.log_probability / penalty(length_), true});
      } else if (alive.size() < beams()) {
        tokens_[alive.size()] = step.id;
        parents_[alive.size()] = static_cast<std::int32_t>(step.beam);
        alive.push_back({alive_[step.beam].ids, step.log_probability, false});
        alive.back().ids.push_back(step.id);
      }
    }
    alive.resize(beams(), Hypothesis{.score = kNone});
    alive_ = std::move(alive);
    std::stable_sort(finished_.begin(), finished_.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    if (finished_.size() > beams()) finished_.resize(beams());
  }

  // Log probabilities only fall, and no penalty is larger than that of the full length.
  bool is_done() const override {
    if (!options_.early_stop || finished_.empty()) return false;
    return finished_.back().score > alive_[0].score / most_penalty_;
  }

  std::vector<Hypothesis> result() const override {
    std::vector<Hypothesis> all = finished_;
    if (all.empty())
      for (const Hypothesis& alive : alive_)
        if (alive.score > kNone / 2) all.push_back(alive);
    if (all.size() > static_cast<std::size_t>(options_.n_best)) all.resize(static_cast<std::size_t>(options_.n_best));
    return all;
  }

 private:
  static constexpr double kNone = -1e7;  // the log probability of a beam that is none

  struct Step {
    std::size_t beam;
    std::int32_t id;
    double log_probability;
  };

  std::size_t beams() const { return static_cast<std::size_t>(options_.beams); }
  double penalty(std::int64_t tokens) const { return std::pow((5 + static_cast<double>(tokens)) / 6, options_.alpha); }

  // The likeliest 2 k of all beams; each beam has at most one that ends, so that k go on. Ties go to the earlier beam.
  std::vector<Step> best_steps(const Candidates& candidates) const {
    const std::size_t each = candidates.ids.size() / beams();
    std::vector<Step> steps;
    for (std::size_t i = 0; i < candidates.ids.size(); ++i)
      steps.push_back({i / each, candidates.ids[i], alive_[i / each].score + candidates.log_probabilities[i]});
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.log_probability > b.log_probability; });
    if (steps.size() > 2 * beams()) steps.resize(2 * beams());
    return steps;
  }

  const Options options_;
  const double most_penalty_;
  std::int64_t length_ = 0;
  std::vector<Hypothesis> alive_;     // score: log p; best first
  std::vector<Hypothesis> finished_;  // score: log p over the penalty; best first
};

}  // namespace

std::unique_ptr<Search> make_search(const Options& options, std::int64_t positions) {
  if (options.beams == 1) return std::make_unique<Single>();
  return std::make_unique<Beams>(options, positions);
}

}  // namespace weft::decode
