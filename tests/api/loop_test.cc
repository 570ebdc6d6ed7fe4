// Loops, microbatches, recomputation and reversible blocks through a session: equal results, fewer collectives, less
// memory.
#include <gtest/gtest.h>

#include <set>

#include "language/shape_math.h"
#include "support/compile.h"
#include "base/str.h"
#include "program/cost.h"
#include "program/memory_plan.h"
#include "program/text.h"
#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::loop_test {
namespace {

const Dim kBatch{"batch", 8}, kIn{"in", 4}, kHidden{"hidden", 16};

std::vector<double> numbers(const Array& array) {
  const Array f64 = array.cast(DType::kF64);
  const auto* data = reinterpret_cast<const double*>(f64.bytes());
  return {data, data + f64.elements()};
}

// Fetches on a mesh, in f64.
std::vector<Array> run(const Graph& g, const Tensors& fetch, const Feeds& feeds, const std::string& mesh,
                       const std::string& layout) {
  Session session(Mesh::parse(mesh));
  Executable step = session.compile(g, Layout::parse(layout), {.fetch = fetch, .compute_as = DType::kF64});
  const Values values = step.run(feeds);
  std::vector<Array> arrays;
  for (const Tensor& x : fetch) arrays.push_back(values[x]);
  return arrays;
}

void expect_near(const Array& a, const Array& b, double tolerance) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], tolerance) << i;
}

Array filled(const Shape& shape) {
  Array array(shape, DType::kF32);
  auto* data = reinterpret_cast<float*>(array.bytes());
  for (std::int64_t i = 0; i < array.elements(); ++i) data[i] = static_cast<float>((i * 37 % 23) - 11) / 16.0f;
  return array;
}

// A two-layer loss of a batch; variables are made by the first call.
struct Model {
  Graph g;
  Tensor x = g.input("x", {kBatch, kIn});
  Tensor w1 = g.variable("w1", {kIn, kHidden}, init::normal(0.5));
  Tensor w2 = g.variable("w2", {kHidden}, init::normal(0.5));
  Tensor loss(const Tensor& part) const { return mean(square(einsum({tanh(einsum({part, w1})), w2}))); }
};

TEST(Loop, AStopEndsItEverywhere) {
  Graph g;
  const Tensor x = g.input("x", {kBatch});
  const LoopResult r = loop(g, 100, {x, constant(g, 0.0)}, [&](const Tensor&, const Tensors& c) {
    const Tensor next = c[0] * 2.0;
    return LoopStep{{next, c[1] + 1.0}, {}, {}, greater(reduce_max(abs(next)), 100.0)};
  });
  for (const char* mesh : {"", "data:4"}) {
    const Feeds feeds = {{x, filled({kBatch})}};
    const std::vector<Array> got = run(g, {r.carried[1]}, feeds, mesh, *mesh ? "batch:data" : "");
    EXPECT_EQ(got[0].item(), 8.0) << mesh;  // 11/16 * 2^8 > 100
  }
}

// A program may call its dims what it likes: that of the trips is none of them.
TEST(Loop, TheDimOfKeptValuesMeetsNoOther) {
  Graph g;
  const Dim trips{"trips0", 4};
  const Tensor x = g.input("x", {trips});
  const LoopResult r = loop(g, 3, {x}, [](const Tensor&, const Tensors& c) {
    return LoopStep{{c[0] * 2.0}, {}, {c[0]}, {}};
  });
  const Dim kept = r.kept[0].shape()[0];
  EXPECT_TRUE(is_own_dim(kept.name));
  const Tensor named = rename(r.kept[0], kept, "trips"), sum = reduce_sum(r.kept[0] + zeros_like(r.kept[0]), {kept});
  EXPECT_EQ(named.shape(), (Shape{{"trips", 3}, trips}));
  const LoopResult again = loop(g, 2, {r.kept[0]}, [](const Tensor&, const Tensors& c) {
    return LoopStep{{c[0]}, {}, {c[0]}, {}};
  });
  const Tensor all = reduce_sum(again.kept[0]), dx = gradients({all}, {x})[0];
  const Feeds feeds = {{x, Array({trips}, std::vector<float>{1, 2, 3, 4})}};
  for (const char* layout : {"", "trips0:p"}) {
    const std::vector<Array> got = run(g, {named, sum, all, dx}, feeds, "p:2", layout);
    EXPECT_EQ(numbers(got[0]), (std::vector<double>{1, 2, 3, 4, 2, 4, 6, 8, 4, 8, 12, 16})) << layout;
    EXPECT_EQ(numbers(got[1]), (std::vector<double>{7, 14, 21, 28})) << layout;
    EXPECT_EQ(numbers(got[2]), (std::vector<double>{140})) << layout;
    EXPECT_EQ(numbers(got[3]), (std::vector<double>{14, 14, 14, 14})) << layout;
  }
}

TEST(Loop, ErrorsSayWhatToDo) {
  Graph g;
  const Tensor x = g.input("x", {kBatch});
  const auto same = [](const Tensor&, const Tensors& c) { return LoopStep{c, {}, {}, {}}; };
  EXPECT_USER_ERROR(loop(g, 0, {x}, same), "a loop cannot run 0 trips", "give at least one trip");
  EXPECT_USER_ERROR(loop(g, 2, {Tensor()}, same), "a loop carries an empty tensor",
                    "give first values of the loop's graph");
  EXPECT_USER_ERROR(loop(g, 2, {Graph().input("y", {})}, same), "a loop carries 'y', which is of another graph",
                    "give first values of the loop's graph");
  EXPECT_USER_ERROR(loop(g, 2, {x}, [](const Tensor&, const Tensors&) { return LoopStep{}; }),
                    "the body of a loop that carries 1 values gave 0 next values",
                    "return the next value of every carried value, in order");
  EXPECT_USER_ERROR(loop(g, 2, {x},
                         [](const Tensor&, const Tensors& c) {
                           return LoopStep{{mean(c[0])}, {}, {}, {}};
                         }),
                    "carried value 0 of a loop starts as f32 [batch=8] and goes on as f32 []",
                    "keep its dims and dtype in every trip");
  EXPECT_USER_ERROR(loop(g, 2, {x},
                         [](const Tensor&, const Tensors& c) {
                           return LoopStep{c, {}, {}, mean(c[0])};
                         }),
                    "a loop is to stop by f32 []", "give a bool scalar, for instance reduce_all(…)");
  Tensor leaked;
  loop(g, 2, {x}, [&](const Tensor&, const Tensors& c) {
    leaked = c[0] * 2.0;
    return LoopStep{{leaked}, {}, {}, {}};
  });
  EXPECT_USER_ERROR(leaked + 1.0, "add uses 'multiply_2', which is inside the body of a loop",
                    "return it from the body, carried or summed, and use the result of loop()");
  Session session(Mesh::parse(""));
  EXPECT_USER_ERROR(session.compile(g, Layout::parse(""), {.fetch = {leaked}}),
                    "a tensor to fetch, 'multiply_2', is inside the body of a loop",
                    "return it from the body, carried, summed or kept, and use the result of loop()");
  const Tensor w = g.variable("w", {});
  EXPECT_USER_ERROR(loop(g, 2, {x},
                         [&](const Tensor&, const Tensors& c) {
                           assign(w, mean(c[0]));
                           return LoopStep{c, {}, {}, {}};
                         }),
                    "variable 'w' is assigned inside the body of a loop",
                    "carry the value through the loop and assign the result of loop()");
  EXPECT_USER_ERROR(loop(g, 2, {x},
                         [&](const Tensor&, const Tensors& c) {
                           scalar_metric("m", mean(c[0]));
                           return LoopStep{c, {}, {}, {}};
                         }),
                    "metric 'm' is inside the body of a loop",
                    "return it from the body, carried or summed, and report the result of loop()");
  const LoopResult stopping = loop(g, 2, {x}, [](const Tensor&, const Tensors& c) {
    return LoopStep{c, {}, {}, greater(mean(c[0]), 0.0)};
  });
  EXPECT_USER_ERROR(gradients({mean(stopping.carried[0])}, {x}),
                    "the gradient goes through a loop that may stop early, which has no gradient",
                    "give the loop a fixed number of trips, or put stop_gradient() after it");
}

TEST(Microbatch, GivesTheLossAndGradientsOfTheWholeBatch) {
  Model m;
  const Tensor whole = m.loss(m.x);
  const Tensor parts = microbatch_loss({m.x}, kBatch, 4, [&](const Tensors& part) { return m.loss(part[0]); });
  const Tensors xs = {m.w1, m.w2, m.x};
  Tensors fetch = {whole, parts};
  for (const Tensor& loss : {whole, parts})
    for (const Tensor& dx : gradients({loss}, xs)) fetch.push_back(dx);
  const Feeds feeds = {{m.x, filled({kBatch, kIn})}};
  for (const auto& [mesh, layout] :
       {std::pair("", ""), std::pair("data:2", "batch:data"), std::pair("data:2 model:2", "batch:data hidden:model")}) {
    const std::vector<Array> got = run(m.g, fetch, feeds, mesh, layout);
    expect_near(got[0], got[1], 1e-12);
    for (std::size_t i = 0; i < xs.size(); ++i) expect_near(got[2 + i], got[5 + i], 1e-12);
  }
}

TEST(Microbatch, ResultsWithTheBatchDimComeBackWhole) {
  Model m;
  const Tensors r = microbatch({m.x}, kBatch, 4, [&](const Tensors& part) {
    return Tensors{reduce_sum(part[0]), part[0] * 3.0};
  });
  EXPECT_EQ(r[1].shape(), m.x.shape());
  for (const auto& [mesh, layout] : {std::pair("", ""), std::pair("data:2", "batch:data")}) {
    const std::vector<Array> got =
        run(m.g, {r[0], reduce_sum(m.x), r[1], m.x * 3.0}, {{m.x, filled({kBatch, kIn})}}, mesh, layout);
    expect_near(got[0], got[1], 1e-12);
    expect_near(got[2], got[3], 1e-12);
  }
}

TEST(Microbatch, ALayoutThatCannotSplitAPartNamesTheWholeBatch) {
  const Dim batch{"batch", 12};
  Graph g;
  const Tensor x = g.input("x", {batch});
  const Tensor loss = microbatch_loss({x}, batch, 3, [](const Tensors& part) { return mean(part[0]); });
  Session session(Mesh::parse("p:3"), wire::threads(), device::reference());
  EXPECT_USER_ERROR(session.compile(g, Layout::parse("batch:p"), {.fetch = {loss}}),
                    "cannot be split evenly: dim batch of size 4 (12 in 3 microbatches) over axis 'p' of 3 processors",
                    "give batch a size of 9 or 18, or lay it over 2 or 4 processors");
}

TEST(Microbatch, AnOutsideTensorWithTheWholeBatchIsNamed) {
  Model m;
  const Tensor y = m.g.input("y", {kBatch}), ids = m.g.input("ids", {kBatch}, DType::kI32);
  const auto loss_with = [&](const std::function<Tensor(const Tensor& part)>& each) {
    return microbatch_loss({m.x}, kBatch, 2, [&](const Tensors& part) { return mean(each(part[0])); });
  };
  EXPECT_USER_ERROR(
      loss_with([&](const Tensor& part) { return part * y; }),
      "multiply inside a microbatch uses 'y' [batch=8] from outside, which has the whole batch dim batch=8",
      "pass 'y' in `inputs` and use the part that the function is given");
  EXPECT_USER_ERROR(loss_with([&](const Tensor& part) {
                      return einsum({part, y}, {kIn});
                    }),
                    "einsum inside a microbatch uses 'y' [batch=8] from outside", "pass 'y' in `inputs`");
  EXPECT_USER_ERROR(loss_with([&](const Tensor& part) { return cross_entropy(part, ids, kIn); }),
                    "inside a microbatch uses 'ids' [batch=8] from outside", "pass 'ids' in `inputs`");
  EXPECT_USER_ERROR(loss_with([&](const Tensor& part) {
                      const auto body = [&](const Tensor&, const Tensors& c) {
                        return LoopStep{{c[0] * y}, {}, {}, {}};
                      };
                      return loop(m.g, 2, {part}, body).carried[0];
                    }),
                    "multiply inside a microbatch uses 'y' [batch=8] from outside", "pass 'y' in `inputs`");
  loss_with([&](const Tensor& part) { return part * mean(y); });  // no fault: the whole batch is meant
}

TEST(Microbatch, ErrorsSayWhatToDo) {
  Model m;
  const auto loss = [&](const Tensors& part) { return m.loss(part[0]); };
  EXPECT_USER_ERROR(microbatch_loss({m.x}, kBatch, 3, loss), "a batch of 8 cannot be divided into 3 equal parts",
                    "give a number of parts that divides the batch");
  EXPECT_USER_ERROR(microbatch_loss({}, kBatch, 2, loss), "microbatch() was given no input",
                    "give the tensors that have the dim batch");
  EXPECT_USER_ERROR(microbatch_loss({m.w1}, kBatch, 2, loss), "input 'w1' [in=4 hidden=16] has no dim batch=8");
  EXPECT_USER_ERROR(microbatch_loss({Tensor()}, kBatch, 2, loss), "an input of microbatch() is empty",
                    "give only tensors that have the batch dim; the function may use other tensors directly");
  EXPECT_USER_ERROR(microbatch_loss({m.x}, kBatch, 2, [](const Tensors& part) { return part[0]; }),
                    "the loss of a part is f32 [batch=4 in=4]", "give a floating-point scalar, for instance mean(…)");
  EXPECT_USER_ERROR(microbatch_loss({m.x}, kBatch, 2, [](const Tensors&) { return Tensor(); }),
                    "the loss of a part is an empty tensor", "give a floating-point scalar, for instance mean(…)");
}

Program compiled(const Graph& g, const Tensors& fetch, const std::string& mesh, const std::string& layout) {
  return compile_program(g, Mesh::parse(mesh), Layout::parse(layout), {.fetch = fetch}).program;
}

TEST(Microbatch, GradientsAreReducedOnceAfterTheLoop) {
  Model m;
  const Tensor loss = microbatch_loss({m.x}, kBatch, 4, [&](const Tensors& part) { return m.loss(part[0]); });
  Tensors fetch = {loss};
  for (const Tensor& dx : gradients({loss}, {m.w1, m.w2})) fetch.push_back(dx);
  const Program p = compiled(m.g, fetch, "data:2", "batch:data");
  visit_bodies(p, [&](const Program& body, std::int64_t times) {
    for (const Instr& instr : body.body) EXPECT_FALSE(times > 1 && is_collective(instr)) << to_text(body, instr);
  });
  std::int64_t bytes = 0;
  int count = 0;
  for (const CollectiveCost& c : summarize(p).collectives) {
    bytes += c.bytes;
    count += c.count;
  }
  EXPECT_EQ(bytes, 4 * (1 + 4 * 16 + 16));
  EXPECT_LE(count, 2);
}

std::int64_t peak(const Graph& g, const Tensors& fetch) { return plan_memory(compiled(g, fetch, "", "")).arena_bytes; }

TEST(Microbatch, MemoryFalls) {
  const Dim batch{"batch", 64}, wide{"wide", 256};
  const auto arena = [&](std::int64_t parts) {
    Graph g;
    const Tensor x = g.input("x", {batch, kIn});
    const Tensor w1 = g.variable("w1", {kIn, wide}), w2 = g.variable("w2", {wide});
    const Tensor loss = microbatch_loss({x}, batch, parts, [&](const Tensors& part) {
      return mean(square(einsum({tanh(einsum({part[0], w1})), w2})));
    });
    return peak(g, gradients({loss}, {w1, w2}));
  };
  EXPECT_LT(arena(8), arena(1) / 3);
}

// A chain of layers, each of which keeps three big values for the backward pass unless it is recomputed.
Tensors deep_gradients(Graph& g, int layers, bool again) {
  const Dim batch{"batch", 32};
  Tensor h = g.input("x", {batch, kHidden});
  const Tensor w = g.variable("w", {kHidden, {"out", 16}}, init::normal(0.3));
  for (int i = 0; i < layers; ++i) {
    const auto layer = [&, h] {
      return Tensors{h + dropout(sin(exp(tanh(rename(einsum({h, w}), {"out", 16}, "hidden")))), 0.5)};
    };
    h = again ? recompute(g, layer)[0] : layer()[0];
  }
  const Tensor loss = mean(square(h));
  return {loss, gradients({loss}, {w})[0]};
}

TEST(Recompute, MemoryFallsAndWorkAppearsTwice) {
  Graph kept, again;
  const Tensors a = deep_gradients(kept, 8, false), b = deep_gradients(again, 8, true);
  EXPECT_LT(peak(again, b), peak(kept, a) * 6 / 10);
  const auto contracts = [](const Program& p) {
    int count = 0;
    for (const Instr& instr : p.body) count += instr.is<Contract>();
    return count;
  };
  EXPECT_EQ(contracts(compiled(again, b, "", "")), contracts(compiled(kept, a, "", "")) + 8);
}

TEST(Recompute, NumbersAndDrawsAreTheSame) {
  Graph kept, again;
  const Tensors a = deep_gradients(kept, 3, false), b = deep_gradients(again, 3, true);
  const Array x = filled({{"batch", 32}, kHidden});
  for (const auto& [mesh, layout] : {std::pair("", ""), std::pair("data:2 model:2", "batch:data hidden:model")}) {
    const std::vector<Array> one = run(kept, a, {{kept.inputs()[0], x}}, mesh, layout);
    const std::vector<Array> two = run(again, b, {{again.inputs()[0], x}}, mesh, layout);
    expect_near(one[0], two[0], 1e-12);
    expect_near(one[1], two[1], 1e-12);
  }
}

TEST(Recompute, CommonWorkIsNotMergedWithTheFirstTime) {
  Graph g;
  const Tensors a = deep_gradients(g, 2, true);
  std::set<int> regions;
  for (const Instr& instr : compiled(g, a, "", "").body) regions.insert(instr.origin.recompute);
  EXPECT_EQ(regions, (std::set<int>{0, 1, 2}));
}

// A function of x and w and how its results are used; recomputed or not, its derivatives are the same.
void expect_recomputed_alike(const std::function<Tensors(Graph&, const Tensor& x, const Tensor& w)>& function) {
  Graph g;
  const Tensor x = g.input("x", {kBatch, kIn}), w = g.input("w", {kBatch, kIn});
  Tensors fetch;
  for (const bool again : {false, true}) {
    const Tensors r = again ? recompute(g, [&] { return function(g, x, w); }) : function(g, x, w);
    Tensor loss = reduce_sum(square(r[0]) * r.back());
    for (std::size_t i = 0; i < r.size(); ++i) loss = loss + reduce_sum(square(r[i])) * static_cast<double>(i);
    for (int order = 0; order < 2; ++order) {
      const Tensors dxs = gradients({loss}, {x, w});
      ASSERT_TRUE(dxs[0] && dxs[1]) << again;
      fetch.insert(fetch.end(), dxs.begin(), dxs.end());
      loss = reduce_sum(square(dxs[0])) + reduce_sum(square(dxs[1]) * 2.0);
    }
  }
  const Feeds feeds = {{x, filled({kBatch, kIn})}, {w, filled({kIn, kBatch})}};
  for (const auto& [mesh, layout] : {std::pair("", ""), std::pair("data:2", "batch:data")}) {
    const std::vector<Array> got = run(g, fetch, feeds, mesh, layout);
    for (std::size_t i = 0; i < 4; ++i) expect_near(got[i], got[4 + i], 1e-10);
  }
}

TEST(Recompute, AnOutsideTensorThatIsReturnedKeepsItsDerivative) {
  expect_recomputed_alike([](Graph&, const Tensor& x, const Tensor& w) { return Tensors{sin(x), w}; });
  expect_recomputed_alike([](Graph&, const Tensor& x, const Tensor& w) { return Tensors{w, x, w}; });
  expect_recomputed_alike([](Graph&, const Tensor& x, const Tensor& w) {
    const Tensor both = sin(x * w);
    return Tensors{both, both, x};
  });
  expect_recomputed_alike([](Graph& g, const Tensor& x, const Tensor& w) {
    return recompute(g, [&] { return Tensors{sin(x) * w, w, x}; });
  });
  expect_recomputed_alike([](Graph& g, const Tensor& x, const Tensor& w) {
    return loop(g, 2, {x, w},
                [&](const Tensor&, const Tensors& c) {
                  return LoopStep{{w, c[0] * c[1]}, {}, {}, {}};
                })
        .carried;
  });
}

TEST(Recompute, AVariableThatIsReturnedIsTrained) {
  Graph g;
  const Tensor x = g.input("x", {kIn});
  Tensor w;
  const Tensors r = recompute(g, [&] {
    w = g.variable("w", {kIn}, init::normal(1), {.activation = DType::kBF16});
    return Tensors{sin(x), w};
  });
  EXPECT_TRUE(gradients({reduce_sum(r[0] * cast(r[1], DType::kF32))}, {w})[0]);
}

TEST(Recompute, OfNothingIsAnError) {
  Graph g;
  EXPECT_USER_ERROR(recompute(g, [] { return Tensors{}; }), "the function given to recompute() returned no tensor",
                    "return the tensors that the rest of the model uses");
}

Tensors reversible_gradients(Graph& g, int layers, bool reverse) {
  const Shape shape{{"batch", 32}, kHidden};
  const Tensor x1 = g.input("x1", shape), x2 = g.input("x2", shape);
  std::vector<std::function<Tensor(const Tensor&)>> stack;
  Tensors ws;
  for (int i = 0; i < layers; ++i) {
    ws.push_back(g.variable(str("w", i), {kHidden, {"out", 16}}, init::normal(0.3)));
    stack.emplace_back([w = ws.back()](const Tensor& h) {
      return sin(exp(tanh(rename(einsum({h, w}), {"out", 16}, "hidden"))));
    });
  }
  Tensor a = x1, b = x2;
  if (reverse) {
    const Tensors y = reversible(x1, x2, stack);
    a = y[0];
    b = y[1];
  } else {
    for (const auto& layer : stack) {
      const Tensor next = a + layer(b);
      a = b;
      b = next;
    }
  }
  const Tensor loss = mean(square(a)) + mean(square(b * 2.0));
  Tensors all = {loss};
  for (const Tensor& dx : gradients({loss}, {x1, x2})) all.push_back(dx);
  for (const Tensor& dx : gradients({loss}, ws)) all.push_back(dx);
  return all;
}

TEST(Reversible, HasTheGradientsOfTheStackAndKeepsNothing) {
  Graph kept, reversed;
  const Tensors a = reversible_gradients(kept, 6, false), b = reversible_gradients(reversed, 6, true);
  const Array x1 = filled({{"batch", 32}, kHidden}), x2 = filled({kHidden, {"batch", 32}});
  const std::vector<Array> one = run(kept, a, {{kept.inputs()[0], x1}, {kept.inputs()[1], x2}}, "", "");
  const std::vector<Array> two = run(reversed, b, {{reversed.inputs()[0], x1}, {reversed.inputs()[1], x2}},
                                     "data:2 model:2", "batch:data hidden:model");
  for (std::size_t i = 0; i < a.size(); ++i) expect_near(one[i], two[i], 1e-10);
  EXPECT_LT(peak(reversed, b), peak(kept, a) * 7 / 10);
}

TEST(Reversible, LayersMayReturnAndReadWhatIsOutside) {
  Graph g;
  const Shape shape{kBatch, kIn};
  const Tensor x1 = g.input("x1", shape), x2 = g.input("x2", shape), w = g.input("w", shape);
  using Layer = std::function<Tensor(const Tensor&)>;
  const std::vector<std::vector<Layer>> stacks = {
      {[&](const Tensor&) { return w; }, [](const Tensor& h) { return sin(h); }},
      {[](const Tensor& h) { return h; }, [&](const Tensor& h) { return h * w; }},
      {[&](const Tensor&) { return x1; }, [&](const Tensor& h) { return h * w; }},
      {[&](const Tensor& h) { return h * x2 * w; }},
      {[&](const Tensor&) { return x2; }, [&](const Tensor& h) { return h * x2 + w * x1; }},
      {[&](const Tensor& h) { return recompute(g, [&] { return Tensors{h * x2 * w}; })[0]; }},
  };
  const Feeds feeds = {{x1, filled(shape)}, {x2, filled({kIn, kBatch})}, {w, filled({{"in", 4}, {"batch", 8}})}};
  for (std::size_t s = 0; s < stacks.size(); ++s) {
    Tensor a = x1, b = x2;
    for (const Layer& layer : stacks[s]) {
      const Tensor next = a + layer(b);
      a = b;
      b = next;
    }
    Tensors fetch;
    for (const Tensors& y : {Tensors{a, b}, reversible(x1, x2, stacks[s])}) {
      Tensor loss = reduce_sum(square(y[0])) + reduce_sum(sin(y[1] * 2.0));
      for (int order = 0; order < 2; ++order) {
        const Tensors dxs = gradients({loss}, {x1, x2, w});
        for (const Tensor& dx : dxs) ASSERT_TRUE(dx) << s;
        fetch.insert(fetch.end(), dxs.begin(), dxs.end());
        loss = reduce_sum(square(dxs[0])) + reduce_sum(square(dxs[1]) * 2.0) + reduce_sum(square(dxs[2]) * 3.0);
      }
    }
    const std::vector<Array> got = run(g, fetch, feeds, "", "");
    for (std::size_t i = 0; i < 6; ++i) {
      SCOPED_TRACE(str("stack ", s, ", derivative ", i));
      expect_near(got[i], got[6 + i], 1e-9);
    }
  }
}

TEST(Reversible, ErrorsSayWhatToDo) {
  Graph g;
  const Tensor x = g.input("x", {kBatch}), y = g.input("y", {kIn});
  EXPECT_USER_ERROR(reversible(x, y, {}), "reversible() of f32 [batch=8] and f32 [in=4]",
                    "give two tensors of the same dims and dtype");
  EXPECT_USER_ERROR(reversible(x, Tensor(), {}), "and nothing", "give two tensors");
  EXPECT_USER_ERROR(reversible(x, x, {[](const Tensor& h) { return mean(h); }}),
                    "a layer of reversible() gave f32 [] for f32 [batch=8]", "give a tensor like the layer's input");
}

TEST(Dones, CollectivesOfTheBackwardPassOverlapWithIt) {
  Graph g;
  const Dim wide{"hidden", 2048}, out{"out", 2048};  // 16 MiB of weights each: too big to be joined
  Tensor h = g.input("x", {kBatch, wide});
  Tensors ws;
  for (int i = 0; i < 3; ++i) {
    ws.push_back(g.variable(str("w", i), {wide, out}, init::normal(0.3)));
    h = tanh(rename(einsum({h, ws.back()}), out, "hidden"));
  }
  const Tensor loss = mean(square(h));
  const Updates updates = optim::sgd(loss, ws, 0.1);
  const Program p = compile_program(g, Mesh::parse("data:2"), Layout::parse("batch:data"), {.update = updates}).program;
  int dones = 0;
  for (const Instr& instr : p.body) dones += instr.is<Done>();
  EXPECT_EQ(dones, 2);  // nothing is left to do behind the last one
}

}  // namespace
}  // namespace weft::loop_test
