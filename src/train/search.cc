#include "train/search.h"

#include <algorithm>
#include <cmath>

namespace weft::decode {

namespace {

// The one candidate there is, greedy or drawn.
class Single : public Search {
 public:
  Single(const Options& options, StopsAfter stops_after)
      : ends_(end_tokens(options)), stops_after_(std::move(stops_after)) {
    tokens_ = {0};
    parents_ = {0};
  }

  void take(const Candidates& candidates) override {
    if (found_.ended) return;
    tokens_[0] = candidates.ids[0];
    found_.score += candidates.log_probabilities[0];
    found_.log_probabilities.push_back(candidates.log_probabilities[0]);
    if (std::ranges::find(ends_, tokens_[0]) != ends_.end()) {
      found_.ended = true;
      found_.end_token = tokens_[0];
    } else {
      found_.ids.push_back(tokens_[0]);
      found_.ended = stops_after_ && stops_after_(found_.ids);
    }
  }

  bool is_done() const override { return found_.ended; }
  std::vector<Hypothesis> result() const override { return {found_}; }
  std::int64_t length() const override { return static_cast<std::int64_t>(found_.ids.size()); }
  void append_ids(std::size_t, std::vector<std::int32_t>& to) const override {
    to.insert(to.end(), found_.ids.begin(), found_.ids.end());
  }
  bool keeps_last() const override { return found_.end_token < 0; }

 private:
  const std::vector<std::int32_t> ends_;
  const StopsAfter stops_after_;
  Hypothesis found_;
};

// Keeps the likeliest sequences that go on, and apart from them the best that have ended. All sequences of a row are
// paths in one tree, from a token back to the first: a step adds a node for each beam, however long the sequences are.
class Beams : public Search {
 public:
  Beams(const Options& options, std::int64_t positions, StopsAfter stops_after)
      : options_(options),
        ends_(end_tokens(options)),
        considered_(static_cast<std::size_t>(candidate_count(options))),
        most_penalty_(penalty(positions)),
        stops_after_(std::move(stops_after)),
        alive_(beams()) {
    alive_[0].log_probability = 0;  // all beams are alike at first: one of them counts
    tokens_.assign(beams(), 0);
    for (std::size_t b = 0; b < beams(); ++b) parents_.push_back(static_cast<std::int32_t>(b));
  }

  void take(const Candidates& candidates) override {
    ++length_;
    choose_steps(candidates);
    next_.clear();
    for (const Step& step : steps_) {
      if (step.log_probability <= kNone / 2) continue;
      const std::int32_t from = alive_[step.beam].node;
      const double score = step.log_probability / penalty(length_);
      if (std::ranges::find(ends_, step.id) != ends_.end()) finish({from, score, step.id, step.added});
      else if (stops(from, step.id)) finish({add_node(from, step), score});
      else if (next_.size() < beams()) {
        tokens_[next_.size()] = step.id;
        parents_[next_.size()] = static_cast<std::int32_t>(step.beam);
        next_.push_back({add_node(from, step), step.log_probability});
      }
    }
    next_.resize(beams());
    alive_.swap(next_);
  }

  // Log probabilities only fall, and no penalty is larger than that of the full length. So the list of n_best is final
  // when its last score is above this bound: what a row gives does not depend on early_stop or on other rows.
  bool is_done() const override {
    const auto n = static_cast<std::size_t>(options_.n_best);
    if (!options_.early_stop || finished_.size() < n) return false;
    return finished_[n - 1].score > alive_[0].log_probability / most_penalty_;
  }

  std::vector<Hypothesis> result() const override {
    std::vector<Hypothesis> all;
    for (const Finished& f : finished_) {
      Hypothesis h = path_to(f.node);
      h.score = f.score;
      h.ended = true;
      h.end_token = f.end_token;
      if (f.end_token >= 0) h.log_probabilities.push_back(f.end_log_probability);
      all.push_back(std::move(h));
    }
    if (all.empty())
      for (const Alive& alive : alive_) {
        if (alive.log_probability <= kNone / 2) continue;
        all.push_back(path_to(alive.node));
        all.back().score = alive.log_probability;
      }
    if (all.size() > static_cast<std::size_t>(options_.n_best)) all.resize(static_cast<std::size_t>(options_.n_best));
    return all;
  }

  std::int64_t length() const override { return length_; }
  void append_ids(std::size_t beam, std::vector<std::int32_t>& to) const override {
    const auto begin = static_cast<std::ptrdiff_t>(to.size());
    for (std::int32_t n = alive_[beam].node; n >= 0; n = node(n).parent) to.push_back(node(n).id);
    std::reverse(to.begin() + begin, to.end());
  }
  bool keeps_last() const override { return true; }

 private:
  static constexpr double kNone = -1e7;  // the log probability of a beam that is none

  struct Node {
    std::int32_t parent, id;  // parent: -1 for a first token
    double log_probability;   // of this token
  };
  struct Alive {
    std::int32_t node = -1;  // its last token
    double log_probability = kNone;
  };
  struct Finished {
    std::int32_t node;
    double score;
    std::int32_t end_token = -1;
    double end_log_probability = 0;
  };
  struct Step {
    std::size_t number;  // among the candidates
    std::size_t beam;
    std::int32_t id;
    double added, log_probability;  // of this token; of all
  };

  std::size_t beams() const { return static_cast<std::size_t>(options_.beams); }
  double penalty(std::int64_t tokens) const { return std::pow((5 + static_cast<double>(tokens)) / 6, options_.alpha); }
  const Node& node(std::int32_t n) const { return nodes_[static_cast<std::size_t>(n)]; }

  // The likeliest candidates of all beams, so many that k go on. Ties go to the earlier beam.
  void choose_steps(const Candidates& candidates) {
    const std::size_t each = candidates.ids.size() / beams();
    steps_.clear();
    for (std::size_t i = 0; i < candidates.ids.size(); ++i) {
      const double added = candidates.log_probabilities[i];
      steps_.push_back({i, i / each, candidates.ids[i], added, alive_[i / each].log_probability + added});
    }
    const auto better = [](const Step& a, const Step& b) {
      return a.log_probability != b.log_probability ? a.log_probability > b.log_probability : a.number < b.number;
    };
    const std::size_t count = std::min(steps_.size(), considered_);
    std::partial_sort(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(count), steps_.end(), better);
    steps_.resize(count);
  }

  bool stops(std::int32_t from, std::int32_t id) {
    if (!stops_after_) return false;
    Hypothesis path = path_to(from);
    path.ids.push_back(id);
    return stops_after_(path.ids);
  }

  std::int32_t add_node(std::int32_t parent, const Step& step) {
    nodes_.push_back({parent, step.id, step.added});
    return static_cast<std::int32_t>(nodes_.size() - 1);
  }

  // Keeps the best k, in order; of equal scores the earlier.
  void finish(const Finished& one) {
    const auto after = std::ranges::find_if(finished_, [&](const Finished& f) { return f.score < one.score; });
    finished_.insert(after, one);
    if (finished_.size() > beams()) finished_.pop_back();
  }

  Hypothesis path_to(std::int32_t last) const {
    Hypothesis path;
    for (std::int32_t n = last; n >= 0; n = node(n).parent) {
      path.ids.push_back(node(n).id);
      path.log_probabilities.push_back(node(n).log_probability);
    }
    std::ranges::reverse(path.ids);
    std::ranges::reverse(path.log_probabilities);
    return path;
  }

  const Options options_;
  const std::vector<std::int32_t> ends_;
  const std::size_t considered_;
  const double most_penalty_;
  const StopsAfter stops_after_;
  std::int64_t length_ = 0;
  std::vector<Node> nodes_;
  std::vector<Alive> alive_, next_;  // best first; next_ and steps_ are kept for their memory
  std::vector<Finished> finished_;   // score: log p over the penalty; best first
  std::vector<Step> steps_;
};

}  // namespace

std::vector<std::int32_t> end_tokens(const Options& options) {
  std::vector<std::int32_t> ids = {kEnd};
  for (const std::int32_t id : options.stop_tokens)
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  return ids;
}

std::int64_t candidate_count(const Options& options) {
  if (options.beams == 1) return 1;
  return options.beams * (1 + static_cast<std::int64_t>(end_tokens(options).size()));
}

std::unique_ptr<Search> make_search(const Options& options, std::int64_t positions, StopsAfter stops_after) {
  if (options.beams == 1) return std::make_unique<Single>(options, std::move(stops_after));
  return std::make_unique<Beams>(options, positions, std::move(stops_after));
}

}  // namespace weft::decode
