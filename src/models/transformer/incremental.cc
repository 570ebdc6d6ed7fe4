// Decoding position by position. Keys and values of what has been read are in variables called "cache/<layer>/k" and
// ".../v" [batch, beams, memory_length, heads…, d_kv]; keys and values of an encoder's output have no beams. A step writes
// one position of each beam and moves nothing else. "cache/sources" [batch, beams, memory_length] tells, for each position,
// the beam whose keys and values a beam reads. Positions that a prompt filled are alike in all beams: a prefill of all rows
// writes them for every beam, a prefill of some rows for the first beam, and lets the others read them there.
#include "models/transformer/kernel_copies.h"
#include "models/transformer/network.h"
#include "weft/error.h"

namespace weft::models {

namespace {

// What both graphs of one decoder share.
class Decoder {
 public:
  Decoder(const Graph& graph, const TransformerOptions& options, const DecodeSizes& sizes)
      : copies(graph, sizes.weights, sizes.panels),
        network(graph, {.o = options, .multiply = copies.multiply()}),
        s(network.settings()),
        g(network.graph()),
        z(sizes) {}

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
  // Writes what prefill read of its rows, from the first position along `memory` on.
  void fill(const Tensor& cache, const Tensor& value) {
    Shape shape = cache.shape().resized(batch().name, prompts().size);
    for (const Dim& own : value.shape()) shape = shape.resized(own.name, own.size);
    if (slots) {
      if (shape.has(beams().name)) shape = shape.resized(beams().name, 1);  // begin_sources() lets all beams read it
      updates.push_back(assign(cache, scatter_update(cache, broadcast(value, shape), slots, batch())));
    } else {
      const Tensor begin = constant(g, 0.0, {}, DType::kI32), piece = broadcast(value, shape);
      updates.push_back(
          assign(cache, shape == cache.shape() ? piece : dynamic_update(cache, piece, begin, memory().name)));
    }
  }

  KernelCopies copies;
  Network network;
  const Settings& s;
  Graph& g;
  DecodeSizes z;
  Tensor slots;  // where the rows go that prefill reads; empty: it reads all rows of the batch
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
  if (sizes.inputs_read < 0 || sizes.inputs_read > sizes.inputs_length)
    refuse("decode.inputs-longer-than-cache",
           "a prefill of inputs of length " + std::to_string(sizes.inputs_read) + " for caches of length " +
               std::to_string(sizes.inputs_length),
           "give an inputs_read from 1 to inputs_length, or 0 for inputs_length");
  if (sizes.prompt_length < 0 || sizes.prompt_length > sizes.length)
    refuse("decode.prompt-longer-than-cache",
           "a prompt of length " + std::to_string(sizes.prompt_length) + " for caches of length " +
               std::to_string(sizes.length),
           "give longer caches or a shorter prompt");
  if (sizes.prefix_length < 0 || (sizes.prefix_length > 0 && (o.kind != Kind::kLanguageModel || o.prefix)))
    refuse("decode.bad-prefix", "a prefix of " + std::to_string(sizes.prefix_length) + " positions for all rows",
           "give a length from 0 on, to a language model without inputs");
  if (sizes.prefix_length + sizes.prompt_length > sizes.length)
    refuse("decode.prefix-longer-than-cache",
           "a prefix of length " + std::to_string(sizes.prefix_length) + " and a prompt of length " +
               std::to_string(sizes.prompt_length) + " for caches of length " + std::to_string(sizes.length),
           "give longer caches or a shorter prefix");
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
  const Dim along = memory_dim(d.z.inputs_length), read = memory_dim(encoded.length.size);
  std::map<std::string, nn::Projections> by_layer;
  const Tensor segments = rename(encoded.segments, encoded.length, along.name);
  d.fill(d.cache("inputs_segments", {d.batch(), along}, DType::kI32), segments);
  const Tensor last = reduce_max(segments * (iota(d.g, read) + 1.0), {read});
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

// --- A prefix that all rows share ---

Tensor prefix_cache(Decoder& d, const std::string& name) {
  return d.cache_of("prefix/" + name, {}, memory_dim(d.z.prefix_length));
}
// The last token of the prefix, which the first position after it reads.
Tensor prefix_end(Decoder& d) { return d.cache("prefix/end", {}, DType::kI32); }

// Rows begin after the prefix. They see it, and of each other's positions those before.
Pass pass_after_prefix(Decoder& d, const Dim& length) {
  const std::int64_t begin = d.z.prefix_length;
  const Dim memory = memory_dim(begin + length.size);
  Pass pass = d.network.pass_over(length, {}, true);
  const auto own = pass.remember;
  pass.memory = memory;
  pass.places = iota(d.g, length) + static_cast<double>(begin);
  pass.seen = {.bias = select(less_equal(iota(d.g, memory), pass.places), constant(d.g, 0.0), -1e9)};
  pass.remember = [&d, own, memory](const std::string& layer, const nn::Projections& of_x) {
    const nn::Projections of = own(layer, of_x);
    const auto after = [&](const std::string& name, const Tensor& x) {
      const Tensor prefix = prefix_cache(d, layer + name);
      return concat({broadcast(prefix, x.shape().resized(memory.name, d.z.prefix_length)), x}, memory.name);
    };
    const Tensor k = after("/k", of.k);
    return nn::Projections{{}, k, of.v == of.k ? k : after("/v", of.v)};
  };
  return pass;
}

Pass prompt_pass(Decoder& d, const Tensor& targets, const Dim& length) {
  if (d.z.prefix_length > 0) return pass_after_prefix(d, length);
  if (!d.s.o.prefix) return d.network.pass_over(length, {}, true);
  const Tensor region = region_of(targets, length), places = iota(d.g, length);
  d.fill(d.cache("region", {d.batch()}, DType::kI32), region);
  const Tensor last = select(less(places, region), last_seen(places, region), places);
  const Tensor seen = less_equal(iota(d.g, memory_dim(length.size)), last);
  return d.network.pass_over(length, {}, false, select(seen, constant(d.g, 0.0), -1e9));
}

Tensor source_table(Decoder& d) { return d.cache("sources", {d.batch(), d.beams(), d.memory()}, DType::kI32); }

// All beams read what prefill wrote for the first one.
void begin_sources(Decoder& d, std::int64_t positions) {
  if (!d.slots || d.z.beams == 1) return;
  const Tensor table = source_table(d);
  const Shape first{d.prompts(), d.beams(), memory_dim(positions)};
  const Tensor begun = scatter_update(table, constant(d.g, 0.0, first, DType::kI32), d.slots, d.batch());
  d.updates.push_back(assign(table, begun));
}

void fill_self_caches(Decoder& d, const Tensor& targets, const Encoded& encoded,
                      const std::map<std::string, nn::Projections>& cross) {
  const Dim length = targets.shape()[1];
  begin_sources(d, d.z.prefix_length + length.size);
  Pass pass = prompt_pass(d, targets, length);
  pass.remember = [&d, length, as_read = pass.remember](const std::string& layer, const nn::Projections& of_x) {
    const nn::Projections of = as_read(layer, of_x);
    const auto keep = [&](const std::string& name, const Tensor& x) {
      d.fill(d.cache_of(layer + name, {d.batch(), d.beams()}, d.memory()), x);
    };
    keep("/k", of.k);
    if (of.v != of.k) keep("/v", of.v);
    return of;
  };
  if (d.encodes()) {
    d.network.attach(pass, encoded, d.one());
    pass.recall = [&cross](const std::string& layer) { return cross.at(layer); };
  }
  Tensor read = shifted(targets, {}, length), places;
  if (d.z.prefix_length > 0) {
    read = select(equal(iota(d.g, length), 0.0), prefix_end(d), read);
    places = pass.places;
  }
  const Tensor x = d.network.embed(read, places, length, d.network.decoder_scope());
  stack(x, d.s, pass, d.s.decoder_layers(), d.network.decoder_scope());
}

// --- Step ---

// Whose keys and values each beam reads: those of the beam that it continues, and its own at this position.
Tensor sources_of(Decoder& d, const StepGraph& step) {
  const Tensor table = source_table(d);
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
  if (sizes.prompts > 0) d.slots = made.slots = made.graph.input("slots", {d.prompts()}, DType::kI32, site);
  Encoded encoded;
  std::map<std::string, nn::Projections> cross;
  if (d.encodes()) {
    const std::int64_t read = sizes.inputs_read > 0 ? sizes.inputs_read : sizes.inputs_length;
    const Dim length{"inputs_length", read};
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
  made.copies = d.copies.made();
  return made;
}

PrefixGraph prefix_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site) {
  check_decode(options, sizes, site);
  PrefixGraph made;
  Decoder d(made.graph, options, sizes);
  const Dim length{"length", sizes.prefix_length};
  made.targets = made.graph.input("targets", {length}, DType::kI32, site);
  const auto keep = [&](const Tensor& cache, const Tensor& value) {
    d.updates.push_back(assign(cache, broadcast(value, cache.shape())));
  };
  Pass pass = d.network.pass_over(length, {}, true);
  pass.remember = [&, as_read = pass.remember](const std::string& layer, const nn::Projections& of_x) {
    const nn::Projections of = as_read(layer, of_x);
    keep(prefix_cache(d, layer + "/k"), of.k);
    if (of.v != of.k) keep(prefix_cache(d, layer + "/v"), of.v);
    return of;
  };
  const Tensor x = d.network.embed(shifted(made.targets, {}, length), {}, length, d.network.decoder_scope());
  stack(x, d.s, pass, d.s.decoder_layers(), d.network.decoder_scope());
  keep(prefix_end(d), reduce_sum(slice(made.targets, length, length.size - 1, 1), {{"length", 1}}));
  made.updates = d.updates;
  return made;
}

StepGraph step_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site) {
  check_decode(options, sizes, site);
  StepGraph made;
  Decoder d(made.graph, options, sizes);
  const auto fed = [&](const std::string& name, const Shape& shape) {
    return sizes.feeds_itself ? d.cache(name, shape, DType::kI32) : made.graph.input(name, shape, DType::kI32, site);
  };
  made.tokens = fed("tokens", {d.batch(), d.beams()});
  made.position = fed("position", {d.batch()});
  if (sizes.beams > 1) made.parents = made.graph.input("parents", {d.batch(), d.beams()}, DType::kI32, site);
  const Tensor x = d.network.embed(made.tokens, made.position, {}, d.network.decoder_scope());
  const Tensor hidden = stack(x, d.s, step_pass(d, made), d.s.decoder_layers(), d.network.decoder_scope());
  made.logits = d.network.logits(hidden);
  made.updates = d.updates;
  made.copies = d.copies.made();
  return made;
}

}  // namespace weft::models
