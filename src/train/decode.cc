// The loop over steps. Rows of a batch have different positions; a row reads its prompt as long as it has tokens.
#include "weft/decode.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "train/candidates.h"
#include "train/decode_checks.h"
#include "train/search.h"

namespace weft::decode {

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t size_of(const Ids& ids) { return static_cast<std::int64_t>(ids.size()); }

// The rows as [batch, length] of the tensor's shape, cut or filled with zeros.
Array padded(const Tensor& to, const std::vector<const Ids*>& rows) {
  const std::int64_t length = to.shape().dims().back().size;
  std::vector<std::int32_t> values(static_cast<std::size_t>(to.shape().elements()), 0);
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy_n(rows[r]->begin(), std::min(length, size_of(*rows[r])),
                values.begin() + static_cast<std::ptrdiff_t>(r) * length);
  return Array(to.shape(), values);
}

// Of the keys and values among a graph's variables.
std::int64_t cache_bytes_of(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Tensor& variable : graph.all_variables())
    if (variable.name().starts_with("cache/") && is_float(variable.dtype()))
      bytes += variable.shape().elements() * static_cast<std::int64_t>(weft::size_of(variable.dtype()));
  return bytes;
}

// A row of the batch: the next token is chosen at `position`, unless the prompt has it.
struct Row {
  std::size_t number;
  const Ids* prompt;
  std::int64_t room;  // the most tokens that it gets
  std::unique_ptr<Search> search;
  std::int64_t position = 0;

  bool is_full() const { return position - size_of(*prompt) >= room; }
  bool is_done() const { return search->is_done() || is_full(); }
  bool reads() const { return position < size_of(*prompt); }

  // The token before its position.
  std::int32_t token(std::size_t beam) const {
    if (position == 0) return 0;
    if (position <= size_of(*prompt)) return (*prompt)[static_cast<std::size_t>(position - 1)];
    return search->tokens()[beam];
  }
};

}  // namespace

struct Decoder::State {
  State(Session& session, const models::TransformerOptions& model, const Layout& layout, const Sizes& sizes,
        const Options& options, Site site);

  // Of rows `first`, first + 1, … of a run.
  std::vector<std::vector<Hypothesis>> decode(std::size_t first, const std::vector<const Ids*>& prompts,
                                              const std::vector<const Ids*>& inputs);

  const models::TransformerOptions model;
  const Sizes sizes;
  const Options options;
  Speed speed;
  std::function<void(std::size_t, std::int32_t)> listener;

 private:
  // Moves the rows to the first position that is still to be computed.
  void read_at_once(std::vector<Row>& rows, const std::vector<const Ids*>& inputs);
  bool rests(const Row& row) const;
  Feeds feeds(const std::vector<Row>& rows) const;
  void step(std::vector<Row>& rows);

  std::optional<models::PrefillGraph> prefill_;
  std::optional<Executable> run_prefill_;
  models::StepGraph step_;
  CandidateTensors offer_;
  std::optional<Executable> run_step_;
};

Decoder::State::State(Session& session, const models::TransformerOptions& model, const Layout& layout,
                      const Sizes& sizes, const Options& options, Site site)
    : model(model), sizes(sizes), options(options) {
  const models::DecodeSizes shape{sizes.batch, options.beams, options.max_length, sizes.prompt, sizes.inputs};
  if (sizes.prompt > 0 || sizes.inputs > 0) {
    prefill_ = models::prefill_graph(model, shape, site);
    run_prefill_ = session.compile(prefill_->graph, layout, {.update = prefill_->updates});
  }
  step_ = models::step_graph(model, shape, site);
  offer_ = offer(step_.logits, options, site);
  const Tensors fetch{offer_.ids, offer_.log_probabilities};
  run_step_ = session.compile(step_.graph, layout, {.fetch = fetch, .update = step_.updates});
  speed.cache_bytes = cache_bytes_of(step_.graph);
}

// What prefill reads beyond a prompt is written over by steps before anyone sees it.
void Decoder::State::read_at_once(std::vector<Row>& rows, const std::vector<const Ids*>& inputs) {
  std::vector<const Ids*> prompts;
  std::int64_t longest = 0;
  for (Row& row : rows) {
    prompts.push_back(row.prompt);
    row.position = std::min(sizes.prompt, size_of(*row.prompt));
    longest = std::max(longest, row.position);
  }
  const bool asks = sizes.inputs > 0 || model.prefix;  // there is more than caches to be set
  if (!prefill_ || (longest == 0 && !asks)) return;
  Feeds feeds;
  if (prefill_->inputs) feeds.emplace_back(prefill_->inputs, padded(prefill_->inputs, inputs));
  if (prefill_->targets) feeds.emplace_back(prefill_->targets, padded(prefill_->targets, prompts));
  speed.prefill_seconds += seconds_of([&] { run_prefill_->run(feeds); });
}

// A row that is done cannot find a better best sequence. If more than the best are asked for, it goes on as long as
// another row of the batch, and may find more of them.
bool Decoder::State::rests(const Row& row) const {
  return row.is_full() || (options.n_best == 1 && row.search->is_done());
}

// Rows that rest, or only fill up the batch, are fed zeros: at position 0 they cost the least.
Feeds Decoder::State::feeds(const std::vector<Row>& rows) const {
  const auto beams = static_cast<std::size_t>(options.beams), batch = static_cast<std::size_t>(sizes.batch);
  std::vector<std::int32_t> tokens(batch * beams, 0), parents = tokens, positions(batch, 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) parents[i] = static_cast<std::int32_t>(i % beams);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rests(rows[r])) continue;
    positions[r] = static_cast<std::int32_t>(rows[r].position);
    for (std::size_t b = 0; b < beams; ++b) {
      tokens[r * beams + b] = rows[r].token(b);
      if (rows[r].position > size_of(*rows[r].prompt)) parents[r * beams + b] = rows[r].search->parents()[b];
    }
  }
  Feeds feeds{{step_.tokens, Array(step_.tokens.shape(), tokens)},
              {step_.position, Array(step_.position.shape(), positions)}};
  if (step_.parents) feeds.emplace_back(step_.parents, Array(step_.parents.shape(), parents));
  return feeds;
}

void Decoder::State::step(std::vector<Row>& rows) {
  const Feeds fed = feeds(rows);
  std::vector<double> ids, log_probabilities;
  speed.decode_seconds += seconds_of([&] {
    const Values values = run_step_->run(fed);
    ids = values[offer_.ids].values();
    log_probabilities = values[offer_.log_probabilities].values();
  });
  ++speed.steps;
  const std::vector<std::int32_t> whole(ids.begin(), ids.end());
  const std::size_t each = whole.size() / static_cast<std::size_t>(sizes.batch);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row& row = rows[r];
    if (rests(row)) continue;
    if (!row.reads())
      row.search->take({std::span(whole).subspan(r * each, each),
                        std::span(std::as_const(log_probabilities)).subspan(r * each, each)});
    const bool chose = !row.reads() && !row.search->is_done();
    ++row.position;
    if (listener && options.beams == 1 && chose) listener(row.number, row.search->tokens()[0]);
  }
}

std::vector<std::vector<Hypothesis>> Decoder::State::decode(std::size_t first, const std::vector<const Ids*>& prompts,
                                                            const std::vector<const Ids*>& inputs) {
  std::vector<Row> rows;
  for (const Ids* prompt : prompts) {
    std::int64_t room = options.max_length - size_of(*prompt);
    if (options.max_tokens > 0) room = std::min(room, options.max_tokens);
    rows.push_back({first + rows.size(), prompt, room, make_search(options, room)});
  }
  read_at_once(rows, inputs);
  while (!std::ranges::all_of(rows, &Row::is_done)) step(rows);
  std::vector<std::vector<Hypothesis>> results;
  for (const Row& row : rows) {
    results.push_back(row.search->result());
    if (!results.back().empty()) speed.tokens += size_of(results.back()[0].ids) + results.back()[0].ended;
  }
  speed.rows += static_cast<std::int64_t>(rows.size());
  return results;
}

Decoder::Decoder(Session& session, const models::TransformerOptions& model, const Layout& layout, std::int64_t batch,
                 std::int64_t inputs_length, std::int64_t prompt_length, const Options& options, Site site) {
  const Sizes sizes{batch, inputs_length, prompt_length};
  check(model, sizes, options, site);
  state_ = std::make_shared<State>(session, model, layout, sizes, options, site);
}

std::vector<std::vector<Hypothesis>> Decoder::run(const std::vector<Ids>& given, const std::vector<Ids>& inputs,
                                                  Site site) {
  State& s = *state_;
  const std::vector<Ids> prompts = given.empty() ? std::vector<Ids>(inputs.size()) : given;
  check_rows(s.model, s.sizes, s.options, prompts, inputs, site);
  std::vector<std::vector<Hypothesis>> results;
  while (results.size() < prompts.size()) {
    const std::size_t first = results.size(),
                      count = std::min(prompts.size() - first, static_cast<std::size_t>(s.sizes.batch));
    std::vector<const Ids*> some_prompts, some_inputs;
    for (std::size_t r = first; r < first + count; ++r) {
      some_prompts.push_back(&prompts[r]);
      if (!inputs.empty()) some_inputs.push_back(&inputs[r]);
    }
    for (auto& result : s.decode(first, some_prompts, some_inputs)) results.push_back(std::move(result));
  }
  return results;
}

void Decoder::on_token(std::function<void(std::size_t row, std::int32_t id)> listener) {
  state_->listener = std::move(listener);
}

const Speed& Decoder::speed() const { return state_->speed; }

}  // namespace weft::decode
