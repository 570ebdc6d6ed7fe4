// Convolution and pooling along named dims, and the exchange of halos between blocks. A layout may split any of the
// dims: along a split spatial dim each processor gets the elements of its neighbours' shards that its windows reach.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/tensor.h"

namespace weft {

// A window along one dim: tap k of output position o reads element o * stride + k * dilation - before. Elements outside
// the dim are zeros; a pool ignores them. The output positions form a dim of the same name, of size
//   (size + before + after - (taps - 1) * dilation - 1) / stride + 1, rounded down.
// Negative padding leaves elements out.
struct Window {
  Dim dim;                 // of the tensor to convolve or pool
  Dim filter = {"#taps"};  // of the filter: its size is the number of taps; a pool has no filter and uses only the size
  std::int64_t stride = 1, dilation = 1, before = 0, after = 0;
};
enum class Padding : std::uint8_t { kSame, kValid };
// kSame: size / stride output positions, rounded up, padded on both sides, after by one more if odd. kValid: unpadded.
Window window(const Dim& dim, const Dim& filter, Padding padding, std::int64_t stride = 1, std::int64_t dilation = 1);
Window window(const Dim& dim, std::int64_t taps, Padding padding, std::int64_t stride = 1, std::int64_t dilation = 1);

// --- Convolution by names ---
// The sum of products of x and filter over all taps and over the other dims that both have, except the dims that `kept`
// names (groups, the channels of a depthwise filter). The result has the remaining dims of x, then the dims that only
// the filter has.
Tensor convolution(const Tensor& x, const Tensor& filter, const std::vector<Window>& windows, const DimRefs& kept = {},
                   Site site = Site::current());
// The transpose (the gradient of x): from output positions to elements. The windows' dims are dims of the result.
Tensor convolution_transpose(const Tensor& y, const Tensor& filter, const std::vector<Window>& windows,
                             const DimRefs& kept = {}, Site site = Site::current());

// --- Convolution by order of dims ---
// x [batch…, spatial…, channels], filter [taps…, channels / groups, out] -> [batch…, spatial…, out]. The channel dims
// have the same name.
struct ConvOptions {
  Padding padding = Padding::kSame;
  std::vector<std::int64_t> strides = {}, dilations = {};  // one per spatial dim; none: all 1
  std::int64_t groups = 1;
};
Tensor conv1d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {}, Site site = Site::current());
Tensor conv2d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {}, Site site = Site::current());
Tensor conv3d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {}, Site site = Site::current());
// filter [taps…, out / groups, channels]; spatial sizes become size * stride (kSame) or (size - 1) * stride + the
// window's extent (kValid). For other sizes use convolution_transpose().
Tensor conv1d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                        Site site = Site::current());
Tensor conv2d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                        Site site = Site::current());
Tensor conv3d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                        Site site = Site::current());
// Each channel separately: filter [taps…, channels] -> [batch…, spatial…, channels], or with a multiplier
// [taps…, channels, multiplier] -> [batch…, spatial…, channels, multiplier].
Tensor depthwise_conv(const Tensor& x, const Tensor& filter, const ConvOptions& options = {},
                      Site site = Site::current());
// Along `length`: depthwise [taps, channels], tap 0 at relative position `first`, then pointwise [channels, out…].
Tensor separable_conv1d(const Tensor& x, const Tensor& depthwise, const Tensor& pointwise, const DimRef& length,
                        std::int64_t first, Site site = Site::current());

// --- Pooling ---
// The largest element in each window; equal elements share the gradient evenly.
Tensor max_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());
Tensor min_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());
Tensor sum_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());
// The mean of the elements in a window; padding does not count.
Tensor avg_pool(const Tensor& x, const std::vector<Window>& windows, Site site = Site::current());

// --- Blocks: a dim that the user cut into (blocks, size), Mesh-TensorFlow's way to split space ---
// Adds to every block `halo` elements from before and after it: zeros at the ends, or the opposite end with `wrap`. A
// halo may be longer than a block. left_halo_exchange adds only the elements before it.
Tensor halo_exchange(const Tensor& x, const DimRef& blocks, const DimRef& size, std::int64_t halo, bool wrap = false,
                     Site site = Site::current());
Tensor left_halo_exchange(const Tensor& x, const DimRef& blocks, const DimRef& size, std::int64_t halo,
                          bool wrap = false, Site site = Site::current());
// x [batch…, blocks…, spatial…, channels], each spatial dim uncut or cut into blocks: convolves the complete image. The
// result has the same dims with out in place of channels; its size must divide into equal blocks.
struct Blocks {
  DimRef blocks, size;
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
