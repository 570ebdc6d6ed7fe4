// A trained model in use. Weights are loaded when the first graph that has them is compiled.
#include <algorithm>
#include <numeric>

#include "train/identity.h"
#include "train/parts.h"
#include "train/error_setting.h"
#include "train/scorer.h"
#include "train/text_stream.h"
#include "weft/error.h"
#include "weft/detail/progress.h"

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

const SettingOfError kDecoding{.codes = {{"store.", "mesh.store"},
                                         {"layout.", "mesh.layout"},
                                         {"memory.", "mesh.layout"},
                                         {"decode.beams-and-sampling", "decode.beams"},
                                         {"decode.more-texts-than-beams", "decode.n_best"}},
                               .section = "decode",
                               .otherwise = "decode.max_length"};

// A prompt must leave room for a token.
void check_room(const Config& config, const std::vector<std::int32_t>& ids, std::size_t number, std::size_t prompts) {
  const auto tokens = static_cast<std::int64_t>(ids.size());
  if (tokens < config.decode.max_length) return;
  const std::string which = prompts == 1 ? "the prompt" : "prompt " + std::to_string(number);
  throw UserError({.code = "decode.no-room-after-prompt",
                   .what = which + " has " + std::to_string(tokens) + " tokens and leaves no room for more: " +
                           "decode.max_length is " + std::to_string(config.decode.max_length) + ", prompt counted",
                   .where = place_of(config, "decode.max_length"),
                   .fix = "give --length " + std::to_string(tokens + 1) + " or more, or shorten the prompt"});
}

void tell(const TrainedModel::Listener& listener, std::size_t prompt, const std::string& piece) {
  if (!piece.empty()) listener(prompt, piece);
}

void check_decodes(const Config& config, const std::string& path) {
  if (config.model->decoding() != Decoding::kNone) return;
  throw UserError({.code = "decode.kind-makes-no-text",
                   .what = "'" + path + "' is a model of kind '" + config.model->kind() + "', which makes no text",
                   .where = path,
                   .fix = "use weft eval, which says how well it does on files"});
}

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

  // Of what comes after the prompt.
  TextStream stream(const std::vector<std::int32_t>& prompt) const {
    const bool goes_on = config.model->decoding() == Decoding::kContinuation;
    return TextStream(vocabulary, goes_on ? prompt : std::vector<std::int32_t>());
  }

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

Evaluation TrainedModel::evaluate(const std::vector<std::string>& files) {
  Scorer scorer(state_->session, state_->config, files);
  state_->load();
  return scorer.evaluation();
}

std::vector<Sums> TrainedModel::evaluate_each(const std::vector<std::string>& files) {
  Scorer scorer(state_->session, state_->unpacked(), files);
  state_->load();
  return scorer.each();
}

std::vector<std::vector<TrainedModel::Text>> TrainedModel::generate(const std::vector<std::string>& prompts,
                                                                    const Listener& listener) {
  State& s = *state_;
  check_decodes(s.config, path());
  const Task& task = s.config.model.task();
  std::vector<std::vector<std::int32_t>> ids;
  std::size_t longest = 0, shortest = prompts.empty() ? 0 : SIZE_MAX;
  for (const std::string& prompt : prompts) {
    ids.push_back(s.vocabulary.encode(prompt));
    if (task.decoding() != Decoding::kContinuation) ids.back().push_back(data::Vocabulary::kEnd);
    if (task.decoding() != Decoding::kTranslation) check_room(s.config, ids.back(), ids.size(), prompts.size());
    longest = std::max(longest, ids.back().size());
    shortest = std::min(shortest, ids.back().size());
  }
  const auto count = static_cast<std::int64_t>(prompts.size());
  const std::int64_t batch =
      std::min(s.config.sequences(), rounded_up(std::max<std::int64_t>(1, count), s.session.mesh().size()));
  const std::unique_ptr<TextDecoder> decoder = placed(s.config, kDecoding, [&] {
    return task.decoder(s.session, s.config, batch, static_cast<std::int64_t>(shortest),
                        static_cast<std::int64_t>(longest));
  });
  s.load();
  std::vector<std::size_t> order(ids.size());  // rows of about the same length go together
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return ids[a].size() < ids[b].size(); });
  std::vector<std::vector<Text>> texts(ids.size());
  ProgressLine progress(wire::process() == 0);
  // Within a call the decoder keeps its batch full; between calls the progress is drawn.
  constexpr std::size_t kBatchesOfACall = 16;
  const std::size_t together = kBatchesOfACall * static_cast<std::size_t>(batch);
  for (std::size_t first = 0; first < order.size(); first += together) {
    const std::size_t end = std::min(order.size(), first + together);
    std::vector<std::vector<std::int32_t>> rows;
    std::vector<TextStream> streams;
    for (std::size_t i = first; i < end; ++i) {
      rows.push_back(ids[order[i]]);
      streams.push_back(s.stream(rows.back()));
    }
    if (listener)
      decoder->on_token(
          [&](std::size_t row, std::int32_t id) { tell(listener, order[first + row], streams[row].add(id)); });
    const auto found = placed(s.config, {.otherwise = "data.vocabulary"}, [&] { return decoder->run(rows); });
    for (std::size_t i = first; i < end; ++i) {
      for (const decode::Hypothesis& h : found[i - first])
        texts[order[i]].push_back({s.stream(rows[i - first]).whole(h.ids), h.ids, h.score, h.ended});
      if (listener && s.config.decode.beams == 1) tell(listener, order[i], streams[i - first].rest());
    }
    if (end < order.size())
      progress.draw(static_cast<double>(end) / static_cast<double>(count),
                    {{std::to_string(end) + " of " + std::to_string(count) + " texts"}});
  }
  const decode::Speed speed = decoder->speed();
  s.speed = {speed.tokens, speed.prefill_seconds, speed.decode_seconds};
  return texts;
}

}  // namespace weft::train
