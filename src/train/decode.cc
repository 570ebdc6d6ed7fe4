// The loop over steps. Rows of a batch have different positions; a row reads its prompt as long as it has tokens. A row
// that is done leaves its slot. When all slots of a group are free, prefill reads the next rows of the queue into them.
// Later positions may add to a list of several hypotheses: if lists are asked for, rows of a batch stop together.
#include "weft/decode.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
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

// A row in a slot of the batch: the next token is chosen at `position`, unless the prompt has it.
struct Row {
  std::size_t number;
  const Ids *prompt, *inputs;
  std::int64_t room;  // the most tokens that it gets
  std::unique_ptr<Search> search;
  std::int64_t position = 0;

  bool has_room() const { return position - size_of(*prompt) < room; }
  bool is_done() const { return search->is_done() || !has_room(); }
  bool reads() const { return position < size_of(*prompt); }

  // The token before its position.
  std::int32_t token(std::size_t beam) const {
    if (position == 0) return 0;
    if (position <= size_of(*prompt)) return (*prompt)[static_cast<std::size_t>(position - 1)];
    return search->tokens()[beam];
  }
};

// How many slots are filled at once. A prefill of few rows is slow, a group of many rows waits long for its last one. Every
// processor has equal parts of a group. Draws depend on the slot and the step of a row, which must not depend on the mesh.
std::int64_t group_size(const Sizes& sizes, const Options& options, int processors) {
  if (options.temperature > 0 || options.n_best > 1) return sizes.batch;
  if (sizes.prompt == 0 && sizes.inputs == 0) return 1;
  for (const std::int64_t parts : {4, 2})
    if (sizes.batch % parts == 0 && sizes.batch / parts % processors == 0) return sizes.batch / parts;
  return sizes.batch;
}

}  // namespace

struct Decoder::State {
  State(Session& session, const models::TransformerOptions& model, const Layout& layout, const Sizes& sizes,
        const Options& options, Site site);

  // One result for each prompt. `inputs` of an encoder-decoder.
  std::vector<std::vector<Hypothesis>> decode(const std::vector<Ids>& prompts, const std::vector<Ids>& inputs);

  const models::TransformerOptions model;
  const Sizes sizes;
  const Options options;
  Speed speed;
  std::function<void(std::size_t, std::int32_t)> listener;

 private:
  using Slots = std::vector<std::optional<Row>>;

  Row row_of(std::size_t number, const std::vector<Ids>& prompts, const std::vector<Ids>& inputs) const;
  // Fills the slots of group `first`, first + 1, … from the queue, if they are all free.
  void refill(Slots& slots, std::size_t first, std::deque<Row>& queue);
  // Reads the prompts of a group, and moves its rows to the first position that is still to be computed.
  void read_at_once(Slots& slots, std::size_t first);
  Feeds feeds(const Slots& slots) const;
  void step(Slots& slots);
  void collect(Slots& slots, std::vector<std::vector<Hypothesis>>& results);  // frees the slots of rows that are done

  std::size_t group_;  // the slots that prefill reads together
  std::optional<models::PrefillGraph> prefill_;
  std::optional<Executable> run_prefill_;
  models::StepGraph step_;
  CandidateTensors offer_;
  std::optional<Executable> run_step_;
};

Decoder::State::State(Session& session, const models::TransformerOptions& model, const Layout& layout,
                      const Sizes& sizes, const Options& options, Site site)
    : model(model), sizes(sizes), options(options) {
  const std::int64_t group = group_size(sizes, options, session.mesh().size());
  group_ = static_cast<std::size_t>(group);
  const models::DecodeSizes shape{.batch = sizes.batch,
                                  .beams = options.beams,
                                  .length = options.max_length,
                                  .prompt_length = sizes.prompt,
                                  .inputs_length = sizes.inputs,
                                  .prompts = group < sizes.batch ? group : 0};
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

Row Decoder::State::row_of(std::size_t number, const std::vector<Ids>& prompts, const std::vector<Ids>& inputs) const {
  std::int64_t room = options.max_length - size_of(prompts[number]);
  if (options.max_tokens > 0) room = std::min(room, options.max_tokens);
  return {number, &prompts[number], inputs.empty() ? nullptr : &inputs[number], room, make_search(options, room)};
}

void Decoder::State::refill(Slots& slots, std::size_t first, std::deque<Row>& queue) {
  const auto group = std::span(slots).subspan(first, group_);
  if (queue.empty() || std::ranges::any_of(group, [](const auto& slot) { return slot.has_value(); })) return;
  for (std::optional<Row>& slot : group) {
    if (queue.empty()) break;
    slot = std::move(queue.front());
    queue.pop_front();
  }
  read_at_once(slots, first);
}

// What prefill reads beyond a prompt is written over by steps before anyone sees it.
void Decoder::State::read_at_once(Slots& slots, std::size_t first) {
  std::vector<const Ids*> prompts, inputs;
  std::int64_t longest = 0;
  for (std::optional<Row>& row : std::span(slots).subspan(first, group_)) {
    if (!row) break;
    prompts.push_back(row->prompt);
    if (row->inputs) inputs.push_back(row->inputs);
    row->position = std::min(sizes.prompt, size_of(*row->prompt));
    longest = std::max(longest, row->position);
  }
  const bool asks = sizes.inputs > 0 || model.prefix;  // there is more than caches to be set
  if (!prefill_ || (longest == 0 && !asks)) return;
  Feeds feeds;
  if (prefill_->first_row)
    feeds.emplace_back(prefill_->first_row, Array::scalar(static_cast<double>(first), DType::kI32));
  if (prefill_->inputs) feeds.emplace_back(prefill_->inputs, padded(prefill_->inputs, inputs));
  if (prefill_->targets) feeds.emplace_back(prefill_->targets, padded(prefill_->targets, prompts));
  speed.prefill_seconds += seconds_of([&] { run_prefill_->run(feeds); });
}

// Free slots, and rows that have no room, are fed zeros: at position 0 they cost the least.
Feeds Decoder::State::feeds(const Slots& slots) const {
  const auto beams = static_cast<std::size_t>(options.beams);
  std::vector<std::int32_t> tokens(slots.size() * beams, 0), parents = tokens, positions(slots.size(), 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) parents[i] = static_cast<std::int32_t>(i % beams);
  for (std::size_t r = 0; r < slots.size(); ++r) {
    if (!slots[r] || !slots[r]->has_room()) continue;
    const Row& row = *slots[r];
    positions[r] = static_cast<std::int32_t>(row.position);
    for (std::size_t b = 0; b < beams; ++b) {
      tokens[r * beams + b] = row.token(b);
      if (row.position > size_of(*row.prompt)) parents[r * beams + b] = row.search->parents()[b];
    }
  }
  Feeds feeds{{step_.tokens, Array(step_.tokens.shape(), tokens)},
              {step_.position, Array(step_.position.shape(), positions)}};
  if (step_.parents) feeds.emplace_back(step_.parents, Array(step_.parents.shape(), parents));
  return feeds;
}

void Decoder::State::step(Slots& slots) {
  const Feeds fed = feeds(slots);
  std::vector<double> ids, log_probabilities;
  speed.decode_seconds += seconds_of([&] {
    const Values values = run_step_->run(fed);
    ids = values[offer_.ids].values();
    log_probabilities = values[offer_.log_probabilities].values();
  });
  ++speed.steps;
  const std::vector<std::int32_t> whole(ids.begin(), ids.end());
  const std::size_t each = whole.size() / slots.size();
  for (std::size_t r = 0; r < slots.size(); ++r) {
    if (!slots[r] || !slots[r]->has_room()) continue;
    Row& row = *slots[r];
    if (!row.reads())
      row.search->take({std::span(whole).subspan(r * each, each),
                        std::span(std::as_const(log_probabilities)).subspan(r * each, each)});
    const bool chose = !row.reads() && !row.search->is_done();
    ++row.position;
    if (listener && options.beams == 1 && chose) listener(row.number, row.search->tokens()[0]);
  }
}

void Decoder::State::collect(Slots& slots, std::vector<std::vector<Hypothesis>>& results) {
  const auto goes_on = [](const std::optional<Row>& slot) { return slot && !slot->is_done(); };
  if (options.n_best > 1 && std::ranges::any_of(slots, goes_on)) return;
  for (std::optional<Row>& slot : slots) {
    if (!slot || !slot->is_done()) continue;
    std::vector<Hypothesis>& result = results[slot->number] = slot->search->result();
    if (!result.empty()) speed.tokens += size_of(result[0].ids) + result[0].ended;
    ++speed.rows;
    slot.reset();
  }
}

// Rows of about the same length go together: they need about the same number of steps. Rows that stop together go in the
// order that they are given in.
std::vector<std::vector<Hypothesis>> Decoder::State::decode(const std::vector<Ids>& prompts,
                                                            const std::vector<Ids>& inputs) {
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](std::size_t i) { return prompts[i].size() + (inputs.empty() ? 0 : inputs[i].size()); };
  if (options.n_best == 1) std::ranges::stable_sort(order, {}, length);
  std::deque<Row> queue;
  for (std::size_t number : order) queue.push_back(row_of(number, prompts, inputs));
  std::vector<std::vector<Hypothesis>> results(prompts.size());
  Slots slots(static_cast<std::size_t>(sizes.batch));
  while (true) {
    for (std::size_t first = 0; first < slots.size(); first += group_) refill(slots, first, queue);
    if (std::ranges::none_of(slots, [](const auto& slot) { return slot.has_value(); })) return results;
    step(slots);
    collect(slots, results);
  }
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
  return s.decode(prompts, inputs);
}

void Decoder::on_token(std::function<void(std::size_t row, std::int32_t id)> listener) {
  state_->listener = std::move(listener);
}

const Speed& Decoder::speed() const { return state_->speed; }

}  // namespace weft::decode
