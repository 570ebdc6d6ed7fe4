#include "train/steps_ahead.h"

#include <algorithm>

#include "weft/detail/session_access.h"
#include "weft/ops.h"

namespace weft::decode {

std::int64_t steps_ahead(const Options& o, bool queues) {
  constexpr std::int64_t kUsual = 16;  // the host reads tokens in about a tenth of the time of as many short steps
  const bool by_graph =
      o.temperature == 0 && o.beams == 1 && o.repetition_penalty == 1 && o.no_repeat_ngram == 0 && o.min_tokens == 0;
  if (!by_graph) return 1;
  return o.ahead > 0 ? o.ahead : queues ? kUsual : 1;
}

AheadGraph ahead_graph(const models::TransformerOptions& model, models::DecodeSizes sizes, const Options& options,
                       Site site) {
  sizes.feeds_itself = true;
  AheadGraph made{models::step_graph(model, sizes, site), {}, {}};
  models::StepGraph& step = made.step;
  const CandidateTensors offered = offer(step.logits, options, site);
  const Tensor id = reshape(offered.ids, step.tokens.shape(), site);
  const Dim batch = step.position.shape()[0], length{"memory_length", sizes.length};
  const auto noted = [&](const std::string& name, const Tensor& value) {
    const Tensor list = step.graph.variable("/cache/" + name, {batch, length}, init::zeros(),
                                            {.stored = value.dtype(), .trainable = false}, site);
    const Tensor piece = reshape(value, list.shape().resized(length.name, 1), site);
    const Tensor now = dynamic_update(list, piece, step.position, length, site);
    step.updates.push_back(assign(list, now, site));
    return now;
  };
  made.ids = noted("ids", id);
  made.log_probabilities = noted("log_probabilities", offered.log_probabilities);
  step.updates.push_back(assign(step.tokens, id, site));
  // Rows that are done go on to the end of the caches.
  const Tensor next = minimum(add(step.position, 1.0, site), static_cast<double>(sizes.length - 1), site);
  step.updates.push_back(assign(step.position, next, site));
  return made;
}

StepsAhead::StepsAhead(Session session, const models::TransformerOptions& model, const Layout& layout,
                       const models::DecodeSizes& sizes, const Options& options, Site site)
    : session_(std::move(session)),
      length_(sizes.length),
      graph_(ahead_graph(model, sizes, options, site)),
      run_(session_.compile(graph_.step.graph, layout, graph_.options())) {}

bool StepsAhead::is_there(const Reads& reads, const std::vector<bool>& active) const {
  if (there_.tokens.empty()) return false;
  for (std::size_t r = 0; r < active.size(); ++r)
    if (active[r] && (there_.tokens[r] != reads.tokens[r] || there_.positions[r] != reads.positions[r])) return false;
  return true;
}

void StepsAhead::run(const Reads& reads, const std::vector<bool>& active, std::int64_t steps) {
  if (!is_there(reads, active)) {
    session_.set_value("cache/tokens", Array(graph_.step.tokens.shape(), reads.tokens));
    session_.set_value("cache/position", Array(graph_.step.position.shape(), reads.positions));
    there_ = reads;
  }
  const Values values = detail::run_times(session_, run_, steps);
  const auto ids = values[graph_.ids].span<std::int32_t>();
  const auto log_probabilities = values[graph_.log_probabilities].span<float>();
  ids_.assign(ids.begin(), ids.end());
  log_probabilities_.assign(log_probabilities.begin(), log_probabilities.end());
  for (std::size_t r = 0; r < active.size(); ++r) {
    const std::int64_t last = std::min(there_.positions[r] + steps, length_ - 1);
    if (active[r]) there_.tokens[r] = id(r, there_.positions[r] + steps - 1);
    there_.positions[r] = static_cast<std::int32_t>(last);
  }
}

}  // namespace weft::decode
