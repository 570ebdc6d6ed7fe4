// A trained model in use. Weights are loaded when the first graph that has them is compiled.
#include <unistd.h>

#include <algorithm>

#include "train/decode_batch.h"
#include "train/identity.h"
#include "train/parts.h"
#include "train/error_setting.h"
#include "train/scorer.h"
#include "train/text_stream.h"
#include "weft/error.h"
#include "weft/detail/progress.h"
#include "weft/detail/session_access.h"
#include "weft/detail/words.h"

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
                                         {"decode.more-texts-than-beams", "decode.n_best"},
                                         {"decode.stop-token-out-of-range", "decode.stop_tokens"},
                                         {"decode.too-many-stop-tokens", "decode.stop_tokens"},
                                         {"decode.min-tokens-without-room", "decode.min_tokens"}},
                               .section = "decode",
                               .otherwise = "decode.max_length"};

// A prompt must leave room for a token.
void check_room(const Config& config, std::size_t size, std::size_t number, std::size_t prompts) {
  const auto tokens = static_cast<std::int64_t>(size);
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

void check_batch(const Config& c) {
  const auto refuse = [&](ErrorCode code, const char* key, const std::string& what, const std::string& fix) {
    throw UserError({.code = code, .what = what, .where = place_of(c, key), .fix = fix});
  };
  if (!c.decode.memory.empty() && !bytes_of(c.decode.memory))
    refuse("decode.bad-memory", "decode.memory", "'" + c.decode.memory + "' is no number of bytes",
           "write sizes like 512MiB or 2GiB");
}

}  // namespace

struct TrainedModel::State {
  Checkpoint checkpoint;
  Config config;
  data::Vocabulary vocabulary;
  StopTexts stops;
  Session session;
  Speed speed = {};
  std::vector<std::int32_t> prefix = {};  // of all prompts

  State(const std::string& path, const std::vector<std::string>& assignments,
        const std::vector<std::string>& allow_change)
      : checkpoint(Checkpoint::open(path)),
        config(config_of(checkpoint, assignments, allow_change)),
        vocabulary(data::Vocabulary::of(config.data.vocabulary)),
        stops(vocabulary, config.decode.stop, config.decode.min_tokens, place_of(config, "decode.stop")),
        session(open_session(config)) {}

  // The weights of what has been compiled. Caches and the like are the session's own.
  void load() { checkpoint.load(session, {.optimizer_state = false, .allow_missing = true}); }

  // Of what comes after the prompt.
  TextStream stream(const std::vector<std::int32_t>& prompt) const {
    return TextStream(vocabulary, continued(prompt), stops);
  }
  // The tokens whose text goes on.
  std::vector<std::int32_t> continued(const std::vector<std::int32_t>& prompt) const {
    return config.model->decoding() == Decoding::kContinuation ? prompt : std::vector<std::int32_t>();
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

// The prompts as ids, and what a decoder needs to know of them.
struct TrainedModel::Prompts {
  std::vector<std::vector<std::int32_t>> ids;
  std::int64_t shortest = 0, longest = 0;
  DecodeBatch batch;
};

TrainedModel::Prompts TrainedModel::read(const std::vector<std::string>& prompts) {
  State& s = *state_;
  check_decodes(s.config, path());
  check_batch(s.config);
  const Decoding decoding = s.config.model->decoding();
  Prompts read;
  for (const std::string& prompt : prompts) {
    read.ids.push_back(s.vocabulary.encode(prompt));
    if (decoding != Decoding::kContinuation) read.ids.back().push_back(data::Vocabulary::kEnd);
    if (decoding != Decoding::kTranslation)
      check_room(s.config, s.prefix.size() + read.ids.back().size(), read.ids.size(), prompts.size());
    const auto size = static_cast<std::int64_t>(read.ids.back().size());
    read.longest = std::max(read.longest, size);
    read.shortest = read.ids.size() == 1 ? size : std::min(read.shortest, size);
  }
  read.batch = placed(s.config, kDecoding, [&] {
    return decode_batch(s.session, s.config, static_cast<std::int64_t>(prompts.size()), read.shortest, read.longest);
  });
  return read;
}

void TrainedModel::set_prefix(const std::string& text) { state_->prefix = state_->vocabulary.encode(text); }

TrainedModel::Plan TrainedModel::plan(const std::vector<std::string>& prompts) {
  const Prompts read = this->read(prompts);
  return {read.batch.rows, read.longest, read.batch.memory, read.batch.limit};
}

std::vector<std::vector<TrainedModel::Text>> TrainedModel::generate(const std::vector<std::string>& prompts,
                                                                    const Listener& listener,
                                                                    const TextListener& text_listener) {
  State& s = *state_;
  check_decodes(s.config, path());
  if (!detail::any(s.session, !prompts.empty())) return {};
  const Prompts read = this->read(prompts);
  const auto& ids = read.ids;
  const std::unique_ptr<TextDecoder> decoder = placed(s.config, kDecoding, [&] {
    return s.config.model->decoder(s.session, s.config, read.batch.rows, read.shortest, read.longest);
  });
  s.load();
  if (!s.prefix.empty()) decoder->set_prefix(s.prefix);
  std::vector<TextStream> streams;
  if (listener) {
    for (const auto& row : ids) streams.push_back(s.stream(row));
    decoder->on_token([&](std::size_t row, std::int32_t id) { tell(listener, row, streams[row].add(id)); });
  }
  std::vector<std::vector<Text>> texts(ids.size());
  if (!s.stops.empty())
    decoder->stop_when([&](std::size_t row, std::span<const std::int32_t> generated) {
      return s.stops.are_in(s.vocabulary, s.continued(ids[row]), generated);
    });
  std::vector<bool> done(ids.size(), false);
  std::size_t count = 0, told = 0;  // rows that are done; those that the listener has
  // A listener prints, most often to the terminal that the progress would be drawn on.
  ProgressLine progress(wire::process() == 0 && (!text_listener || isatty(STDOUT_FILENO) == 0));
  placed(s.config, {.otherwise = "data.vocabulary"}, [&] { decoder->start(ids); });
  while (const std::optional<decode::Finished> row = decoder->next()) {
    for (const decode::Hypothesis& h : row->hypotheses) {
      TextStream stream = s.stream(ids[row->row]);
      const std::string text = stream.whole(h.ids);
      texts[row->row].push_back({text, h.ids, h.score, h.ended, h.log_probabilities, h.end_token, stream.stop_text()});
    }
    if (listener && s.config.decode.beams == 1) tell(listener, row->row, streams[row->row].rest());
    done[row->row] = true;
    ++count;
    for (; text_listener && told < done.size() && done[told]; ++told) text_listener(told, texts[told]);
    if (count < ids.size())
      progress.draw(static_cast<double>(count) / static_cast<double>(ids.size()),
                    {{std::to_string(count) + " of " + std::to_string(ids.size()) + " texts"}});
  }
  const decode::Speed speed = decoder->speed();
  s.speed = {speed.tokens, speed.prefill_seconds, speed.decode_seconds};
  return texts;
}

}  // namespace weft::train
