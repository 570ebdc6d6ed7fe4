// Convolutions and pools against loops over the definition, on one processor and on split space; what their derivatives do
// with ties; and that a split dim moves halos and no more.
#include "weft/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/str.h"
#include "support/sampling.h"
#include "weft/explain.h"
#include "weft/ops.h"
#include "weft/session.h"

namespace weft::convolution_test {
namespace {

using test::filled;

const Dim kBatch{"batch", 2}, kIn{"in", 2}, kOut{"out", 3};

// The places of a window by counting: those whose window fits between the paddings.
std::int64_t counted_places(const Window& w) {
  std::int64_t count = 0;
  const std::int64_t end = w.dim.size + w.after;
  while (count * w.stride + (w.filter.size - 1) * w.dilation - w.before < end) ++count;
  return count;
}

// T(x, filter, y) over all that meets; what is called for every (element, place, tap).
template <class Meet>
void each_meeting(const Window& w, const Meet& meet) {
  for (std::int64_t o = 0; o < counted_places(w); ++o)
    for (std::int64_t k = 0; k < w.filter.size; ++k) {
      const std::int64_t i = o * w.stride + k * w.dilation - w.before;
      if (i >= 0 && i < w.dim.size) meet(i, o, k);
    }
}

std::vector<Window> many_windows() {
  std::vector<Window> all;
  for (std::int64_t size : {6, 8, 9})
    for (std::int64_t taps : {1, 2, 3})
      for (std::int64_t stride : {1, 2, 3})
        for (std::int64_t dilation : {1, 3})
          for (const auto& [before, after] : {std::pair{0, 0}, {1, 2}, {5, 0}, {-1, 3}, {0, 8}, {9, 9}}) {
            const Window w{.dim = {"space", size},
                           .filter = {"taps", taps},
                           .stride = stride,
                           .dilation = dilation,
                           .before = before,
                           .after = after};
            if (size + before + after >= (taps - 1) * dilation + 1) all.push_back(w);
          }
  return all;
}

// A convolution with its derivatives, and the same by loops.
struct ByLoops {
  explicit ByLoops(const Window& w)
      : places{"space", counted_places(w)},
        x(filled({kBatch, w.dim, kIn}, uniform(-1, 1), DType::kF32, 1)),
        filter(filled({w.filter, kIn, kOut}, uniform(-1, 1), DType::kF32, 2)),
        dy(filled({kBatch, places, kOut}, uniform(-1, 1), DType::kF32, 3)),
        y(dy.shape(), DType::kF64),
        dx(x.shape(), DType::kF64),
        dfilter(filter.shape(), DType::kF64) {
    each_meeting(w, [&](std::int64_t i, std::int64_t o, std::int64_t k) {
      for (std::int64_t n = 0; n < kBatch.size; ++n)
        for (std::int64_t c = 0; c < kIn.size; ++c)
          for (std::int64_t m = 0; m < kOut.size; ++m) {
            const std::int64_t at_x = (n * w.dim.size + i) * kIn.size + c, at_f = (k * kIn.size + c) * kOut.size + m;
            const std::int64_t at_y = (n * places.size + o) * kOut.size + m;
            y.set(at_y, y.at(at_y) + x.at(at_x) * filter.at(at_f));
            dx.set(at_x, dx.at(at_x) + dy.at(at_y) * filter.at(at_f));
            dfilter.set(at_f, dfilter.at(at_f) + dy.at(at_y) * x.at(at_x));
          }
    });
  }
  Dim places;
  Array x, filter, dy, y, dx, dfilter;
};

TEST(Convolution, EveryWindowAgreesWithLoops) {
  for (const Window& w : many_windows()) {
    const ByLoops want(w);
    Graph g;
    const Tensor x = g.input("x", want.x.shape()), f = g.input("f", want.filter.shape()),
                 dy = g.input("dy", want.dy.shape());
    const Tensor y = convolution(x, f, {w});
    ASSERT_EQ(y.shape(), want.y.shape());
    const Tensors d = gradients({y}, {x, f}, {dy});
    const Tensor transposed = convolution_transpose(dy, f, {w});
    ASSERT_EQ(transposed.shape(), Shape({kBatch, w.dim, kIn}));
    const Tensors fetch{y, d[0], d[1], transposed};
    for (int parts : {1, 2, 3, 4}) {
      if (w.dim.size % parts != 0 || want.places.size % parts != 0) continue;
      SCOPED_TRACE(str("size ", w.dim.size, ", taps ", w.filter.size, ", stride ", w.stride, ", dilation ", w.dilation,
                       ", padding ", w.before, " ", w.after, ", parts ", parts));
      Session session(Mesh::parse(str("p:", parts)));
      Executable step = session.compile(g, Layout::parse("space:p"), {.fetch = fetch, .compute_as = DType::kF64});
      const Values got = step.run({{x, want.x}, {f, want.filter}, {dy, want.dy}});
      EXPECT_LE(relative_difference(got[y], want.y), 1e-12);
      EXPECT_LE(relative_difference(got[d[0]], want.dx), 1e-12);
      EXPECT_LE(relative_difference(got[d[1]], want.dfilter), 1e-12);
      EXPECT_LE(relative_difference(got[transposed], want.dx), 1e-12);
    }
  }
}

TEST(Convolution, SamePaddingRoundsUp) {
  const auto places = [](std::int64_t size, std::int64_t taps, std::int64_t stride) {
    return counted_places(window({"h", size}, taps, Padding::kSame, stride));
  };
  for (std::int64_t size : {1, 5, 6, 7, 8})
    for (std::int64_t taps : {1, 2, 3, 5})
      for (std::int64_t stride : {1, 2, 3}) EXPECT_EQ(places(size, taps, stride), (size + stride - 1) / stride);
  const Window w = window({"h", 6}, 4, Padding::kSame);
  EXPECT_EQ(w.before, 1);
  EXPECT_EQ(w.after, 2);
}

// --- Values of one or two lines, by hand ---

Array eval_with(const Tensor& y, const Tensor& x, const std::vector<double>& numbers) {
  return eval(y, {{x, Array(x.shape(), numbers, DType::kF32)}});
}

Tensor given(const Graph& g, const Shape& shape, const std::vector<double>& numbers) {
  return constant(g, Array(shape, numbers, DType::kF32));
}

const Dim kH{"h", 4}, kC{"c", 2}, kM{"m", 2}, kK{"k", 3}, kOne{"one", 1};

// Mesh-TensorFlow's own examples.
TEST(Convolution, OneDim) {
  Graph g;
  const Tensor x = g.input("x", {kH, kOne});
  const Tensor filter = given(g, {{"k", 3}, kOne, kC}, {1, -1, 0, 0, 0, 0});
  EXPECT_EQ(eval_with(conv1d(x, filter), x, {1, 5, 4, 7}).values(), (std::vector<double>{0, 0, 1, -1, 5, -5, 4, -4}));
  EXPECT_EQ(eval_with(conv1d(x, filter, {.padding = Padding::kValid}), x, {1, 5, 4, 7}).values(),
            (std::vector<double>{1, -1, 5, -5}));
  const Tensor separable = separable_conv1d(x, given(g, {kK, kOne}, {1, 1, 1}), given(g, {kOne, kC}, {1, -1}), kH, -2);
  EXPECT_EQ(eval_with(separable, x, {1, 2, 3, 4}).values(), (std::vector<double>{1, -1, 3, -3, 6, -6, 9, -9}));
  const Tensor ahead = separable_conv1d(x, given(g, {kK, kOne}, {1, 0, 0}), given(g, {kOne, kM}, {1, 2}), kH, 1);
  EXPECT_EQ(eval_with(ahead, x, {1, 2, 3, 4}).values(), (std::vector<double>{2, 4, 3, 6, 4, 8, 0, 0}));
}

TEST(Convolution, GroupsAreConvolutionsSideBySide) {
  Graph g;
  const Dim in{"in", 4}, half{"in", 2}, out{"out", 6}, third{"out", 3};
  const Tensor x = g.input("x", {kBatch, kH, in}), f = g.input("f", {kK, half, out});
  Tensors parts, back;
  const Tensor t = g.input("t", {kK, third, in});
  for (int i = 0; i < 2; ++i) {
    const Tensor own = slice(x, in, 2 * i, 2);
    parts.push_back(conv1d(own, slice(f, out, 3 * i, 3)));
    back.push_back(conv1d_transpose(own, slice(t, in, 2 * i, 2), {.strides = {2}}));
  }
  const Tensor forward = conv1d(x, f, {.groups = 2}) - concat(parts, "out");
  const Tensor transposed = conv1d_transpose(x, t, {.strides = {2}, .groups = 2}) - concat(back, "out");
  EXPECT_EQ(transposed.shape(), Shape({kBatch, {"h", 8}, out}));
  const Feeds feeds{{x, filled(x.shape(), uniform(-1, 1), DType::kF32, 1)},
                    {f, filled(f.shape(), uniform(-1, 1), DType::kF32, 2)},
                    {t, filled(t.shape(), uniform(-1, 1), DType::kF32, 3)}};
  EXPECT_EQ(eval(reduce_max(abs(forward)), feeds).item(), 0);
  EXPECT_EQ(eval(reduce_max(abs(transposed)), feeds).item(), 0);
}

TEST(Convolution, DepthwiseWithAMultiplier) {
  Graph g;
  const Tensor x = g.input("x", {kH, kC});
  const Tensor y = depthwise_conv(x, given(g, {{"k", 1}, kC, kM}, {1, 2, 3, 4}));
  EXPECT_EQ(y.shape(), Shape({kH, kC, kM}));
  EXPECT_EQ(eval_with(y, x, {1, 10, 2, 20, 3, 30, 4, 40}).values(),
            (std::vector<double>{1, 2, 30, 40, 2, 4, 60, 80, 3, 6, 90, 120, 4, 8, 120, 160}));
}

TEST(Convolution, TransposedSizes) {
  Graph g;
  const Tensor x = g.input("x", {kH, kOne}), f = given(g, {kK, kM, kOne}, {1, 1, 2, 2, 3, 3});
  EXPECT_EQ(conv1d_transpose(x, f, {.strides = {2}}).shape(), Shape({{"h", 8}, kM}));
  const Tensor valid = conv1d_transpose(x, f, {.padding = Padding::kValid, .strides = {4}});
  EXPECT_EQ(valid.shape(), Shape({{"h", 15}, kM}));
  const std::vector<double> one = eval_with(slice(valid, kM, 0, 1), x, {1, 2, 3, 4}).values();
  EXPECT_EQ(one, (std::vector<double>{1, 2, 3, 0, 2, 4, 6, 0, 3, 6, 9, 0, 4, 8, 12}));
}

// --- Pools ---

TEST(Pooling, BorderWindowsMeetLess) {
  Graph g;
  const Tensor x = g.input("x", {kH});
  const std::vector<Window> around{window(kH, 3, Padding::kSame)};
  const std::vector<double> numbers{-1, -2, -6, -8};
  EXPECT_EQ(eval_with(max_pool(x, around), x, numbers).values(), (std::vector<double>{-1, -1, -2, -6}));
  EXPECT_EQ(eval_with(min_pool(x, around), x, numbers).values(), (std::vector<double>{-2, -6, -8, -8}));
  EXPECT_EQ(eval_with(sum_pool(x, around), x, numbers).values(), (std::vector<double>{-3, -9, -16, -14}));
  const Array average = eval_with(avg_pool(x, around), x, numbers);
  EXPECT_LE(relative_difference(average, Array({kH}, std::vector<double>{-1.5, -3, -16.0 / 3, -7}, DType::kF64)), 1e-6);
}

TEST(Pooling, NaNIsNeverLost) {
  Graph g;
  const Tensor x = g.input("x", {kH});
  const std::vector<double> got =
      eval_with(max_pool(x, {window(kH, 2, Padding::kValid)}), x, {1, std::numeric_limits<double>::quiet_NaN(), 3, 4})
          .values();
  EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1]));
  EXPECT_EQ(got[2], 4);
}

// Windows (0 1 2), (2 3 4), (4 5 6), (6 7 _): the winners of each share its derivative.
TEST(Pooling, TiesShareTheDerivativeEvenly) {
  const Dim h{"h", 8};
  Graph g;
  const Tensor x = g.input("x", {h}), dy = g.input("dy", {{"h", 4}});
  const Tensor y = max_pool(x, {{.dim = h, .filter = {"taps", 3}, .stride = 2, .after = 1}});
  const Tensor dx = gradients({y}, {x}, {dy})[0];
  const Feeds feeds{{x, Array({h}, {0, 5, 5, 1, 5, 0, 0, 0}, DType::kF32)},
                    {dy, Array({{"h", 4}}, std::vector<double>{6, 60, 600, 6000}, DType::kF32)}};
  for (const char* mesh : {"p:1", "p:2", "p:4"}) {
    Session session(Mesh::parse(mesh));
    Executable step = session.compile(g, Layout::parse("h:p"), {.fetch = {y, dx}});
    const Values got = step.run(feeds);
    EXPECT_EQ(got[y].values(), (std::vector<double>{5, 5, 5, 0})) << mesh;
    EXPECT_EQ(got[dx].values(), (std::vector<double>{0, 3, 33, 0, 630, 0, 3000, 3000})) << mesh;
  }
}

// --- Blocks ---

TEST(Blocks, StridesAndTransposesGoAcrossBlocks) {
  Graph g;
  const Dim blocks{"blocks", 3}, size{"size", 4}, all{"blocks", 12}, w{"w", 4}, kh{"kh", 3}, kw{"kw", 2};
  const Tensor x = g.input("x", {kBatch, blocks, size, w, kIn}), f = g.input("f", {kh, kw, kIn, kOut});
  const Tensor t = g.input("t", {kh, kw, kOut, kIn});
  const Tensor image = merge_dims(x, {blocks, size}, "blocks");
  const ConvOptions options{.strides = {2, 1}, .dilations = {1, 2}};
  const auto same = [&](const Tensor& cut, const Tensor& whole, const Dim& own) {
    return reduce_max(abs(cut - split_dim(whole, whole.shape().dim("blocks"), {blocks, own})));
  };
  const Tensor forward = conv2d_with_blocks(x, f, {{blocks, size}}, options);
  EXPECT_EQ(forward.shape(), Shape({kBatch, blocks, {"size", 2}, w, kOut}));
  const Tensor back = conv2d_transpose_with_blocks(x, t, {{blocks, size}}, options);
  EXPECT_EQ(back.shape(), Shape({kBatch, blocks, {"size", 8}, w, kOut}));
  const Tensors fetch{same(forward, conv2d(image, f, options), {"size", 2}),
                      same(back, conv2d_transpose(image, t, options), {"size", 8})};
  Session session(Mesh::parse("p:3"));
  Executable step = session.compile(g, Layout::parse("blocks:p"), {.fetch = fetch});
  const Values got = step.run({{x, filled(x.shape(), uniform(-1, 1), DType::kF32, 1)},
                               {f, filled(f.shape(), uniform(-1, 1), DType::kF32, 2)},
                               {t, filled(t.shape(), uniform(-1, 1), DType::kF32, 3)}});
  for (const Tensor& difference : fetch) EXPECT_EQ(got.scalar(difference), 0);
}

TEST(Blocks, ThreeDimsInTwoKindsOfBlocks) {
  Graph g;
  const Dim db{"d_blocks", 2}, hb{"h_blocks", 2}, d{"d", 2}, h{"h", 3}, w{"w", 2};
  const Dim kd{"kd", 3}, kh{"kh", 3}, kw{"kw", 1};
  const Tensor x = g.input("x", {kBatch, db, hb, d, h, w, kIn}), f = g.input("f", {kd, kh, kw, kIn, kOut});
  const Tensor t = g.input("t", {kd, kh, kw, kOut, kIn});
  EXPECT_EQ(conv3d_with_blocks(x, f, {{db, d}, {hb, h}}).shape(), Shape({kBatch, db, hb, d, h, w, kOut}));
  EXPECT_EQ(conv3d_transpose_with_blocks(x, t, {{db, d}, {hb, h}}, {.strides = {2, 1, 3}}).shape(),
            Shape({kBatch, db, hb, {"d", 4}, h, {"w", 6}, kOut}));
}

// --- What travels ---

std::vector<Explanation::Collective> travels(const Graph& g, const Tensor& y, const std::string& layout) {
  return explain(g, Mesh::parse("p:4"), Layout::parse(layout), {.fetch = {y}}, Machine::uniform(1e9, 1e9)).collectives;
}

TEST(SplitSpace, OnlyHalosTravel) {
  Graph g;
  const Dim space{"space", 64}, taps{"taps", 3}, out{"out", 4};
  const Tensor x = g.input("x", {kBatch, space, kIn}), f = g.input("f", {taps, kIn, out});
  const auto same = travels(g, convolution(x, f, {window(space, taps, Padding::kSame)}), "space:p");
  ASSERT_EQ(same.size(), 1u);  // one element from each side
  EXPECT_EQ(same[0].kind, "permute");
  EXPECT_EQ(same[0].count, 2);
  EXPECT_EQ(same[0].elements, 2 * kBatch.size * kIn.size);
  const auto strided = travels(g, convolution(x, f, {window(space, taps, Padding::kSame, 2)}), "space:p");
  ASSERT_EQ(strided.size(), 1u);  // padding is after: one element from the right
  EXPECT_EQ(strided[0].count, 1);
  EXPECT_TRUE(travels(g, max_pool(x, {window(space, 2, Padding::kValid, 2)}), "space:p").empty());
  EXPECT_TRUE(travels(g, convolution(x, f, {window(space, taps, Padding::kSame)}), "out:p").empty());
  const Tensor dx = gradients({reduce_sum(square(max_pool(x, {window(space, 2, Padding::kValid, 2)})))}, {x})[0];
  EXPECT_TRUE(travels(g, dx, "space:p").empty());
}

// Both directions of the derivative use the halo of x that the forward pass fetched, and one of dy.
TEST(SplitSpace, TheDerivativeFetchesHalosOfItsOwnOnly) {
  Graph g;
  const Dim space{"space", 64}, taps{"taps", 3};
  const Tensor x = g.input("x", {kBatch, space, kIn}), f = g.input("f", {taps, kIn, kOut});
  const Tensor y = convolution(x, f, {window(space, taps, Padding::kSame)});
  const Tensors d = gradients({reduce_sum(square(y))}, {x, f});
  int permutes = 0, reductions = 0;
  for (const auto& c :
       explain(g, Mesh::parse("p:4"), Layout::parse("space:p"), {.fetch = d}, Machine::uniform(1e9, 1e9)).collectives) {
    permutes += c.kind == "permute" ? c.count : 0;
    reductions += c.kind == "all_reduce" ? c.count : 0;
  }
  EXPECT_EQ(permutes, 4);
  EXPECT_EQ(reductions, 1);  // of the filter's derivative
}

TEST(SplitSpace, ChannelsLeaveAPartialSum) {
  Graph g;
  const Dim in{"in", 4}, taps{"taps", 3}, space{"space", 8};
  const Tensor x = g.input("x", {kBatch, space, in}), f = g.input("f", {taps, in, kOut});
  const auto found = travels(g, convolution(x, f, {window(space, taps, Padding::kSame)}), "in:p");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "all_reduce");
}

}  // namespace
}  // namespace weft::convolution_test
