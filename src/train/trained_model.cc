// A trained model in use. Weights are loaded when the first graph that has them is compiled.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "train/identity.h"
#include "train/parts.h"
#include "train/scorer.h"
#include "weft/decode.h"
#include "weft/error.h"

namespace weft::train {

namespace {

Config config_of(const Checkpoint& checkpoint, const std::vector<std::string>& assignments,
                 const std::vector<std::string>& allow_change) {
  Config config = stored_config(checkpoint);
  for (const std::string& assignment : assignments) set(config, assignment);
  config = completed(config);
  check_identity(checkpoint, config, allow_change, Use::kDecode);
  return config;
}

// One line on a terminal, written over, for a person who waits.
class Waiting {
 public:
  explicit Waiting(std::int64_t all) : all_(all), shown_(isatty(STDERR_FILENO) && wire::process() == 0) {}
  ~Waiting() {
    if (shown_ && drawn_) std::cerr << "\r\33[K" << std::flush;
  }
  void done(std::int64_t count) {
    if (!shown_ || count == all_) return;
    drawn_ = true;
    std::cerr << "\r\33[K" << count << " of " << all_ << " texts" << std::flush;
  }

 private:
  std::int64_t all_;
  bool shown_, drawn_ = false;
};

// A multiple of `unit` that is at least `least`.
std::int64_t rounded_up(std::int64_t least, std::int64_t unit) { return (least + unit - 1) / unit * unit; }

}  // namespace

struct TrainedModel::State {
  Checkpoint checkpoint;
  Config config;
  data::Vocabulary vocabulary;
  Session session;
  Speed speed = {};

  State(const std::string& path, const std::vector<std::string>& assignments,
        const std::vector<std::string>& allow_change)
      : checkpoint(Checkpoint::open(path)),
        config(config_of(checkpoint, assignments, allow_change)),
        vocabulary(data::Vocabulary::of(config.data.vocabulary)),
        session(open_session(config)) {}

  // The weights of what has been compiled. Caches and the like are the session's own.
  void load() { checkpoint.load(session, {.optimizer_state = false, .allow_missing = true}); }

  Config unpacked() const {
    Config c = config;
    c.data.pack = false;
    return c;
  }
};

TrainedModel::TrainedModel(const std::string& path, const std::vector<std::string>& assignments,
                           const std::vector<std::string>& allow_change)
    : state_(std::make_unique<State>(path, assignments, allow_change)) {}
TrainedModel::~TrainedModel() = default;

const Config& TrainedModel::config() const { return state_->config; }
const std::string& TrainedModel::path() const { return state_->checkpoint.path(); }
std::int64_t TrainedModel::step() const { return state_->checkpoint.state().step; }
const TrainedModel::Speed& TrainedModel::speed() const { return state_->speed; }

evaluate::Scores TrainedModel::score(const std::vector<std::string>& files) {
  Scorer scorer(state_->session, state_->config, files);
  state_->load();
  return scorer.scores();
}

std::vector<evaluate::Scores> TrainedModel::score_each(const std::vector<std::string>& files) {
  Scorer scorer(state_->session, state_->unpacked(), files);
  state_->load();
  return scorer.each();
}

std::vector<std::vector<TrainedModel::Text>> TrainedModel::generate(const std::vector<std::string>& prompts) {
  State& s = *state_;
  const bool translates = s.config.model.kind == models::Kind::kEncoderDecoder;
  std::vector<std::vector<std::int32_t>> ids;
  std::size_t longest = 0, shortest = prompts.empty() ? 0 : SIZE_MAX;
  for (const std::string& prompt : prompts) {
    ids.push_back(s.vocabulary.encode(prompt));
    if (translates) ids.back().push_back(data::Vocabulary::kEnd);
    longest = std::max(longest, ids.back().size());
    shortest = std::min(shortest, ids.back().size());
  }
  const auto count = static_cast<std::int64_t>(prompts.size());
  const std::int64_t batch =
      std::min(s.config.sequences(), rounded_up(std::max<std::int64_t>(1, count), s.session.mesh().size()));
  decode::Decoder decoder(s.session, s.config.model, layout_of(s.config), batch,
                          translates ? rounded_up(static_cast<std::int64_t>(longest), 16) : 0,
                          translates ? 0 : static_cast<std::int64_t>(shortest), s.config.decode);
  s.load();
  std::vector<std::size_t> order(ids.size());  // rows of about the same length go together
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return ids[a].size() < ids[b].size(); });
  std::vector<std::vector<Text>> texts(ids.size());
  Waiting waiting(count);
  for (std::size_t first = 0; first < order.size(); first += static_cast<std::size_t>(batch)) {
    const std::size_t end = std::min(order.size(), first + static_cast<std::size_t>(batch));
    std::vector<std::vector<std::int32_t>> rows, none(translates ? end - first : 0);
    for (std::size_t i = first; i < end; ++i) rows.push_back(ids[order[i]]);
    const auto found = translates ? decoder.run(none, rows) : decoder.run(rows);
    for (std::size_t i = first; i < end; ++i)
      for (const decode::Hypothesis& h : found[i - first])
        texts[order[i]].push_back({s.vocabulary.decode(h.ids), h.ids, h.score, h.ended});
    waiting.done(static_cast<std::int64_t>(end));
  }
  s.speed = {decoder.speed().tokens, decoder.speed().prefill_seconds, decoder.speed().decode_seconds};
  return texts;
}

}  // namespace weft::train
