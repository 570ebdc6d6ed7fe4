// What a user reads when windows, filters or blocks do not fit.
#include "errors/lines.h"

namespace weft::convolution_errors_test {
namespace {

using test::here;
using test::lines;

class ConvolutionErrors : public ::testing::Test {
 protected:
  const Dim n{"n", 2}, h{"h", 8}, w{"w", 6}, in{"in", 4}, out{"out", 6}, kh{"kh", 3}, kw{"kw", 2}, blocks{"blocks", 4};
  Graph g;
  Tensor x = g.input("x", {n, h, w, in}), f = g.input("f", {kh, kw, in, out}), line = g.input("line", {n, h, in});
  Tensor k = g.input("k", {kh, in, out}), whole = g.input("whole", {n, h}, DType::kI32);
  Tensor cut = g.input("cut", {n, blocks, h, w, in});
};

TEST_F(ConvolutionErrors, Windows) {
  EXPECT_USER_ERROR(convolution(line, k, {}),
                    lines("convolution of [n=2 h=8 in=4] and [kh=3 in=4 out=6] has no window",
                          "convolution at " + here(), "name the dims of the windows, or use einsum()"));
  EXPECT_USER_ERROR(
      convolution(line, k, {{.dim = h, .filter = kh, .stride = 0}}),
      lines("convolution along dim h=8 with 3 taps, stride 0, dilation 1, padding 0 and 0", "convolution at " + here(),
            "give sizes, stride and dilation of at least 1, and numbers of at most 2147483648"));
  EXPECT_USER_ERROR(conv1d(line, k, {.strides = {-1}}), "3 taps, stride -1, dilation 1, padding 0 and 0", here());
  EXPECT_USER_ERROR(convolution(line, k, {{.dim = h, .filter = kh, .dilation = std::int64_t{1} << 62}}),
                    "dilation 4611", "numbers of at most");
  EXPECT_USER_ERROR(
      convolution(line, k, {{.dim = h, .filter = kh, .dilation = 4}}),
      lines("convolution along dim h=8: a window of 3 taps with dilation 4 spans 9 elements, but "
            "there are 8 with the padding",
            "convolution at " + here(), "use a smaller window, or pad, for instance with Padding::kSame"));
  EXPECT_USER_ERROR(convolution(line, k, {{.dim = w, .filter = kh}}), "convolution along dim w=6, which", here());
  EXPECT_USER_ERROR(convolution(line, k, {{.dim = h, .filter = {"kh", 2}}}), "convolution along dim kh=2, which",
                    "the dim has size 3 there");
  EXPECT_USER_ERROR(convolution(whole, whole, {{.dim = h, .filter = n}}), "convolution needs a floating-point tensor");
}

TEST_F(ConvolutionErrors, Names) {
  EXPECT_USER_ERROR(
      convolution(line, k, {{.dim = h, .filter = in}}),
      lines("convolution of [n=2 h=8 in=4] and [kh=3 in=4 out=6] along dim 'h' with taps 'in': the two "
            "occur elsewhere too",
            "convolution at " + here(),
            "give the taps a name that no other dim has, and each dim one window: rename() the filter's dim"));
  EXPECT_USER_ERROR(convolution(x, f, {{.dim = h, .filter = kh}, {.dim = h, .filter = kw}}),
                    "along dim 'h' with taps 'kw': the two occur elsewhere too", here());
  EXPECT_USER_ERROR(convolution(line, g.input("other", {kh, {"in", 2}, out}), {{.dim = h, .filter = kh}}),
                    "dim 'in' has size 4 in the first and 2 in the second", here());
}

TEST_F(ConvolutionErrors, Transposes) {
  EXPECT_USER_ERROR(
      convolution_transpose(line, k, {{.dim = {"h", 9}, .filter = kh}}),
      lines("convolution_transpose to dim h=9, which has 7 places, from [n=2 h=8 in=4]", "convolution at " + here(),
            "give a tensor that has this dim with one element per place of the result's windows"));
}

TEST_F(ConvolutionErrors, ByOrderOfDims) {
  EXPECT_USER_ERROR(
      conv2d(line, k),
      lines("conv2d of [n=2 h=8 in=4] by a filter [kh=3 in=4 out=6]: their dims do not fit", "conv2d at " + here(),
            "give x [batch…, 2 spatial dims, channels] and a filter [2 taps, channels, out], or use "
            "convolution() with windows"));
  EXPECT_USER_ERROR(conv2d_transpose(x, f), "conv2d_transpose of [n=2 h=8 w=6 in=4] by a filter", "out, channels]",
                    here());
  EXPECT_USER_ERROR(conv3d(g.input("small", {h, w, in}), g.input("cube", {kh, kw, n, in, out})), "do not fit", here());
  EXPECT_USER_ERROR(conv2d(x, f, {.strides = {2}}), "there are 1 strides", "give one for each of 2 spatial dims",
                    "code:  conv.step-count-mismatch");
  EXPECT_USER_ERROR(conv2d(x, f, {.dilations = {2, 1, 1}}), "there are 3 dilations", here());
  EXPECT_USER_ERROR(conv2d(x, f, {.groups = 3}), "they do not fit 3 groups",
                    "groups must divide the channels on both sides, and the filter has the channels of one group");
  EXPECT_USER_ERROR(conv2d(x, f, {.groups = 2}), "they do not fit 2 groups", here());
  EXPECT_USER_ERROR(conv2d(x, f, {.groups = 0}), "they do not fit 0 groups", here());
  EXPECT_USER_ERROR(
      depthwise_conv(x, g.input("wrong", {kh, kw, out})), "their dims do not fit one channel each",
      "give x [batch…, spatial…, channels] and a filter [taps…, channels] or [taps…, channels, multiplier]");
  EXPECT_USER_ERROR(
      separable_conv1d(line, k, k, h, 0),
      lines("separable_conv1d of [n=2 h=8 in=4] by [kh=3 in=4 out=6] along dim h=8", "separable_conv1d at " + here(),
            "give a depthwise filter [taps, channels] with one dim that x does not have"));
}

TEST_F(ConvolutionErrors, Pools) {
  EXPECT_USER_ERROR(max_pool(x, {window(h, 2, Padding::kValid), window(h, 3, Padding::kValid)}),
                    lines("pooling of [n=2 h=8 w=6 in=4] has two windows along dim 'h'", "pooling at " + here(),
                          "give each dim one window"));
  EXPECT_USER_ERROR(sum_pool(x, {window(h, 9, Padding::kValid)}), "spans 9 elements, but there are 8", here());
  EXPECT_USER_ERROR(sum_pool(x, {window({"h", 9}, 2, Padding::kValid)}), "pooling along dim h=9, which", here());
  EXPECT_USER_ERROR(max_pool(x, {{.dim = h, .filter = kh, .before = 3}}),
                    lines("max_pool of [n=2 h=8 w=6 in=4]: a window of 3 taps along dim h=8 covers only padding",
                          "max_pool at " + here(), "use less padding than the window is long"));
  EXPECT_USER_ERROR(avg_pool(x, {{.dim = h, .filter = kh, .after = 3}}), "avg_pool of", "covers only padding", here());
  EXPECT_NO_THROW(sum_pool(x, {{.dim = h, .filter = kh, .before = 3}}));
  EXPECT_USER_ERROR(max_pool(whole, {window(h, 2, Padding::kValid)}), "pooling needs a floating-point tensor, not i32");
}

TEST_F(ConvolutionErrors, Blocks) {
  EXPECT_USER_ERROR(
      halo_exchange(cut, {"blocks", 3}, h, 1),
      lines("halo_exchange of [n=2 blocks=4 h=8 w=6 in=4] by 1 between blocks blocks=3 of h=8",
            "halo_exchange at " + here(),
            "name two dims of the tensor, with their sizes, and a halo from 0 to the size of all blocks"));
  EXPECT_USER_ERROR(left_halo_exchange(cut, blocks, h, -1), "left_halo_exchange of", "by -1 between blocks", here());
  EXPECT_USER_ERROR(
      conv2d_with_blocks(cut, f, {{blocks, {"h", 7}}}),
      lines("conv2d_with_blocks of [n=2 blocks=4 h=8 w=6 in=4] with blocks blocks=4 of h=7",
            "conv2d_with_blocks at " + here(), "name for each cut dim its two dims in the tensor, with their sizes"),
      "code:  blocks.unknown-dims");
  EXPECT_USER_ERROR(conv2d_with_blocks(cut, f, {{blocks, h}}, {.padding = Padding::kValid}),
                    lines("conv2d_with_blocks of [n=2 blocks=4 h=8 w=6 in=4] gives 30 places along 'h', which 4 blocks "
                          "cannot divide evenly",
                          "conv2d_with_blocks at " + here(),
                          "choose stride and padding so that the places divide evenly, for instance Padding::kSame"));
}

}  // namespace
}  // namespace weft::convolution_errors_test
