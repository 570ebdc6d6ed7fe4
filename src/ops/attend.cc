// attend: softmax attention as one op, and attend_back, its gradients of q, k, v and the bias. Neither stores scores.
// Primitives with stored scores compute what the op lacks: an extra logit, dropout of the weights, second gradients.
#include "weft/attend.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

const AttendRules& rules_of(const OpCall& call) { return call.attr<AttendRules>("rules"); }

// q, k, v and the operands that mask or shift their scores.
struct Operands {
  Tensor q, k, v, bias, query_ids, memory_ids, memory_end, sources;

  Tensors masks() const {
    Tensors all;
    for (const Tensor& x : {bias, query_ids, memory_ids, memory_end, sources})
      if (x) all.push_back(x);
    return all;
  }
};

Operands operands_of(const Tensors& xs, std::size_t masks, const AttendRules& rules) {
  Operands o{xs[0], xs[1], xs[2], {}, {}, {}, {}, {}};
  if (rules.biased) o.bias = xs[masks++];
  if (rules.segments) o.query_ids = xs[masks++];
  if (rules.segments) o.memory_ids = xs[masks++];
  if (rules.bounded) o.memory_end = xs[masks++];
  if (!rules.sources.empty()) o.sources = xs[masks++];
  return o;
}

// --- Shapes ---

[[noreturn]] void refuse(ErrorCode code, const OpCall& call, const std::string& what, const std::string& fix) {
  throw UserError({.code = code,
                   .what = str("attend of q ", call.in(0), ", k ", call.in(1), " and v ", call.in(2), ": ", what),
                   .where = call.where(),
                   .fix = fix});
}

void check_shared_dims(const OpCall& call, const AttendRules& rules) {
  const Shape shared = call.in(1).minus({{rules.memory, 1}, {rules.key, 1}});
  const Shape of_v = call.in(2).minus({{rules.memory, 1}, {rules.value, 1}});
  for (const Dim& dim : shared.plus(of_v)) {
    if (!call.in(0).has(dim))
      refuse("attend.q-lacks-dim", call, str("q lacks dim ", dim), "dims of k and v other than their own are q's too");
    if (!shared.has(dim) || !of_v.has(dim))
      refuse("attend.dim-of-k-or-v-alone", call, str("dim ", dim, " is in one of k and v alone"),
             "broadcast() the other to it, or rename() it");
  }
}

void check_masks(const OpCall& call, const AttendRules& rules) {
  const Shape rows = call.in(0).minus({{rules.key, 1}}), memory = call.in(1).minus({{rules.key, 1}});
  const auto within = [&](const Shape& shape, const Shape& all, const char* what) {
    for (const Dim& dim : shape)
      if (!all.has(dim))
        refuse("attend.mask-dim-unknown", call, str("dim ", dim, " of the ", what, " ", shape, " has no place there"),
               str("its dims may be: ", join(all, ", ")));
  };
  std::size_t next = 3;
  if (rules.biased) {
    shape_rule::expect_float(call, next);
    within(call.in(next++), rows.plus(memory), "bias");
  }
  const auto whole_numbers = [&](const char* what, const Shape& all) {
    const TensorType& type = call.inputs[next++];
    if (!is_integer(type.dtype))
      refuse("attend.not-whole", call, str("the ", what, " are ", type.dtype, ", not whole numbers"),
             "cast() them to i32");
    within(type.shape, all, what);
  };
  if (rules.segments) whole_numbers("query segments", rows);
  if (rules.segments) whole_numbers("memory segments", memory);
  const Shape shared = memory.minus({{rules.memory, 1}});
  if (rules.bounded) whole_numbers("values of memory_end", shared);
  if (rules.sources.empty()) return;
  if (!shared.has(rules.sources) || !call.in(next).has(rules.sources) || !call.in(next).has(rules.memory))
    refuse("attend.sources-lack-dims", call,
           str("the sources ", call.in(next), " need the dims '", rules.memory, "' and '", rules.sources,
               "', the source_dim, which q, k and v have too"),
           "name a dim of q, k, v and the sources in AttendOptions::source_dim");
  whole_numbers("sources", memory);
}

std::vector<TensorType> attend_type(const OpCall& call) {
  const AttendRules& rules = rules_of(call);
  const Dim value = call.in(2).dim(rules.value);
  shape_rule::expect_float(call);
  for (std::size_t i : {1u, 2u})
    if (call.inputs[i].dtype != call.inputs[0].dtype)
      refuse("attend.dtypes-differ", call,
             str("they are ", call.inputs[0].dtype, ", ", call.inputs[1].dtype, " and ", call.inputs[2].dtype),
             "cast() them to one dtype");
  check_shared_dims(call, rules);
  if (rules.causal && (rules.length.empty() || !call.in(0).has(rules.length) || call.in(1).has(rules.length)))
    refuse("attend.causal-dim-unclear", call, "causal, but it is not clear which dim of q has its positions",
           "name a dim of q that k lacks in AttendOptions::length");
  check_masks(call, rules);
  return {{call.in(0).replaced(rules.key, {value}), call.inputs[0].dtype},
          {call.in(0).minus({{rules.key, 1}}), DType::kF32}};
}

ShardingRule attend_sharding(const OpCall& call) {
  const AttendRules& rules = rules_of(call);
  ShardingRule rule = ShardingRule{}.whole(rules.memory).whole(rules.key).whole(rules.value);
  if (!rules.sources.empty()) rule.whole(rules.sources);
  return rule;
}

// Products over all scores, as if unmasked.
double scores_of(const OpCall& call) {
  const AttendRules& rules = rules_of(call);
  return static_cast<double>(call.in(0).elements() / call.in(0).size_of(rules.key)) *
         static_cast<double>(call.in(1).size_of(rules.memory));
}
double depth_of(const OpCall& call) {
  const AttendRules& rules = rules_of(call);
  return static_cast<double>(call.in(0).size_of(rules.key) + call.in(2).size_of(rules.value));
}

// --- With stored scores ---

Tensor wide(const Tensor& x, Site site) { return x.dtype() == DType::kF64 ? x : cast(x, DType::kF32, site); }

Tensor whole_scores(const Operands& o, const AttendRules& rules, Site site) {
  const Shape dims = o.q.shape().minus({{rules.key, 1}}).plus({o.k.shape().dim(rules.memory)});
  const Tensor s = multiply(einsum({wide(o.q, site), wide(o.k, site)}, dims, site), rules.scale, site);
  return o.bias ? add(s, wide(o.bias, site), site) : s;
}

// Masked scores become `hidden`.
Tensor masked(const Tensor& scores, double hidden, const Operands& o, const AttendRules& rules, Site site) {
  Tensor x = scores;
  if (rules.causal) {
    const Graph g(x.graph());
    const Tensor place = iota(g, o.q.shape().dim(rules.length), DType::kI32, site);
    const Tensor seen = iota(g, o.k.shape().dim(rules.memory), DType::kI32, site);
    x = select(less_equal(seen, place, site), x, hidden, site);
  }
  if (o.memory_end) {
    const Tensor place = iota(Graph(x.graph()), o.k.shape().dim(rules.memory), DType::kI64, site);
    x = select(less(place, cast(o.memory_end, DType::kI64, site), site), x, hidden, site);
  }
  if (!o.query_ids) return x;
  const Tensor alike = equal(cast(o.query_ids, DType::kI64, site), cast(o.memory_ids, DType::kI64, site), site);
  return select(alike, x, hidden, site);
}

Tensor whole_weights(const Tensor& scores, const Operands& o, const AttendRules& rules,
                     const std::optional<double>& extra_logit, Site site) {
  constexpr double kLowest =
      -3.0e38;  // below all scores; finite, so that a query that sees nothing gets finite weights
  const Dim memory = o.k.shape().dim(rules.memory);
  const Tensor seen = masked(scores, kLowest, o, rules, site);
  const Tensor weights = extra_logit ? softmax(seen, memory, *extra_logit, site) : softmax(seen, memory, site);
  return masked(weights, 0, o, rules, site);
}

// k or v as the sources give it: a copy.
Tensor from_sources(const Tensor& x, const Operands& o, const AttendRules& rules, Site site) {
  if (!o.sources) return x;
  const Dim dim = x.shape().dim(rules.sources), reader{dim.name + "_reader", dim.size};
  const Tensor fitting = minimum(maximum(o.sources, 0.0, site), static_cast<double>(dim.size - 1), site);
  return rename(gather(x, rename(fitting, dim, reader.name, site), dim, site), reader, dim.name, site);
}

// The same function of q, k, v and bias as attend.
Tensor by_whole_scores(Operands o, const AttendRules& rules, const AttendOptions& options, Site site) {
  o.k = from_sources(o.k, o, rules, site);
  o.v = from_sources(o.v, o, rules, site);
  const Tensor scores = whole_scores(o, rules, site);
  Tensor weights = transpose(whole_weights(scores, o, rules, options.extra_logit, site), scores.shape(), site);
  if (options.keep < 1)
    weights = dropout(weights, options.keep, scores.shape().minus(options.same_draw.in(scores, site)), site);
  const Shape dims = o.q.shape().replaced(rules.key, {o.v.shape().dim(rules.value)});
  return cast(einsum({weights, wide(o.v, site)}, dims, site), o.q.dtype(), site);
}

// --- attend_back ---

constexpr std::size_t kBackMasks = 6;  // where bias and segments begin among its operands

// The derivative by the bias is wide, whatever the bias is: many scores add to a number of it.
std::vector<TensorType> attend_back_type(const OpCall& call) {
  std::vector<TensorType> types(call.inputs.begin(), call.inputs.begin() + 3);
  if (!rules_of(call).biased) return types;
  const TensorType& bias = call.inputs[kBackMasks];
  const bool is_double = bias.dtype == DType::kF64 || call.inputs[0].dtype == DType::kF64;
  types.push_back({bias.shape, is_double ? DType::kF64 : DType::kF32});
  return types;
}

std::vector<ValueId> lower_attend_back(Lowering& l) {
  std::vector<ValueType> outs;
  for (std::size_t i = 0; i < l.call.outputs.size(); ++i) {
    ValueType type = l.local(l.call.outputs[i]);
    // Queries that share k and v, or the bias, and are on other processors add to their gradients.
    for (const Dim& dim : l.call.in(0))
      if (!l.call.out(i).has(dim.name))
        for (int axis : l.axes_of(dim.name)) type.sharding.partial.push_back(axis);
    std::sort(type.sharding.partial.begin(), type.sharding.partial.end());
    outs.push_back(std::move(type));
  }
  return l.builder.emit(AttendBack{rules_of(l.call), {}}, l.inputs, std::move(outs));
}

// y and the total are functions of the other operands, whose gradients include theirs.
Tensors attend_back_gradient(const Grad& g) {
  const auto& rules = g.attr<AttendRules>("rules");
  Tensors xs = g.xs();  // one tensor may be several operands: each is separate
  for (Tensor& x : xs)
    if (is_float(x.dtype())) x = identity(x, g.site());
  const Operands o = operands_of(xs, kBackMasks, rules);
  const Tensor dy = xs[5];
  const Tensor y = by_whole_scores(o, rules, {}, g.site());
  Tensors of = {o.q, o.k, o.v}, by = {o.q, o.k, o.v, dy}, dys = g.dys();
  if (o.bias) by.push_back(o.bias);
  if (o.bias && g.is_used(3)) of.push_back(o.bias);
  Tensors first = gradients({y}, of, {dy}, g.site());
  if (first.size() > 3) first[3] = cast(first[3], g.y(3).dtype(), g.site());
  dys.resize(first.size());
  const Tensors second = gradients(first, by, dys, g.site());
  Tensors results{second[0], second[1], second[2], Tensor(), Tensor(), second[3]};
  if (o.bias) results.push_back(second[4]);
  results.resize(g.xs().size());
  return results;
}

SampleInput ids(Shape shape) { return {std::move(shape), whole(0, 3), DType::kI32}; }

std::vector<Sample> attend_back_samples() {
  const Dim batch{"batch", 2}, length{"length", 4}, memory{"memory", 4}, heads{"heads", 2}, key{"key", 3},
      value{"value", 2};
  return {{{uniform_input({batch, length, key}), uniform_input({memory, key}), uniform_input({memory, value}),
            uniform_input({batch, length, value})},
           [=](Graph&, const Tensors& x) {
             const Tensor y = attend(x[0], x[1], x[2], memory, key, {.causal = true, .length = "length"});
             return gradients({y}, {x[0], x[1], x[2]}, {x[3]});
           }},
          {{uniform_input({length, key}), uniform_input({memory, key}), uniform_input({memory, key}),
            uniform_input({memory}), ids({length}), ids({memory})},
           [=](Graph&, const Tensors& x) {
             const AttendOptions options{.bias = x[3], .query_segments = x[4], .memory_segments = x[5]};
             const Tensor y = attend(x[0], x[1], x[2], memory, key, options);
             return gradients({y}, {x[0], x[1], x[2]}, {x[0]});
           }},
          {{uniform_input({batch, length, key}),
            uniform_input({batch, memory, key}),
            uniform_input({batch, memory, value}),
            uniform_input({batch, length, value}),
            {{batch}, whole(0, 5), DType::kI32}},
           [=](Graph&, const Tensors& x) {
             const Tensor y = attend(x[0], x[1], x[2], memory, key, {.memory_end = x[4]});
             return gradients({y}, {x[0], x[1], x[2]}, {x[3]});
           }},
          // A bias that lacks some dims of the scores.
          {{uniform_input({batch, length, heads, key}), uniform_input({batch, memory, heads, key}),
            uniform_input({batch, memory, heads, key}), uniform_input({heads, length, memory})},
           [=](Graph&, const Tensors& x) {
             const AttendOptions options{.causal = true, .length = "length", .bias = x[3]};
             return gradients({attend(x[0], x[1], x[2], memory, key, options)}, x, {x[0]});
           }},
          {{uniform_input({length, heads, key}), uniform_input({memory, key}), uniform_input({memory, value}),
            uniform_input({length, heads, value}), uniform_input({memory, length}), ids({length}), ids({memory})},
           [=](Graph&, const Tensors& x) {
             const AttendOptions options{
                 .length = "length", .bias = x[4], .query_segments = x[5], .memory_segments = x[6]};
             return gradients({attend(x[0], x[1], x[2], memory, key, options)}, {x[0], x[4]}, {x[3]});
           }}};
}

const OpDef& kAttendBack = define_op({
    .name = "attend_back",
    .doc = "The derivatives of attend by q, k, v and the bias; makes the weights again from the total.",
    .shape = attend_back_type,
    .sharding = attend_sharding,
    .gradient = attend_back_gradient,
    .lower = lower_attend_back,
    .flops = [](const OpCall& call) { return scores_of(call) * (4 * depth_of(call) + 12 + rules_of(call).biased); },
    .samples = attend_back_samples(),
});

// --- attend ---

// The sources are followed first; their copies have ordinary gradients.
Tensors gradient_by_sources(const Grad& g, const AttendRules& rules) {
  Tensors xs = g.xs();  // one tensor may be several operands: each is separate
  for (Tensor& x : xs)
    if (is_float(x.dtype())) x = identity(x, g.site());
  const Operands o = operands_of(xs, 3, rules);
  const AttendOptions options{.causal = rules.causal,
                              .length = rules.length,
                              .bias = o.bias,
                              .query_segments = o.query_ids,
                              .memory_segments = o.memory_ids,
                              .scale = rules.scale,
                              .memory_end = o.memory_end};
  const Tensor y = attend(o.q, from_sources(o.k, o, rules, g.site()), from_sources(o.v, o, rules, g.site()),
                          rules.memory, rules.key, options, g.site());
  Tensors by{o.q, o.k, o.v};
  if (o.bias) by.push_back(o.bias);
  Tensors results = gradients({y}, by, {g.dy(0)}, g.site());
  results.resize(g.xs().size());
  return results;
}

Tensors attend_gradient(const Grad& g) {
  const auto& rules = g.attr<AttendRules>("rules");
  if (!rules.sources.empty()) return gradient_by_sources(g, rules);
  const Operands o = operands_of(g.xs(), 3, rules);
  Tensors inputs{o.q, o.k, o.v, g.y(0), g.y(1), g.dy(0)};
  for (const Tensor& mask : o.masks()) inputs.push_back(mask);
  Tensors results = apply_all(kAttendBack, inputs, {{"rules", rules}}, g.site());
  if (o.bias) results[3] = cast(results[3], o.bias.dtype(), g.site());
  results.resize(g.xs().size());
  return results;
}

using Apply = std::function<Tensor(const Tensors&)>;

Sample sample_of(std::vector<SampleInput> inputs, Apply apply) {
  return {std::move(inputs), [apply](Graph&, const Tensors& x) { return Tensors{apply(x)}; }};
}

const Dim kBatch{"batch", 2}, kLength{"length", 4}, kMemory{"memory", 6}, kHeads{"heads", 2}, kKey{"key", 3},
    kValue{"value", 2};

std::vector<Sample> samples_of_dims() {
  const Dim group{"group", 2}, six{"length", 6};
  return {sample_of({uniform_input({kBatch, six, kHeads, kKey}), uniform_input({kBatch, kMemory, kHeads, kKey}),
                     uniform_input({kBatch, kMemory, kHeads, kKey})},
                    [](const Tensors& x) { return attend(x[0], x[1], x[2], kMemory, kKey); }),
          // Any order of dims, fewer queries than memory, and a value of another size.
          sample_of({uniform_input({kHeads, kKey, kLength}), uniform_input({kKey, kMemory, kHeads}),
                     uniform_input({kMemory, kHeads, kValue})},
                    [](const Tensors& x) { return attend(x[0], x[1], x[2], kMemory, kKey, {.causal = true}); }),
          // More queries than memory.
          sample_of(
              {uniform_input({six, kKey}), uniform_input({{"memory", 4}, kKey}), uniform_input({{"memory", 4}, kKey})},
              [](const Tensors& x) {
                return attend(x[0], x[1], x[2], {"memory", 4}, kKey, {.causal = true});
              }),
          // Groups of heads with one memory each.
          sample_of({uniform_input({kLength, kHeads, group, kKey}), uniform_input({kMemory, kHeads, kKey}),
                     uniform_input({kMemory, kHeads, kValue})},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey, {.causal = true, .length = "length"});
                    }),
          sample_of({uniform_input({kHeads, kKey}), uniform_input({kMemory, kHeads, kKey}),
                     uniform_input({kMemory, kHeads, kKey})},
                    [](const Tensors& x) { return attend(x[0], x[1], x[2], kMemory, kKey); })};
}

std::vector<Sample> samples_of_masks() {
  return {// A bias without the batch dim.
          sample_of({uniform_input({kBatch, kLength, kHeads, kKey}), uniform_input({kBatch, kMemory, kHeads, kKey}),
                     uniform_input({kBatch, kMemory, kHeads, kKey}), uniform_input({kHeads, kLength, kMemory})},
                    [](const Tensors& x) { return attend(x[0], x[1], x[2], kMemory, kKey, {.bias = x[3]}); }),
          sample_of({uniform_input({kLength, kKey}), uniform_input({kMemory, kKey}), uniform_input({kMemory, kValue}),
                     uniform_input({kMemory})},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey, {.causal = true, .bias = x[3], .scale = 2});
                    }),
          // Some queries see nothing.
          sample_of({uniform_input({kBatch, kLength, kKey}), uniform_input({kBatch, kMemory, kKey}),
                     uniform_input({kBatch, kMemory, kKey}), ids({kBatch, kLength}), ids({kMemory})},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey, {.query_segments = x[3], .memory_segments = x[4]});
                    }),
          // One query for each head.
          sample_of({uniform_input({kHeads, kKey}), uniform_input({kMemory, kHeads, kKey}),
                     uniform_input({kMemory, kHeads, kKey}), ids({}), ids({kMemory})},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey, {.query_segments = x[3], .memory_segments = x[4]});
                    }),
          sample_of({uniform_input({kHeads, kLength, kKey}), uniform_input({kHeads, kMemory, kKey}),
                     uniform_input({kHeads, kMemory, kKey}), uniform_input({kLength, kMemory}), ids({kLength}),
                     ids({kMemory})},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey,
                                    {.causal = true, .bias = x[3], .query_segments = x[4], .memory_segments = x[5]});
                    })};
}

// Memory that has an end, and sources of it. Some memory has no end or no beginning, some sources do not exist.
std::vector<Sample> samples_of_memory() {
  const Dim beams{"beams", 2};
  const SampleInput q = uniform_input({kBatch, beams, kHeads, kKey}),
                    k = uniform_input({kBatch, beams, kMemory, kHeads, kKey}), end{{kBatch}, whole(0, 9), DType::kI32};
  return {sample_of({uniform_input({kBatch, kLength, kHeads, kKey}),
                     uniform_input({kBatch, kMemory, kHeads, kKey}),
                     uniform_input({kBatch, kMemory, kHeads, kKey}),
                     {{kHeads, kBatch}, whole(-2, 9), DType::kI32}},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey, {.causal = true, .memory_end = x[3]});
                    }),
          sample_of({q, k, k, {{kMemory, beams, kBatch}, whole(-1, 4), DType::kI32}},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey, {.sources = x[3], .source_dim = "beams"});
                    }),
          sample_of({q,
                     k,
                     uniform_input({kBatch, beams, kMemory, kHeads, kValue}),
                     uniform_input({kBatch, kMemory}),
                     ids({kBatch}),
                     ids({kMemory}),
                     end,
                     {{beams, kMemory}, whole(0, 2), DType::kI64}},
                    [](const Tensors& x) {
                      return attend(x[0], x[1], x[2], kMemory, kKey,
                                    {.bias = x[3],
                                     .query_segments = x[4],
                                     .memory_segments = x[5],
                                     .memory_end = x[6],
                                     .sources = x[7],
                                     .source_dim = "beams"});
                    })};
}

std::vector<Sample> attend_samples() {
  std::vector<Sample> all = samples_of_dims();
  for (Sample& sample : samples_of_masks()) all.push_back(std::move(sample));
  for (Sample& sample : samples_of_memory()) all.push_back(std::move(sample));
  return all;
}

const OpDef& kAttend = define_op({
    .name = "attend",
    .doc = "Softmax attention; gives the total of e^(score - largest score) too, for its derivative.",
    .shape = attend_type,
    .sharding = attend_sharding,
    .gradient = attend_gradient,
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return l.builder.emit(Attend{rules_of(l.call)}, l.inputs,
                            {l.local(l.call.outputs[0]), l.local(l.call.outputs[1])});
    },
    .flops = [](const OpCall& call) { return scores_of(call) * (2 * depth_of(call) + 12); },
    .samples = attend_samples(),
});

void check_dim(const Tensor& x, const char* name, const Dim& dim, Site site) {
  if (!x || !x.shape().has(dim))
    throw UserError({.code = "attend.missing-dim",
                     .what = str("attend: ", name, " ", x ? str(x.shape()) : "is empty and", " lacks dim ", dim),
                     .where = str("attend at ", to_string(site)),
                     .fix = "give q and k the dim d_key, and k and v the memory dim"});
}

// The dim of v that replaces d_key.
std::string own_dim(const Tensor& q, const Tensor& v, const Dim& memory, const Dim& d_key, Site site) {
  std::vector<std::string> own;
  for (const Dim& dim : v.shape())
    if (dim.name == d_key.name || (dim != memory && !q.shape().has(dim.name))) own.push_back(dim.name);
  if (own.size() != 1)
    throw UserError(
        {.code = "attend.several-value-dims",
         .what = str("attend: v ", v.shape(), " has ", own.size(), " dims that replace d_key; q is ", q.shape()),
         .where = str("attend at ", to_string(site)),
         .fix = "give v exactly one dim in place of d_key: reshape() several dims to one"});
  return own[0];
}

// The dim of positions in q: the named dim, or the only dim that k lacks.
std::string length_of(const Tensor& q, const Tensor& k, const Dim& d_key, const AttendOptions& options) {
  if (!options.length.name().empty()) return options.length.name();
  const Shape rows = q.shape().minus({d_key}).minus(k.shape());
  return rows.rank() == 1 ? rows[0].name : "";
}

void check_options(const AttendOptions& options, Site site) {
  if (static_cast<bool>(options.sources) == options.source_dim.name().empty())
    throw UserError({.code = "attend.one-sided-sources",
                     .what = "attend was given only one of sources and source_dim",
                     .where = str("attend at ", to_string(site)),
                     .fix = "give both: the table, and the dim of k and v that its numbers index"});
  if (static_cast<bool>(options.query_segments) != static_cast<bool>(options.memory_segments))
    throw UserError({.code = "attend.one-sided-segments",
                     .what = "attend was given only one of query_segments and memory_segments",
                     .where = str("attend at ", to_string(site)),
                     .fix = "give both; in self-attention memory_segments is query_segments with its length renamed"});
  if (options.keep <= 0 || options.keep > 1)
    throw UserError({.code = "attend.bad-probability",
                     .what = str("attend keeps weights with probability ", options.keep),
                     .where = str("attend at ", to_string(site)),
                     .fix = "give AttendOptions::keep a probability above 0 and at most 1"});
}

// UserError if the op would refuse the operands.
void check_operands(const Tensors& inputs, const Attrs& attrs, Site site) {
  OpCall call{.op = &kAttend, .inputs = {}, .outputs = {}, .attrs = &attrs, .site = site};
  for (const Tensor& x : inputs) call.inputs.push_back({x.shape(), x.dtype()});
  attend_type(call);
}

}  // namespace

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const DimRef& memory_dim, const DimRef& key_dim,
              const AttendOptions& options, Site site) {
  const Dim memory = memory_dim.in(k, site), d_key = key_dim.in(q, site);
  check_dim(q, "q", d_key, site);
  check_dim(k, "k", d_key, site);
  check_dim(k, "k", memory, site);
  check_dim(v, "v", memory, site);
  check_options(options, site);
  AttendRules rules{.length = length_of(q, k, d_key, options),
                    .memory = memory.name,
                    .key = d_key.name,
                    .value = own_dim(q, v, memory, d_key, site),
                    .scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(d_key.size))),
                    .causal = options.causal,
                    .biased = static_cast<bool>(options.bias),
                    .segments = static_cast<bool>(options.query_segments),
                    .bounded = static_cast<bool>(options.memory_end),
                    .sources = options.source_dim.name()};
  const Operands o{
      q, k, v, options.bias, options.query_segments, options.memory_segments, options.memory_end, options.sources};
  Tensors inputs{q, k, v};
  for (const Tensor& mask : o.masks()) inputs.push_back(mask);
  const Attrs attrs{{"rules", rules}};
  if (!options.extra_logit && options.keep == 1) return apply_all(kAttend, inputs, attrs, site)[0];
  check_operands(inputs, attrs, site);
  return by_whole_scores(o, rules, options, site);
}

}  // namespace weft
