// Decoding position by position. Keys and values of what has been read are in variables called "cache/<layer>/k" and
// ".../v" [batch, beams, memory_length, heads…, d_kv]; keys and values of an encoder's output have no beams. A step writes
// one position of each beam and moves nothing else. "cache/sources" [batch, beams, memory_length] tells, for each position,
// the beam whose keys and values a beam reads. Positions that a prompt filled are
// alike in all beams, so that any source is right there.
#include "models/transformer/network.h"
#include "weft/error.h"

namespace weft::models {

namespace {

// What both graphs of one decoder share.
class Decoder {
 public:
  Decoder(const Graph& graph, const TransformerOptions& options, const DecodeSizes& sizes)
      : network(graph, {options, false}), s(network.settings()), g(network.graph()), z(sizes) {}

  Dim batch() const { return {"batch", z.batch}; }
  Dim prompts() const { return {"batch", z.prompts > 0 ? z.prompts : z.batch}; }  // that prefill reads
  Dim beams() const { return {"beams", z.beams}; }
  Dim memory() const { return memory_dim(z.length); }
  bool encodes() const { return s.o.kind == Kind::kEncoderDecoder; }
  Tensor one() const { return constant(g, 1.0, {}, DType::kI32); }

  Tensor cache(const std::string& name, const Shape& shape, DType dtype) const {
    return Graph(g).variable("/cache/" + name, shape, init::zeros(), {.stored = dtype, .trainable = false});
  }
  // Of a layer's keys or values, as they are along `memory`.
  Tensor cache_of(const std::string& name, const Shape& before, const Dim& along) const {
    const nn::Heads heads = s.heads();
    return cache(name, before.plus({along}).plus(heads.memory).plus({heads.d_kv}), s.o.activations);
  }
  // Writes what prefill reads of its rows.
  void fill(const Tensor& cache, const Tensor& value) {
    const Shape rows = cache.shape().resized(batch().name, prompts().size);
    const Tensor piece = broadcast(value, rows);
    updates.push_back(assign(cache, first_row ? dynamic_update(cache, piece, first_row, batch()) : piece));
  }
  // Likewise, of the first positions along `memory`.
  void fill_first(const Tensor& cache, const Tensor& value) {
    const Dim read = value.shape().dim(memory().name);
    const Shape rows = cache.shape().resized(batch().name, prompts().size).resized(read.name, read.size);
    Tensor piece = broadcast(value, rows);
    const Tensor begin = constant(g, 0.0, {}, DType::kI32);
    if (first_row) piece = dynamic_update(dynamic_slice(cache, begin, memory(), read.size), piece, first_row, batch());
    updates.push_back(assign(cache, dynamic_update(cache, piece, begin, memory())));
  }

  Network network;
  const Settings& s;
  Graph& g;
  DecodeSizes z;
  Tensor first_row;  // of those that prefill reads; empty: it reads them all
  Updates updates;
};

void check_decode(const TransformerOptions& o, const DecodeSizes& sizes, Site site) {
  check(o);
  const auto refuse = [&](ErrorCode code, const std::string& what, const std::string& fix) {
    throw UserError({.code = code, .what = what, .where = site, .fix = fix});
  };
  if (o.kind == Kind::kEncoder)
    refuse("decode.encoder", "an encoder does not decode", "make it a language model or an encoder-decoder");
  if (sizes.batch < 1 || sizes.beams < 1 || sizes.length < 1)
    refuse("decode.bad-sizes",
           "decoding " + std::to_string(sizes.batch) + " sequences of " + std::to_string(sizes.length) +
               " positions with " + std::to_string(sizes.beams) + " beams",
           "give at least one of each");
  if (sizes.prompts < 0 || sizes.prompts > sizes.batch)
    refuse("decode.bad-prompts",
           "a prefill of " + std::to_string(sizes.prompts) + " rows for a batch of " + std::to_string(sizes.batch),
           "give a number of prompts from 1 to the batch, or 0 for the batch");
  if (sizes.prompt_length < 0 || sizes.prompt_length > sizes.length)
    refuse("decode.prompt-longer-than-cache",
           "a prompt of length " + std::to_string(sizes.prompt_length) + " for caches of length " +
               std::to_string(sizes.length),
           "give longer caches or a shorter prompt");
  const bool both = o.kind == Kind::kEncoderDecoder;
  if (both != (sizes.inputs_length > 0))
    refuse(
        "decode.inputs-length-of-kind",
        both ? "decoding with an encoder, but without an inputs_length" : "an inputs_length, but there is no encoder",
        both ? "give the length of its inputs" : "give the prompt_length alone");
  const std::int64_t longest = std::max(sizes.length, sizes.inputs_length);
  if (o.positions == Positions::kLearned && longest > o.max_length)
    refuse("decode.too-few-positions",
           "decoding of length " + std::to_string(longest) + ", but the table of positions has " +
               std::to_string(o.max_length) + " rows",
           "raise max_length, or decode less");
}

// --- Prefill ---

// Keys and values of the encoder's output, for every layer of the decoder.
std::map<std::string, nn::Projections> fill_cross_caches(Decoder& d, const Encoded& encoded) {
  const Dim along = memory_dim(encoded.length.size);
  std::map<std::string, nn::Projections> by_layer;
  const Tensor segments = rename(encoded.segments, encoded.length, along.name);
  d.fill(d.cache("inputs_segments", {d.batch(), along}, DType::kI32), segments);
  const Tensor last = reduce_max(segments * (iota(d.g, along) + 1.0), {along});
  d.fill(d.cache("inputs_end", {d.batch()}, DType::kI32), last);
  for (std::int64_t i = 0; i < d.s.decoder_layers(); ++i) {
    const std::string layer = d.network.decoder_scope() + "/layer_" + std::to_string(i) + "/cross_attention";
    const auto scope = d.g.scope(layer);
    const nn::Projections of = nn::project_memory(encoded.hidden, d.s.d_model(), d.s.heads(), projection_options(d.s));
    const Tensor k = rename(of.k, encoded.length, along.name);
    d.fill(d.cache_of(layer + "/k", {d.batch()}, along), k);
    by_layer[layer] = {{}, k, k};
    if (d.s.o.shared_kv) continue;
    by_layer[layer].v = rename(of.v, encoded.length, along.name);
    d.fill(d.cache_of(layer + "/v", {d.batch()}, along), by_layer[layer].v);
  }
  return by_layer;
}

// Of a prefix language model: how many positions from the first on see each other, [batch].
Tensor region_of(const Tensor& targets, const Dim& length) {
  const Tensor ends = cast(equal(targets, 1.0), DType::kI32);
  const Tensor first = logical_and(equal(cumsum(ends, length, true), 0.0), not_equal(targets, 0.0));
  return reduce_sum(cast(first, DType::kI32), {length}) + 1.0;
}

// The last position that a place sees, of those that have been read.
Tensor last_seen(const Tensor& place, const Tensor& region) { return maximum(place, region - 1.0); }

Pass prompt_pass(Decoder& d, const Tensor& targets, const Dim& length) {
  if (!d.s.o.prefix) return d.network.pass_over(length, {}, true);
  const Tensor region = region_of(targets, length), places = iota(d.g, length);
  d.fill(d.cache("region", {d.batch()}, DType::kI32), region);
  const Tensor last = select(less(places, region), last_seen(places, region), places);
  const Tensor seen = less_equal(iota(d.g, memory_dim(length.size)), last);
  return d.network.pass_over(length, {}, false, select(seen, constant(d.g, 0.0), -1e9));
}

void fill_self_caches(Decoder& d, const Tensor& targets, const Encoded& encoded,
                      const std::map<std::string, nn::Projections>& cross) {
  const Dim length = targets.shape()[1];
  Pass pass = prompt_pass(d, targets, length);
  pass.remember = [&d, length, as_read = pass.remember](const std::string& layer, const nn::Projections& of_x) {
    const nn::Projections of = as_read(layer, of_x);
    const auto keep = [&](const std::string& name, const Tensor& x) {
      d.fill_first(d.cache_of(layer + name, {d.batch(), d.beams()}, d.memory()), x);
    };
    keep("/k", of.k);
    if (of.v != of.k) keep("/v", of.v);
    return of;
  };
  if (d.encodes()) {
    d.network.attach(pass, encoded, d.one());
    pass.recall = [&cross](const std::string& layer) { return cross.at(layer); };
  }
  const Tensor x = d.network.embed(shifted(targets, {}, length), {}, length, d.network.decoder_scope());
  stack(x, d.s, pass, d.s.decoder_layers(), d.network.decoder_scope());
}

// --- Step ---

// Whose keys and values each beam reads: those of the beam that it continues, and its own at this position.
Tensor sources_of(Decoder& d, const StepGraph& step) {
  const Tensor table = d.cache("sources", {d.batch(), d.beams(), d.memory()}, DType::kI32);
  const Tensor parents = rename(step.parents, d.beams(), "child");
  const Tensor inherited = rename(gather(table, parents, d.beams()), {"child", d.z.beams}, d.beams().name);
  const Tensor own = broadcast(iota(d.g, d.beams(), DType::kI32), table.shape().resized(d.memory().name, 1));
  const Tensor now = dynamic_update(inherited, own, step.position, d.memory());
  d.updates.push_back(assign(table, now));
  return now;
}

// The caches of a layer with what this position adds.
nn::Projections extended(Decoder& d, const StepGraph& step, const std::string& layer, const nn::Projections& of_x) {
  const auto with = [&](const std::string& name, const Tensor& x) {
    const Tensor cache = d.cache_of(layer + name, {d.batch(), d.beams()}, d.memory());
    const Tensor piece = reshape(x, cache.shape().resized(d.memory().name, 1));
    const Tensor now = dynamic_update(cache, piece, step.position, d.memory());
    d.updates.push_back(assign(cache, now));
    return now;
  };
  const Tensor k = with("/k", of_x.k);
  return {{}, k, of_x.v == of_x.k ? k : with("/v", of_x.v)};
}

Pass step_pass(Decoder& d, const StepGraph& step) {
  Tensor last = step.position;
  if (d.s.o.prefix) last = last_seen(last, d.cache("region", {d.batch()}, DType::kI32));
  Pass pass{.memory = d.memory(),
            .places = step.position,
            .seen = {.memory_end = last + 1.0},
            .looks_ahead = d.s.o.prefix,
            .keep = {},
            .remember = [&d, &step](const std::string& layer, const nn::Projections& of_x) {
              return extended(d, step, layer, of_x);
            }};
  if (step.parents) {
    pass.seen.sources = sources_of(d, step);
    pass.seen.source_dim = d.beams();
  }
  if (!d.encodes()) return pass;
  pass.cross_memory = memory_dim(d.z.inputs_length);
  pass.cross_seen = {.query_segments = d.one(),
                     .memory_segments = d.cache("inputs_segments", {d.batch(), pass.cross_memory}, DType::kI32),
                     .memory_end = d.cache("inputs_end", {d.batch()}, DType::kI32)};
  pass.recall = [&d, along = pass.cross_memory](const std::string& layer) {
    const Tensor k = d.cache_of(layer + "/k", {d.batch()}, along);
    return nn::Projections{{}, k, d.s.o.shared_kv ? k : d.cache_of(layer + "/v", {d.batch()}, along)};
  };
  return pass;
}

}  // namespace

PrefillGraph prefill_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site) {
  check_decode(options, sizes, site);
  PrefillGraph made;
  Decoder d(made.graph, options, sizes);
  if (sizes.prompts > 0) d.first_row = made.first_row = made.graph.input("first_row", {}, DType::kI32, site);
  Encoded encoded;
  std::map<std::string, nn::Projections> cross;
  if (d.encodes()) {
    const Dim length{"inputs_length", sizes.inputs_length};
    made.inputs = made.graph.input("inputs", {d.prompts(), length}, DType::kI32, site);
    encoded = d.network.encode({made.inputs, {}, {}, length});
    cross = fill_cross_caches(d, encoded);
  }
  if (sizes.prompt_length > 0) {
    const Dim length{"length", sizes.prompt_length};
    made.targets = made.graph.input("targets", {d.prompts(), length}, DType::kI32, site);
    // The place that reads the end of a prefix is seen by all of it.
    const bool one_more = options.prefix && sizes.prompt_length < sizes.length;
    fill_self_caches(d, one_more ? pad(made.targets, length, 0, 1) : made.targets, encoded, cross);
  }
  made.updates = d.updates;
  return made;
}

StepGraph step_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site) {
  check_decode(options, sizes, site);
  StepGraph made;
  Decoder d(made.graph, options, sizes);
  made.tokens = made.graph.input("tokens", {d.batch(), d.beams()}, DType::kI32, site);
  made.position = made.graph.input("position", {d.batch()}, DType::kI32, site);
  if (sizes.beams > 1) made.parents = made.graph.input("parents", {d.batch(), d.beams()}, DType::kI32, site);
  const Tensor x = d.network.embed(made.tokens, made.position, {}, d.network.decoder_scope());
  const Tensor hidden = stack(x, d.s, step_pass(d, made), d.s.decoder_layers(), d.network.decoder_scope());
  made.logits = d.network.logits(hidden);
  made.updates = d.updates;
  return made;
}

}  // namespace weft::models
