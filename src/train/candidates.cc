#include "train/candidates.h"

#include <algorithm>

#include "train/search.h"
#include "weft/ops.h"

namespace weft::decode {

namespace {

const std::string kCandidate = "candidate";
constexpr double kLeast = -3e38;  // a finite stand-in for the largest of logits that are all -infinity
constexpr double kLost = 1e9;     // subtracted from logits whose tokens get no probability

Tensor is_one_of(const std::vector<std::int32_t>& ids, const Tensor& logits, const Dim& vocab, Site site) {
  const Tensor classes = iota(Graph(logits.graph()), vocab, DType::kI32, site);
  Tensor found;
  for (const std::int32_t id : ids) {
    const Tensor is_it = equal(classes, static_cast<double>(id), site);
    found = found ? logical_or(found, is_it, site) : is_it;
  }
  return found;
}

Tensor without(const Tensor& lost, const Tensor& logits, Site site) {
  return select(lost, subtract(logits, kLost, site), logits, site);
}

// An input of ids, [… name], with the dims of the logits but the classes.
Tensor list_input(const std::string& name, const Tensor& logits, const Dim& vocab, std::int64_t size, Site site) {
  return Graph(logits.graph()).input(name, logits.shape().minus({vocab}).plus({{name, size}}), DType::kI32, site);
}

// Whether a class is in the list of its row. Every processor marks the classes of its shard.
Tensor is_listed(const Tensor& list, const Tensor& logits, const Dim& vocab, Site site) {
  const Shape rows = logits.shape().minus({vocab});
  const Tensor counts = scatter_add(ones_like(list, site), list, vocab, rows, site);
  return greater(transpose(counts, logits.shape(), site), 0.0, site);
}

Tensor penalized(const Tensor& logits, double penalty, Site site) {
  return select(greater(logits, 0.0, site), multiply(logits, 1 / penalty, site), multiply(logits, penalty, site), site);
}

// The logits after the rules of the options, and the inputs of the rules.
Tensor ruled(Tensor logits, const Dim& vocab, const Options& o, CandidateTensors& made, Site site) {
  if (o.repetition_penalty != 1) {
    made.seen = list_input("seen", logits, vocab, o.max_length, site);
    const Tensor is_seen = is_listed(made.seen, logits, vocab, site);
    logits = select(is_seen, penalized(logits, o.repetition_penalty, site), logits, site);
  }
  if (o.no_repeat_ngram > 0) {
    made.banned = list_input("banned", logits, vocab, o.max_length, site);
    logits = without(is_listed(made.banned, logits, vocab, site), logits, site);
  }
  if (o.never_end) logits = without(is_one_of({kEnd}, logits, vocab, site), logits, site);
  if (o.min_tokens > 0) {
    made.goes_on = Graph(logits.graph()).input("goes_on", logits.shape().minus({vocab}), DType::kI32, site);
    const Tensor ends = is_one_of(end_tokens(o), logits, vocab, site);
    logits = without(logical_and(ends, greater(made.goes_on, 0.0, site), site), logits, site);
  }
  return logits;
}

void set_likeliest(CandidateTensors& made, const Tensor& logits, const Dim& vocab, std::int64_t number, Site site) {
  const TopKResult best = top_k(logits, vocab, {kCandidate, std::min(number, vocab.size)}, false, site);
  // The largest logit is known: the sum of exponentials takes one more pass, without a search for the largest.
  const Tensor first = slice(best.values, kCandidate, 0, 1, site);
  const Tensor most = maximum(reshape(first, logits.shape().minus({vocab}), site), kLeast, site);
  const Tensor sum = reduce_sum(exp(subtract(logits, most, site), site), {vocab}, site);
  made.ids = best.indices;
  made.log_probabilities = subtract(best.values, add(log(sum, site), most, site), site);
}

// Its probability does not depend on the temperature and the cuts.
void set_drawn(CandidateTensors& made, const Tensor& logits, const Dim& vocab, const Options& options, Site site) {
  const auto scope = Graph(logits.graph()).scope("sample_" + std::to_string(options.seed));
  const SampleOptions how{options.temperature, options.top_k, options.top_p};
  const Tensor id = sample_categorical(logits, vocab, how, site);
  const Tensor is_it = equal(iota(Graph(logits.graph()), vocab, DType::kI32, site), id, site);
  const Tensor its_logit = reduce_sum(select(is_it, logits, 0.0, site), {vocab}, site);
  const Tensor log_probability = subtract(its_logit, reduce_logsumexp(logits, vocab, site), site);
  std::vector<Dim> dims = id.shape().dims();
  dims.push_back({kCandidate, 1});
  made.ids = reshape(id, dims, site);
  made.log_probabilities = reshape(log_probability, dims, site);
}

}  // namespace

CandidateTensors offer(Tensor logits, const Options& options, Site site) {
  const Dim vocab = logits.shape().dim("vocab");
  CandidateTensors made;
  logits = ruled(logits, vocab, options, made, site);
  if (options.temperature > 0) set_drawn(made, logits, vocab, options, site);
  else set_likeliest(made, logits, vocab, candidate_count(options), site);
  return made;
}

}  // namespace weft::decode
