// The loop over steps. Rows of a batch have different positions; a row reads its prompt as long as it has tokens. A row
// that is done leaves its slot, and the next rows of the queue are read into the free slots.
#include "weft/decode.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <optional>

#include "train/candidates.h"
#include "train/decode_checks.h"
#include "train/decode_weights.h"
#include "train/prompt_reader.h"
#include "train/search.h"
#include "train/steps_ahead.h"
#include "train/token_rules.h"
#include "weft/detail/session_access.h"

namespace weft::decode {

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t size_of(const Ids& ids) { return static_cast<std::int64_t>(ids.size()); }

// Of the keys and values among a graph's variables.
std::int64_t cache_bytes_of(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Tensor& variable : graph.all_variables())
    if (variable.name().starts_with("cache/") && is_float(variable.dtype()))
      bytes += variable.shape().elements() * static_cast<std::int64_t>(weft::size_of(variable.dtype()));
  return bytes;
}

// A row in a slot of the batch: the next token is chosen at `position`, unless the prompt has it.
struct Row {
  std::size_t number;
  Ids prompt, inputs;
  std::int64_t room;  // the most tokens that it gets
  std::unique_ptr<Search> search;
  std::int64_t position = 0;

  bool has_room() const { return position - size_of(prompt) < room; }
  bool is_done() const { return search->is_done() || !has_room(); }
  bool reads() const { return position < size_of(prompt); }

  // The token before its position.
  std::int32_t token(std::size_t beam) const {
    if (position == 0) return 0;
    if (position <= size_of(prompt)) return prompt[static_cast<std::size_t>(position - 1)];
    return search->tokens()[beam];
  }
};

// Free slots wait until there are so many: reading one row takes nearly as long as reading several.
constexpr std::int64_t kSharesOfBatch = 8;

}  // namespace

struct Decoder::State {
  State(Session& session, const models::TransformerOptions& model, const Layout& layout, const Sizes& sizes,
        const Options& options, Site site);

  void refresh(Site site) { copies_->refresh(site); }  // the copies of weights
  void add(std::size_t number, Ids prompt, Ids inputs);
  std::optional<Finished> next();
  void clear();
  void set_prefix(const Ids& ids);
  // Drops all rows and adds these, neighbours of about the same length: they are read in one pass. Rows that may take the
  // most steps go first, so that the last ones are short.
  void add_sorted(const std::vector<Ids>& prompts, const std::vector<Ids>& inputs);

  const models::TransformerOptions model;
  const Sizes sizes;
  const Options options;
  Speed speed;
  std::function<void(std::size_t, std::int32_t)> listener;
  std::function<bool(std::size_t, std::span<const std::int32_t>)> stop_rule;
  std::size_t numbers = 0;  // of rows since the decoder last had none
  Ids prefix;               // of all rows

 private:
  std::int64_t room_after(std::size_t number, const Ids& prompt) const;
  void refill();
  bool waits(std::size_t free) const;  // whether so many free slots are to stay free for now
  Reads reads() const;
  Feeds feeds() const;
  void step();
  std::int64_t steps_to_run() const;  // without the host
  void run_ahead(std::int64_t steps);
  void take(Row& row, std::span<const std::int32_t> ids, std::span<const double> log_probabilities);
  void collect();  // frees the slots of rows that are done

  const models::KernelPanels panels_;
  PromptReader reader_;
  models::StepGraph step_;
  CandidateTensors offer_;
  std::optional<Executable> run_step_;
  std::int64_t most_ahead_;
  std::optional<StepsAhead> ahead_;  // if that is more than 1
  std::optional<CopiedWeights> copies_;

  std::size_t rows_ = 0;  // that have been added and not returned
  std::deque<Row> queue_;
  std::vector<std::optional<Row>> slots_;
  std::deque<Finished> finished_;
};

Decoder::State::State(Session& session, const models::TransformerOptions& model, const Layout& layout,
                      const Sizes& sizes, const Options& options, Site site)
    : model(model),
      sizes(sizes),
      options(options),
      panels_(panels_of(detail::panel_lanes(session), model, options, sizes.batch, session.mesh(), layout)),
      reader_(session, model, layout, decode_sizes(sizes, options, panels_), site),
      step_(models::step_graph(model, decode_sizes(sizes, options, panels_), site)),
      offer_(offer(step_.logits, options, site)),
      most_ahead_(steps_ahead(options, detail::queues_steps(session))),
      slots_(static_cast<std::size_t>(sizes.batch)) {
  GraphCopies reads = reader_.copies();
  reads.copies = copies_without(reads.copies, step_.copies);
  copies_.emplace(session, std::vector<GraphCopies>{{step_.graph, step_.copies}, reads}, layout);
  const Tensors fetch{offer_.ids, offer_.log_probabilities};
  run_step_ = session.compile(step_.graph, layout, {.fetch = fetch, .update = step_.updates});
  if (most_ahead_ > 1) ahead_.emplace(session, model, layout, decode_sizes(sizes, options, panels_), options, site);
  speed.cache_bytes = cache_bytes_of(step_.graph);
}

std::int64_t Decoder::State::room_after(std::size_t number, const Ids& prompt) const {
  const std::int64_t room = options.max_length - size_of(prompt);
  const std::int64_t most = options.row_tokens.empty() ? options.max_tokens : options.row_tokens[number];
  return most > 0 ? std::min(room, most) : room;
}

void Decoder::State::add(std::size_t number, Ids prompt, Ids inputs) {
  const std::int64_t room = room_after(number, prompt);
  StopsAfter stops;
  if (stop_rule) stops = [this, number](std::span<const std::int32_t> ids) { return stop_rule(number, ids); };
  queue_.push_back({number, std::move(prompt), std::move(inputs), room, make_search(options, room, std::move(stops))});
  ++rows_;
}

void Decoder::State::add_sorted(const std::vector<Ids>& prompts, const std::vector<Ids>& inputs) {
  clear();
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto most_steps = [&](std::size_t i) {
    return std::pair(room_after(i, prompts[i]), prompts[i].size() + (inputs.empty() ? 0 : inputs[i].size()));
  };
  std::ranges::stable_sort(order, std::greater{}, most_steps);
  for (const std::size_t i : order) add(i, prompts[i], inputs.empty() ? Ids{} : inputs[i]);
  numbers = prompts.size();
}

void Decoder::State::set_prefix(const Ids& ids) {
  clear();
  prefix = ids;
  speed.prefill_seconds += seconds_of([&] { reader_.set_prefix(ids); });
}

void Decoder::State::clear() {
  queue_.clear();
  finished_.clear();
  for (std::optional<Row>& slot : slots_) slot.reset();
  rows_ = numbers = 0;
}

bool Decoder::State::waits(std::size_t free) const {
  if (queue_.empty() || free == 0) return true;
  if (!reader_.reads() || free == slots_.size()) return false;
  return free < std::min(queue_.size(), std::max<std::size_t>(1, slots_.size() / kSharesOfBatch));
}

void Decoder::State::refill() {
  const auto is_free = [](const std::optional<Row>& slot) { return !slot; };
  if (waits(static_cast<std::size_t>(std::ranges::count_if(slots_, is_free)))) return;
  std::vector<ReadRow> rows;
  for (std::size_t s = 0; s < slots_.size() && !queue_.empty(); ++s) {
    if (slots_[s]) continue;
    Row& row = slots_[s].emplace(std::move(queue_.front()));
    queue_.pop_front();
    row.position = std::min(size_of(prefix) + reader_.prompt_length(), size_of(row.prompt));
    const auto read = std::span(row.prompt).first(static_cast<std::size_t>(row.position));
    rows.push_back({static_cast<std::int64_t>(s), read.subspan(prefix.size()), row.inputs});
  }
  if (reader_.reads()) speed.prefill_seconds += seconds_of([&] { reader_.read(std::move(rows)); });
}

// Free slots, and rows that have no room, read zeros: at position 0 they cost the least.
Reads Decoder::State::reads() const {
  const auto beams = static_cast<std::size_t>(options.beams);
  Reads all{std::vector<std::int32_t>(slots_.size() * beams, 0), std::vector<std::int32_t>(slots_.size(), 0)};
  for (std::size_t r = 0; r < slots_.size(); ++r) {
    if (!slots_[r] || !slots_[r]->has_room()) continue;
    all.positions[r] = static_cast<std::int32_t>(slots_[r]->position);
    for (std::size_t b = 0; b < beams; ++b) all.tokens[r * beams + b] = slots_[r]->token(b);
  }
  return all;
}

Feeds Decoder::State::feeds() const {
  const auto beams = static_cast<std::size_t>(options.beams);
  const Reads read = reads();
  std::vector<std::int32_t> parents(slots_.size() * beams, 0);
  for (std::size_t i = 0; i < parents.size(); ++i) parents[i] = static_cast<std::int32_t>(i % beams);
  std::vector<RowSoFar> rows(slots_.size());
  for (std::size_t r = 0; r < slots_.size(); ++r) {
    if (!slots_[r] || !slots_[r]->has_room()) continue;
    const Row& row = *slots_[r];
    if (!row.reads()) rows[r] = {&row.prompt, row.search.get()};
    if (row.position <= size_of(row.prompt)) continue;
    for (std::size_t b = 0; b < beams; ++b) parents[r * beams + b] = row.search->parents()[b];
  }
  Feeds feeds{{step_.tokens, Array(step_.tokens.shape(), read.tokens)},
              {step_.position, Array(step_.position.shape(), read.positions)}};
  if (step_.parents) feeds.emplace_back(step_.parents, Array(step_.parents.shape(), parents));
  add_rule_feeds(offer_, options, rows, feeds);
  return feeds;
}

void Decoder::State::step() {
  const Feeds fed = feeds();
  std::vector<double> ids, log_probabilities;
  speed.decode_seconds += seconds_of([&] {
    const Values values = run_step_->run(fed);
    ids = values[offer_.ids].values();
    log_probabilities = values[offer_.log_probabilities].values();
  });
  ++speed.steps;
  const std::vector<std::int32_t> whole(ids.begin(), ids.end());
  const std::size_t each = whole.size() / slots_.size();
  for (std::size_t r = 0; r < slots_.size(); ++r) {
    if (!slots_[r] || !slots_[r]->has_room()) continue;
    take(*slots_[r], std::span(whole).subspan(r * each, each),
         std::span(std::as_const(log_probabilities)).subspan(r * each, each));
  }
}

void Decoder::State::take(Row& row, std::span<const std::int32_t> ids, std::span<const double> log_probabilities) {
  if (!row.reads()) row.search->take({ids, log_probabilities});
  const bool chose = !row.reads() && row.search->keeps_last();
  ++row.position;
  if (listener && options.beams == 1 && chose) listener(row.number, row.search->tokens()[0]);
}

// Until a row has no room, and none if a row still reads its prompt.
std::int64_t Decoder::State::steps_to_run() const {
  if (!ahead_) return 0;
  std::int64_t steps = most_ahead_;
  for (const std::optional<Row>& slot : slots_) {
    if (!slot || !slot->has_room()) continue;
    if (slot->reads()) return 0;
    steps = std::min(steps, slot->room - (slot->position - size_of(slot->prompt)));
  }
  return steps;
}

void Decoder::State::run_ahead(std::int64_t steps) {
  const Reads read = reads();
  std::vector<bool> active;
  for (const std::optional<Row>& slot : slots_) active.push_back(slot && slot->has_room());
  speed.decode_seconds += seconds_of([&] { ahead_->run(read, active, steps); });
  speed.steps += steps;
  for (std::size_t r = 0; r < slots_.size(); ++r) {
    if (!active[r]) continue;
    Row& row = *slots_[r];
    for (std::int64_t i = 0; i < steps && !row.is_done(); ++i) {
      const std::int32_t id = ahead_->id(r, row.position);
      const double log_probability = ahead_->log_probability(r, row.position);
      take(row, {&id, 1}, {&log_probability, 1});
    }
  }
}

void Decoder::State::collect() {
  for (std::optional<Row>& slot : slots_) {
    if (!slot || !slot->is_done()) continue;
    Finished& done = finished_.emplace_back(slot->number, slot->search->result());
    if (!done.hypotheses.empty())
      speed.tokens += static_cast<std::int64_t>(done.hypotheses[0].log_probabilities.size());
    ++speed.rows;
    slot.reset();
  }
}

std::optional<Finished> Decoder::State::next() {
  while (finished_.empty() && rows_ > 0) {
    refill();
    const std::int64_t steps = steps_to_run();
    if (steps > 1) run_ahead(steps);
    else step();
    collect();
  }
  if (finished_.empty()) return std::nullopt;
  Finished row = std::move(finished_.front());
  finished_.pop_front();
  if (--rows_ == 0) numbers = 0;
  return row;
}

Decoder::Decoder(Session& session, const models::TransformerOptions& model, const Layout& layout, std::int64_t batch,
                 std::int64_t inputs_length, std::int64_t prompt_length, const Options& options, Site site) {
  const Sizes sizes{batch, inputs_length, prompt_length};
  check(model, sizes, options, site);
  state_ = std::make_shared<State>(session, model, layout, sizes, options, site);
}

FinishedRows Decoder::rows(const std::vector<Ids>& given, const std::vector<Ids>& inputs, Site site) {
  State& s = *state_;
  std::vector<Ids> prompts = given.empty() ? std::vector<Ids>(inputs.size()) : given;
  for (Ids& prompt : prompts) prompt.insert(prompt.begin(), s.prefix.begin(), s.prefix.end());
  check_rows(s.model, s.sizes, s.options, prompts, inputs, site);
  s.refresh(site);
  s.add_sorted(prompts, inputs);
  return FinishedRows(*this);
}

std::vector<std::vector<Hypothesis>> Decoder::run(const std::vector<Ids>& given, const std::vector<Ids>& inputs,
                                                  Site site) {
  std::vector<std::vector<Hypothesis>> results(std::max(given.size(), inputs.size()));
  FinishedRows all = rows(given, inputs, site);
  while (std::optional<Finished> row = next()) results[row->row] = std::move(row->hypotheses);
  return results;
}

std::size_t Decoder::add(Ids prompt, Ids inputs, Site site) {
  State& s = *state_;
  prompt.insert(prompt.begin(), s.prefix.begin(), s.prefix.end());
  check_rows(s.model, s.sizes, s.options, {prompt}, s.sizes.inputs > 0 ? std::vector<Ids>{inputs} : std::vector<Ids>{},
             site);
  s.refresh(site);
  s.add(s.numbers, std::move(prompt), std::move(inputs));
  return s.numbers++;
}

std::optional<Finished> Decoder::next() { return state_->next(); }

void Decoder::clear() { state_->clear(); }

void Decoder::set_prefix(const Ids& ids, Site site) {
  State& s = *state_;
  check_rows(s.model, s.sizes, s.options, {ids}, s.sizes.inputs > 0 ? std::vector<Ids>(1) : std::vector<Ids>{}, site);
  s.refresh(site);
  s.set_prefix(ids);
}

void Decoder::on_token(std::function<void(std::size_t row, std::int32_t id)> listener) {
  state_->listener = std::move(listener);
}

void Decoder::stop_when(std::function<bool(std::size_t row, std::span<const std::int32_t> ids)> rule) {
  state_->stop_rule = std::move(rule);
}

const Speed& Decoder::speed() const { return state_->speed; }

}  // namespace weft::decode
