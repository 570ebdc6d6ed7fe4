// loop: a body that runs repeatedly. The body is a set of nodes of the same graph; the loop is one op whose operands
// are the initial carried values and the tensors that the body reads from outside.
#include "base/str.h"
#include "language/shape_math.h"
#include "ops/loop_body.h"
#include "ops/rules.h"

namespace weft {

namespace {

const OpDef& kLoopInput = define_op({
    .name = "loop_input",
    .doc = "An input of the body of a loop at each trip: the iteration, or a carried value.",
    .shape = [](const OpCall& call) { return std::vector<TensorType>{call.attr<TensorType>("type")}; },
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {}; },
    .lower = [](Lowering&) -> std::vector<ValueId> { throw InternalError("a loop's body is lowered outside of it"); },
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph& g, const Tensors& x) {
                   return loop(g, 2, x,
                               [](const Tensor&, const Tensors& c) {
                                 return LoopStep{{sin(c[0])}, {}, {}, {}};
                               })
                       .carried;
                 }}},
});

const LoopBody& body_of(const OpCall& call) { return *call.attr<std::shared_ptr<LoopBody>>("body"); }

Shape with_history(const LoopBody& body, const Shape& shape) { return Shape{{body.history, body.trips}}.plus(shape); }

std::vector<TensorType> loop_types(const OpCall& call) {
  const LoopBody& body = body_of(call);
  std::vector<TensorType> types(call.inputs.begin(), call.inputs.begin() + static_cast<std::ptrdiff_t>(body.carried));
  const auto keep = [&](const TensorType& type) { types.push_back({with_history(body, type.shape), type.dtype}); };
  for (std::size_t i = 0; i < body.sums; ++i) types.push_back(body.types[body.carried + i]);
  for (std::size_t i = 0; i < body.kept; ++i) keep(body.types[body.first_kept() + i]);
  for (std::size_t i = 0; i < body.starts(); ++i) keep(call.inputs[i]);
  return types;
}

// Appends the last instructions of an iteration and names its outputs. Each output has the sharding of its input.
void finish_trip(Lowering& l, const LoopBody& body, const std::vector<ValueId>& inputs,
                 const std::vector<ValueId>& results) {
  Builder& b = l.builder;
  const auto laid = [&](ValueId x, std::size_t output) {
    const ValueType last = b.type(inputs[1 + output]);  // a copy: resharding adds values, which moves them
    return b.dense(l.context.reshard(x, last.sharding), last.shape);
  };
  std::vector<ValueId> next;
  for (std::size_t k = 0; k < body.carried; ++k) next.push_back(laid(results[k], k));
  for (std::size_t k = body.carried; k < body.first_kept(); ++k)
    next.push_back(b.map("add", {inputs[1 + k], laid(results[k], k)}, b.type(inputs[1 + k])));
  const auto keep = [&](std::size_t output, ValueId x) {
    const ValueId all = inputs[1 + output];
    const Sharding whole = b.value(all).sharding;
    Sharding sharding = whole;
    sharding.dims.erase(sharding.dims.begin());
    const ValueId laid = l.context.reshard(x, sharding);
    const ValueId piece = b.reshape(laid, Shape{{body.history, 1}}.plus(b.value(laid).shape), whole);
    next.push_back(b.emit_one(DynamicUpdate{body.history}, {all, piece, inputs[0]}, b.type(all)));
  };
  for (std::size_t k = 0; k < body.kept; ++k) keep(body.first_kept() + k, results[body.first_kept() + k]);
  for (std::size_t k = 0; k < body.starts(); ++k) keep(body.first_start() + k, inputs[1 + k]);
  for (std::size_t k = 0; k < next.size(); ++k) b.output(str("next", k), next[k]);
  if (body.stops) b.output("stop", l.context.reshard(results.back(), {}));
}

std::vector<ValueId> lower_loop(Lowering& l) {
  const LoopBody& body = body_of(l.call);
  Builder& b = l.builder;
  BodyRequest request{.inputs = {{body.index, {DType::kI64, {}, {}}}}, .results = body.results, .finish = {}};
  std::vector<ValueId> operands;
  std::vector<ValueType> types;
  for (std::size_t k = 0; k < l.call.outputs.size(); ++k) {
    const TensorType& whole = l.call.outputs[k];
    Sharding laid = l.wanted[k];
    if (k >= body.first_kept())
      laid.dims[0].clear();  // every iteration writes one element of it: unsplit inside the body
    types.push_back({whole.dtype, local_shape(whole.shape, laid, b.mesh()), laid});
    operands.push_back(k < body.carried ? b.dense(l.context.reshard(l.inputs[k], laid), types[k].shape)
                                        : b.fill(0, types[k]));
    request.inputs.push_back({k < body.carried ? body.given[k] : TensorId{}, types[k]});
  }
  for (std::size_t i = 0; i < body.captures.size(); ++i) {
    const ValueId x = b.dense(l.inputs[body.carried + i], b.value(l.inputs[body.carried + i]).shape);
    operands.push_back(x);
    request.inputs.push_back({body.captures[i], b.type(x)});
  }
  request.finish = [&](const std::vector<ValueId>& inputs, const std::vector<ValueId>& results) {
    finish_trip(l, body, inputs, results);
  };
  Loop loop{body.trips, body.stops, Body(l.context.body(request))};
  return b.emit(std::move(loop), std::move(operands), std::move(types));
}

bool has_derivative(const TensorType& type) { return is_float(type.dtype); }
bool is_narrow(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// One iteration of the backward loop: a clone of the body from the carried values of the iteration, and its gradients.
struct BackwardTrip {
  const LoopBody& body;
  const Grad& g;
  std::vector<std::size_t> reached;  // captures that have a gradient, found by the first call

  // The kept value of iteration i.
  Tensor of_trip(const Tensor& all, const Tensor& i) const {
    const Dim trips = all.shape().dim(body.history);
    return reshape(dynamic_slice(all, i, trips, 1, g.site()), all.shape().minus({trips}), g.site());
  }

  LoopStep operator()(const Tensor& j, const Tensors& d_next) {
    const std::shared_ptr<GraphData>& graph = g.x().graph();
    const Site site = g.site();
    const Tensor i =
        subtract(constant(Graph(graph), static_cast<double>(body.trips - 1), {}, DType::kI64, site), j, site);
    std::map<TensorId, Tensor> by = {{body.index, i}};
    Tensors xs, d_starts;  // d_starts: gradients of the kept start values, for second gradients
    for (std::size_t k = 0; k < body.carried; ++k) {
      const std::size_t start = body.first_start() + k;
      const Tensor given = by[body.given[k]] = of_trip(g.y(start), i);
      if (!has_derivative(body.types[k])) continue;
      xs.push_back(given);
      d_starts.push_back(g.is_used(start) ? of_trip(g.dy(start), i) : Tensor());
    }
    const std::size_t carried_xs = xs.size();
    for (std::size_t c = 0; c < body.captures.size(); ++c) {
      const Tensor& x = g.x(body.carried + c);
      by[body.captures[c]] = x;
      if (is_float(x.dtype())) xs.push_back(x);
    }
    const NodeId first = graph->nodes.end_id();
    const Tensors results = clone_region(graph, body.region, by, body.results);
    Tensors ys, dys;
    for (std::size_t k = 0, d = 0; k < body.first_start(); ++k) {
      if (!has_derivative(body.types[k])) continue;
      ys.push_back(results[k]);
      dys.push_back(k < body.carried ? d_next[d++] : k < body.first_kept() ? g.dy(k) : of_trip(g.dy(k), i));
    }
    const Tensors dxs = gradients_from(first, ys, xs, dys, site);
    LoopStep step;
    for (std::size_t k = 0; k < carried_xs; ++k) {
      const Tensor dx = dxs[k] ? transpose(dxs[k], xs[k].shape(), site) : zeros_like(xs[k], site);
      step.carried.push_back(d_starts[k] ? add(dx, d_starts[k], site) : dx);
    }
    for (std::size_t c = carried_xs; c < xs.size(); ++c) {
      if (!dxs[c]) continue;
      step.sums.push_back(is_narrow(dxs[c].dtype()) ? cast(dxs[c], DType::kF32, site) : dxs[c]);
      reached.push_back(c - carried_xs);
    }
    return step;
  }
};

Tensors loop_gradient(const Grad& g) {
  const LoopBody& body = *g.attr<std::shared_ptr<LoopBody>>("body");
  if (body.stops)
    throw UserError({.code = "loop.gradient-of-early-stop",
                     .what = "the gradient goes through a loop that may stop early, which has no gradient",
                     .where = str("loop at ", to_string(g.site())),
                     .fix = "give the loop a fixed number of trips, or put stop_gradient() after it"});
  Tensors first;
  std::vector<std::size_t> carried, float_captures;
  for (std::size_t k = 0; k < body.carried; ++k)
    if (has_derivative(body.types[k])) {
      first.push_back(g.dy(k));
      carried.push_back(k);
    }
  for (std::size_t c = 0; c < body.captures.size(); ++c)
    if (is_float(g.x(body.carried + c).dtype())) float_captures.push_back(c);
  BackwardTrip trip{body, g, {}};
  const LoopResult result = loop(
      Graph(g.x().graph()), body.trips, first, [&](const Tensor& j, const Tensors& d_next) { return trip(j, d_next); },
      g.site());
  Tensors dxs(g.xs().size());
  for (std::size_t i = 0; i < carried.size(); ++i) dxs[carried[i]] = result.carried[i];
  for (std::size_t i = 0; i < trip.reached.size(); ++i) {
    const std::size_t x = body.carried + float_captures[trip.reached[i]];
    dxs[x] = cast(result.sums[i], g.x(x).dtype(), g.site());
  }
  return dxs;
}

const OpDef& kLoop = define_op({
    .name = "loop",
    .doc = "Runs a body a number of times: carried values, and sums over the trips.",
    .shape = loop_types,
    .sharding = sharding_rule::relayout(),
    .gradient = loop_gradient,
    .lower = lower_loop,
    .flops =
        [](const OpCall& call) {
          const LoopBody& body = body_of(call);
          return body.flops * static_cast<double>(body.trips);
        },
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}, {{{"b", 4}, {"c", 4}}, uniform(-1, 1)}},
                 [](Graph& g, const Tensors& x) {
                   // h is multiplied by the weights in every iteration; its sum is accumulated.
                   const LoopResult r = loop(g, 3, {x[0]}, [&](const Tensor&, const Tensors& carried) {
                     const Tensor h = tanh(rename(einsum({carried[0], x[1]}), {"c", 4}, "b"));
                     return LoopStep{{h}, {einsum({carried[0], h}, {{"b", 4}})}, {h * 2.0}, {}};
                   });
                   return Tensors{r.carried[0], r.sums[0], rename(r.kept[0], r.kept[0].shape()[0], "trips")};
                 }},
                {{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph& g, const Tensors& x) {
                   // The iteration, and a loop inside a loop.
                   const LoopResult r = loop(g, 2, {x[0]}, [&](const Tensor& i, const Tensors& outer) {
                     const LoopResult in = loop(g, 3, {outer[0]}, [&](const Tensor& j, const Tensors& inner) {
                       const Tensor scale = cast(add(multiply(i, 3.0), j), DType::kF32) * 0.1 + 0.5;
                       return LoopStep{{sin(inner[0] * scale)}, {}, {}, {}};
                     });
                     return LoopStep{in.carried, {}, {}, {}};
                   });
                   return r.carried;
                 }},
                {{},
                 [](Graph& g, const Tensors&) {
                   // Different random numbers in every iteration.
                   return loop(g, 2, {},
                               [&](const Tensor&, const Tensors&) {
                                 const Tensor noise = random_uniform(g, {{"a", 6}, {"b", 4}});
                                 return LoopStep{{}, {noise}, {}, {}};
                               })
                       .sums;
                 }}},
});

void check_step(const LoopStep& step, const Tensors& first, Site site) {
  if (step.carried.size() != first.size())
    throw UserError({.code = "loop.carried-count-mismatch",
                     .what = str("the body of a loop that carries ", first.size(), " values gave ", step.carried.size(),
                                 " next values"),
                     .where = str("loop at ", to_string(site)),
                     .fix = "return the next value of every carried value, in order"});
  for (std::size_t k = 0; k < first.size(); ++k)
    if (!step.carried[k] || !same_dims(step.carried[k].shape(), first[k].shape()) ||
        step.carried[k].dtype() != first[k].dtype())
      throw UserError({.code = "loop.carried-type-changes",
                       .what = str("carried value ", k, " of a loop starts as ", first[k].dtype(), " ",
                                   first[k].shape(), " and goes on as ",
                                   step.carried[k] ? str(step.carried[k].dtype(), " ", step.carried[k].shape())
                                                   : str("an empty tensor")),
                       .where = str("loop at ", to_string(site)),
                       .fix = "keep its dims and dtype in every trip"});
  if (step.stop && (step.stop.dtype() != DType::kBool || !step.stop.shape().empty()))
    throw UserError({.code = "loop.bad-stop",
                     .what = str("a loop is to stop by ", step.stop.dtype(), " ", step.stop.shape()),
                     .where = str("loop at ", to_string(site)),
                     .fix = "give a bool scalar, for instance reduce_all(…)"});
}

// Ops that are made during its lifetime are in the body of a new loop.
class LoopScope {
 public:
  explicit LoopScope(GraphData& graph) : graph_(graph), before_(graph.loop) {
    number_ = static_cast<int>(graph.loops.size());
    graph.loops.push_back({graph.loop, {}});
    graph.loop = number_;
  }
  ~LoopScope() { graph_.loop = before_; }
  LoopScope(const LoopScope&) = delete;
  LoopScope& operator=(const LoopScope&) = delete;
  int number() const { return number_; }
  int around() const { return before_; }

 private:
  GraphData& graph_;
  const int before_;
  int number_;
};

double flops_in(const GraphData& graph, const Region& region) {
  double sum = 0;
  for (const NodeId n : ids(region.first, region.last)) {
    if (!is_in(graph, region, n)) continue;
    const Node& node = graph.nodes[n];
    if (node.recompute == 0) sum += node.op->flops(call_of(graph, node));
  }
  return sum;
}

}  // namespace

LoopResult loop(const Graph& g, std::int64_t trips, const Tensors& first,
                const std::function<LoopStep(const Tensor& i, const Tensors& carried)>& make, Site site) {
  GraphData& graph = *g.data();
  if (trips < 1 || trips > kMostTrips)
    throw UserError(
        {.code = "loop.bad-trips",
         .what = str("a loop cannot run ", trips, " trips"),
         .where = str("loop at ", to_string(site)),
         .fix = trips < 1 ? "give at least one trip" : str("give at most ", kMostTrips, ", or put a loop around it")});
  for (const Tensor& x : first)
    if (!x || x.graph() != g.data())
      throw UserError({.code = "loop.foreign-tensor",
                       .what = x ? str("a loop carries '", x.name(), "', which is of another graph")
                                 : str("a loop carries an empty tensor"),
                       .where = str("loop at ", to_string(site)),
                       .fix = "give first values of the loop's graph"});
  auto body = std::make_shared<LoopBody>();
  LoopStep step;
  {
    const LoopScope scope(graph);
    body->region = {graph.nodes.end_id(), {}, scope.number()};
    const auto given = [&](const TensorType& type) {
      const OwnDimsGuard own(g.data());  // an initial value may have one
      return apply_all(g, kLoopInput, {}, {{"type", type}}, site)[0];
    };
    const Tensor index = given({{}, DType::kI64});
    body->index = index.id();
    Tensors carried;
    for (const Tensor& x : first) {
      carried.push_back(given({x.shape(), x.dtype()}));
      body->given.push_back(carried.back().id());
    }
    LoopData& here = graph.loops[static_cast<std::size_t>(scope.number())];
    here.iteration = index.id();
    if (scope.around() >= 0) {
      const Tensor outer(g.data(), graph.loops[static_cast<std::size_t>(scope.around())].iteration);
      here.iteration = add(multiply(outer, static_cast<double>(trips), site), index, site).id();
    }
    step = make(index, carried);
    check_step(step, first, site);
    for (std::size_t k = 0; k < first.size(); ++k) step.carried[k] = transpose(step.carried[k], first[k].shape(), site);
    body->region.last = graph.nodes.end_id();
  }
  body->trips = trips;
  body->stops = static_cast<bool>(step.stop);
  body->carried = first.size();
  body->sums = step.sums.size();
  body->kept = step.kept.size();
  body->history = str(kOwnDim, "trips", body->region.loop);
  body->flops = flops_in(graph, body->region);
  Tensors results = step.carried;
  results.insert(results.end(), step.sums.begin(), step.sums.end());
  results.insert(results.end(), step.kept.begin(), step.kept.end());
  if (step.stop) results.push_back(step.stop);
  for (const Tensor& x : results) {
    body->results.push_back(x.id());
    body->types.push_back({x.shape(), x.dtype()});
  }
  Tensors operands = first;
  body->captures = captures_of(graph, body->region, body->results);
  for (TensorId id : body->captures) operands.emplace_back(g.data(), id);
  const OwnDimsGuard own(g.data());
  const Tensors outputs = apply_all(g, kLoop, operands, {{"body", body}}, site);
  const auto sums = outputs.begin() + static_cast<std::ptrdiff_t>(body->carried);
  const auto kept = outputs.begin() + static_cast<std::ptrdiff_t>(body->first_kept());
  const auto starts = outputs.begin() + static_cast<std::ptrdiff_t>(body->first_start());
  return {Tensors(outputs.begin(), sums), Tensors(sums, kept), Tensors(kept, starts)};
}

}  // namespace weft
