// Loops held against the same body written out trip by trip: values and first, second and third derivatives, on both
// engines, alone and split.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "weft/weft.h"

namespace weft::loop_unrolled_test {
namespace {

const Dim kA{"a", 4}, kB{"b", 4};

using Body = std::function<LoopStep(const Tensor& i, const Tensors& carried)>;

struct Case {
  std::string name;
  std::int64_t trips;
  std::vector<Shape> carried;  // of the first values
  // The tensors from outside are of shape [a b].
  std::function<LoopStep(Graph& g, const Tensor& i, const Tensors& carried, const Tensors& outside)> body;
  int derivatives = 2;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// [a b] with its two dims changed round.
Tensor flipped(const Tensor& x) {
  const Tensor half = rename(rename(x, kA, "t"), kB, "a");
  return transpose(rename(half, {"t", 4}, "b"), {kA, kB});
}

LoopResult written_out(const Graph& g, std::int64_t trips, Tensors carried, const Body& body) {
  LoopResult result;
  std::vector<Tensors> kept;
  for (std::int64_t i = 0; i < trips; ++i) {
    const LoopStep step = body(constant(g, static_cast<double>(i), {}, DType::kI64), carried);
    carried = step.carried;
    for (std::size_t k = 0; k < step.sums.size(); ++k)
      if (i == 0) result.sums.push_back(step.sums[k]);
      else result.sums[k] = result.sums[k] + step.sums[k];
    kept.push_back(step.kept);
  }
  result.carried = carried;
  for (std::size_t k = 0; k < kept[0].size(); ++k) {
    Tensors of_trips;
    for (const Tensors& trip : kept) of_trips.push_back(trip[k]);
    result.kept.push_back(stack(of_trips, "trip"));
  }
  return result;
}

// A scalar in which every number of every result counts differently.
Tensor loss_of(const LoopResult& r, std::int64_t trips) {
  Tensor loss;
  double weight = 1;
  const auto count = [&](const Tensor& x) {
    if (!x || x.dtype() == DType::kI64) return;
    const Tensor term = reduce_sum(sin(x * weight) + x * x * 0.3);
    loss = loss ? loss + term : term;
    weight += 0.4;
  };
  for (const Tensor& x : r.carried) count(x);
  for (const Tensor& x : r.sums) count(x);
  for (const Tensor& x : r.kept)
    for (std::int64_t t = 0; t < trips; ++t) count(slice(x, x.shape()[0], t, 1));
  return loss;
}

// The results, the loss and its derivatives; a derivative that is missing is an empty tensor.
Tensors results_of(const LoopResult& r, std::int64_t trips, const Tensors& xs, int derivatives) {
  Tensors all;
  for (const Tensor& x : r.carried) all.push_back(x);
  for (const Tensor& x : r.sums) all.push_back(x);
  for (const Tensor& x : r.kept) all.push_back(x);
  Tensor y = loss_of(r, trips);
  all.push_back(y);
  for (int order = 0; order < derivatives; ++order) {
    Tensor next;
    double weight = 1;
    for (const Tensor& dx : gradients({y}, xs)) {
      all.push_back(dx);
      if (dx) next = next ? next + reduce_sum(square(dx) * weight) : reduce_sum(square(dx) * weight);
      weight += 0.5;
    }
    y = next;
  }
  return all;
}

std::vector<double> numbers(const Array& array) {
  const Array f64 = array.cast(DType::kF64);
  const auto* data = reinterpret_cast<const double*>(f64.bytes());
  return {data, data + f64.elements()};
}

Array filled(const Shape& shape, int seed) {
  Array array(shape, DType::kF32);
  auto* data = reinterpret_cast<float*>(array.bytes());
  for (std::int64_t i = 0; i < array.elements(); ++i)
    data[i] = static_cast<float>((i * 37 + seed * 11) % 23 - 11) / 16.0f + 0.03f;
  return array;
}

// Whether a derivative is there where the other is, and equal; one that is missing may be zeros in the other.
void expect_equal(const Tensors& looped, const Tensors& plain, const Values& values, const std::string& where) {
  ASSERT_EQ(looped.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (!plain[i] && !looped[i]) continue;
    const std::vector<double> got = numbers(values[looped[i] ? looped[i] : plain[i]]);
    const std::vector<double> want =
        looped[i] && plain[i] ? numbers(values[plain[i]]) : std::vector<double>(got.size());
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t n = 0; n < got.size(); ++n)
      ASSERT_NEAR(got[n], want[n], 1e-9 * (1 + std::abs(want[n]))) << where << ", result " << i << ", number " << n;
  }
}

void expect_as_written_out(const Case& c, const std::vector<std::pair<std::string, std::string>>& meshes) {
  Graph g;
  Tensors first, outside = {g.input("w0", {kA, kB}), g.input("w1", {kA, kB})};
  Feeds feeds = {{outside[0], filled({kA, kB}, 5)}, {outside[1], filled({kA, kB}, 6)}};
  for (const Shape& shape : c.carried) {
    const int k = static_cast<int>(first.size());
    first.push_back(g.input("x" + std::to_string(k), shape));
    feeds.emplace_back(first.back(), filled(shape, k));
  }
  Tensors xs = first;
  xs.insert(xs.end(), outside.begin(), outside.end());
  const Body body = [&](const Tensor& i, const Tensors& carried) { return c.body(g, i, carried, outside); };
  const Tensors looped = results_of(loop(g, c.trips, first, body), c.trips, xs, c.derivatives);
  const Tensors plain = results_of(written_out(g, c.trips, first, body), c.trips, xs, c.derivatives);
  Tensors fetch;
  for (const Tensors* all : {&looped, &plain})
    for (const Tensor& x : *all)
      if (x) fetch.push_back(x);
  for (const device::Choice& engine : {device::reference(), device::cpu()})
    for (const auto& [mesh, layout] : meshes) {
      Session session(Mesh::parse(mesh), wire::threads(), engine);
      Executable step = session.compile(g, Layout::parse(layout), {.fetch = fetch, .compute_as = DType::kF64});
      expect_equal(looped, plain, step.run(feeds), c.name + " under \"" + layout + "\"");
    }
}

class LoopUnrolled : public testing::TestWithParam<Case> {};

TEST_P(LoopUnrolled, GivesTheSameNumbersAndDerivatives) {
  expect_as_written_out(GetParam(), {{"", ""}, {"p:2", "a:p"}, {"p:2", "b:p"}});
}

LoopStep carries(Tensors next) { return {std::move(next), {}, {}, {}}; }

const Shape kAB{kA, kB};

// What a trip hands on where: the next values change places with the carried ones.
const std::vector<Case> kHandedOn = {
    {"swap",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[1], c[0]});
     }},
    {"ring",
     4,
     {kAB, kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[1], c[2], c[0]});
     }},
    {"rings",
     3,
     {kAB, kAB, {kA}, {kA}, {kB}},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[1], c[0], c[3], c[2], sin(c[4])});
     }},
    {"chain",
     2,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[0] * 10.0, c[0]});
     }},
    {"chain of three",
     4,
     {kAB, kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return carries({sin(c[2]) * w[0] + c[0], c[0], c[1]});
     }},
    {"ring with a tail",
     4,
     {kAB, kAB, kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[1], c[0], c[0], c[2]});
     }},
    {"function in a ring",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[1], sin(c[0])});
     },
     3},
    {"one to two",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[1], c[1]});
     }},
    {"first to two",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({c[0], c[0]});
     }},
    {"function to two",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       const Tensor both = sin(c[0] + c[1] * 2.0);
       return carries({both, both});
     }},
    {"outside",
     3,
     {kAB, kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return carries({w[0], c[0] * c[1], c[1] + w[0]});
     }},
    {"outside twice",
     2,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors&, const Tensors& w) {
       return carries({w[1], w[1]});
     }},
    {"flipped",
     3,
     {kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) { return carries({flipped(c[0])}); }},
    {"flipped swap",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({flipped(c[1]), c[0]});
     }},
    {"slices",
     3,
     {kAB, {{"a", 2}, kB}},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) {
       return carries({concat({c[1], sin(slice(c[0], kA, 0, 2))}, "a"), slice(c[0], kA, 2, 2)});
     }},
    {"iteration",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor& i, const Tensors& c, const Tensors&) {
       return carries({c[1] * (cast(i, DType::kF32) + 0.5), c[0]});
     }},
    {"sums and kept",
     3,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return LoopStep{{c[1], c[0]}, {c[0] * w[0], c[1]}, {c[0], w[1], c[0] * c[1]}, {}};
     }},
    {"loop in a loop",
     2,
     {kAB, kAB},
     [](Graph& g, const Tensor&, const Tensors& c, const Tensors& w) {
       const LoopResult in = loop(g, 3, {c[0], c[1]}, [&](const Tensor&, const Tensors& d) {
         return LoopStep{{d[1], sin(d[0]) * w[0]}, {c[0] * d[1]}, {d[0]}, {}};
       });
       return LoopStep{{in.carried[1], in.carried[0]}, {in.sums[0]}, {reduce_sum(in.kept[0])}, {}};
     }},
    {"outer value in a loop",
     2,
     {kAB, kAB},
     [](Graph& g, const Tensor&, const Tensors& c, const Tensors&) {
       const LoopResult in = loop(g, 2, {c[0], c[0]}, [&](const Tensor&, const Tensors& d) {
         return carries({c[1], d[0] * d[1]});
       });
       return carries({c[1], in.carried[1]});
     }},
};

// Derivatives by what the backward loop reads of every trip.
const std::vector<Case> kDerived = {
    {"square",
     2,
     {kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors&) { return carries({c[0] * c[0]}); },
     3},
    {"weights",
     3,
     {kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return carries({sin(c[0] * w[0]) + w[1] * w[0]});
     },
     3},
    {"product",
     2,
     {kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return carries({tanh(rename(einsum({c[0], rename(w[0], kA, "n")}, {kA, {"n", 4}}), {"n", 4}, "b"))});
     }},
    {"sum",
     3,
     {kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return LoopStep{{c[0] * w[0]}, {square(c[0]) * w[1], reduce_sum(c[0] * c[0])}, {}, {}};
     }},
    {"kept",
     3,
     {kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return LoopStep{{sin(c[0]) + c[0]}, {}, {c[0] * c[0] * w[0]}, {}};
     },
     3},
    {"only kept",
     2,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       return LoopStep{{c[0] * c[1], w[0]}, {}, {c[0]}, {}};
     }},
    {"nested squares",
     2,
     {kAB},
     [](Graph& g, const Tensor&, const Tensors& c, const Tensors& w) {
       const LoopResult in = loop(g, 2, {c[0]}, [&](const Tensor&, const Tensors& d) {
         return LoopStep{{d[0] * d[0] * w[0] + c[0]}, {d[0] * c[0]}, {}, {}};
       });
       return LoopStep{{in.carried[0]}, {in.sums[0]}, {}, {}};
     }},
    {"microbatches",
     2,
     {kAB, kAB},
     [](Graph&, const Tensor&, const Tensors& c, const Tensors& w) {
       const Tensor loss = microbatch_loss({c[0], w[0]}, kA, 2, [&](const Tensors& part) {
         return mean(square(part[0] * part[1]) + part[0] * reduce_sum(c[1] * w[1], {kA}));
       });
       return LoopStep{{c[0] * loss, c[1] + w[1]}, {loss}, {}, {}};
     }},
    {"recomputed outside",
     2,
     {kAB},
     [](Graph& g, const Tensor&, const Tensors& c, const Tensors& w) {
       const Tensors r = recompute(g, [&] { return Tensors{sin(c[0]), w[0], c[0]}; });
       return carries({r[0] * r[1] + r[2]});
     }},
    {"recomputed",
     2,
     {kAB},
     [](Graph& g, const Tensor&, const Tensors& c, const Tensors& w) {
       return carries({recompute(g, [&] { return Tensors{sin(c[0] * c[0]) * w[0]}; })[0]});
     }},
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

// Each of four carried values goes on as any of them, as a function of some, turned round, or as an outside tensor.
TEST(LoopUnrolledAtRandom, GivesTheSameNumbersAndDerivatives) {
  for (unsigned seed = 0; seed < 16; ++seed) {
    const auto body = [seed](Graph& g, const Tensor&, const Tensors& c, const Tensors& w) {
      std::minstd_rand draw(seed + 1);
      const auto carried = [&] { return c[draw() / 7 % 4]; };
      const auto next = [&]() -> Tensor {
        switch (draw() / 7 % 8) {
          case 0: return sin(carried()) * w[0];
          case 1: return carried() * carried();
          case 2: return flipped(carried());
          case 3: return w[1];
          case 4: {
            const Tensors first = {carried(), carried()};
            return loop(g, 2, first, [&](const Tensor&, const Tensors& d) { return carries({d[1], d[0]}); }).carried[1];
          }
          default: return carried();
        }
      };
      LoopStep step{{}, {carried()}, {carried()}, {}};
      for (int k = 0; k < 4; ++k) step.carried.push_back(next());
      return step;
    };
    expect_as_written_out({"seed " + std::to_string(seed), 3, {kAB, kAB, kAB, kAB}, body, 1},
                          {{"", ""}, {"p:2", "a:p"}});
  }
}

INSTANTIATE_TEST_SUITE_P(HandedOn, LoopUnrolled, testing::ValuesIn(kHandedOn), name_of);
INSTANTIATE_TEST_SUITE_P(Derived, LoopUnrolled, testing::ValuesIn(kDerived), name_of);

}  // namespace
}  // namespace weft::loop_unrolled_test
