// Convolution and pooling along named dims, and the exchange of halos between blocks. Any of the dims may be split: along
// a split spatial dim each processor gets what its windows reach of its neighbours' shards.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/tensor.h"

namespace weft {

// How a window walks along one dim: tap k of place o meets element o * stride + k * dilation - before; outside the dim
// are zeros (in a pool: nothing). The places are a dim of the same name, of size
//   (size + before + after - (taps - 1) * dilation - 1) / stride + 1, rounded down.
// Negative padding leaves elements out.
struct Window {
  Dim dim;  // of the tensor that is convolved or pooled
  Dim filter = {
      "#taps"};  // of the filter: its size is the number of taps; a pool has no filter and uses the size alone
  std::int64_t stride = 1, dilation = 1, before = 0, after = 0;
};
enum class Padding : std::uint8_t { kSame, kValid };
// kSame: as many places as size / stride, rounded up, padded on both sides, after by one more if odd. kValid: unpadded.
Window window(const Dim& dim, const Dim& filter, Padding padding, std::int64_t stride = 1, std::int64_t dilation = 1);
Window window(const Dim& dim, std::int64_t taps, Padding padding, std::int64_t stride = 1, std::int64_t dilation = 1);

// --- Convolution by names ---
// The sum of products of x and filter over all taps and over the other dims that both have, but for those that `kept`
// names (groups, the channels of a depthwise filter). Dims of the result: those of x that remain, then the filter's own.
Tensor convolution(const Tensor& x, const Tensor& filter, const std::vector<Window>& windows, const Shape& kept = {},
                   Site site = Site::current());
// The transpose (the derivative by x): from places to elements. The windows' dims are those of the result.
Tensor convolution_transpose(const Tensor& y, const Tensor& filter, const std::vector<Window>& windows,
                             const Shape& kept = {}, Site site = Site::current());

// --- Convolution by order of dims ---
// x [batch…, spatial…, channels], filter [taps…, channels / groups, out] -> [batch…, spatial…, out]. The channel dims
// have one name.
struct ConvOptions {
  Padding padding = Padding::kSame;
  std::vector<std::int64_t> strides = {}, dilations = {};  // one per spatial dim; none: all 1
  std::int64_t groups = 1;
};
Tensor conv1d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {}, Site site = Site::current());
Tensor conv2d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {}, Site site = Site::current());
Tensor conv3d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {}, Site site = Site::current());
// filter [taps…, out / groups, channels]; spatial sizes become size * stride (kSame) or (size - 1) * stride + the
// window's reach (kValid). Other sizes: convolution_transpose().
Tensor conv1d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                        Site site = Site::current());
Tensor conv2d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                        Site site = Site::current());
Tensor conv3d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                        Site site = Site::current());
// Each channel by itself: filter [taps…, channels] -> [batch…, spatial…, channels], or with a multiplier
// [taps…, channels, multiplier] -> [batch…, spatial…, channels, multiplier].
Tensor depthwise_conv(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                      Site site = Site::current());
// Along `length`: depthwise [taps, channels], tap 0 at relative position `first`, then pointwise [channels, out…].
Tensor separable_conv1d(const Tensor& x, const Tensor& depthwise, const Tensor& pointwise, const Dim& length,
                        std::int64_t first, Site site = Site::current());

// --- Pooling ---
// The largest element that each window meets; ties share the derivative evenly.
Tensor max_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());
Tensor min_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());
Tensor sum_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());
// The mean of the elements that a window meets: padding does not count.
Tensor avg_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());

// --- Blocks: a dim cut into (blocks, size) by the user, Mesh-TensorFlow's way to split space ---
// Every block with `halo` elements of what lies before and after it; zeros at the ends, or the other end if it wraps. A
// halo may be longer than a block.
Tensor halo_exchange(const Tensor& x, const Dim& blocks, const Dim& size, std::int64_t halo, bool wrap = false,
                     Site site = Site::current());
Tensor left_halo_exchange(const Tensor& x, const Dim& blocks, const Dim& size, std::int64_t halo, bool wrap = false,
                          Site site = Site::current());
// x [batch…, blocks…, spatial…, channels], each spatial dim whole or cut into blocks: convolves the whole image. The
// result has the same dims with out in place of channels; its blocks must come out equal.
struct Blocks {
  Dim blocks, size;
};
Tensor conv2d_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                          const ConvOptions& options = {}, Site site = Site::current());
Tensor conv3d_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                          const ConvOptions& options = {}, Site site = Site::current());
Tensor conv2d_transpose_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                                    const ConvOptions& options = {}, Site site = Site::current());
Tensor conv3d_transpose_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                                    const ConvOptions& options = {}, Site site = Site::current());

}  // namespace weft
