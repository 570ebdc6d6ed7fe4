// Convolutions by order of dims: conv1d, conv2d, conv3d, their transposes, depthwise and separable convolutions.
#include <algorithm>
#include <limits>

#include "base/str.h"
#include "language/graph_data.h"
#include "weft/convolution.h"
#include "weft/error.h"
#include "weft/ops.h"

namespace weft {

namespace {

constexpr const char* kGroups = "#groups";  // in no layout

// Holds sums of two products of 64 bits; converted to i64 they are clamped, and no dim is that large.
using Wide = __int128;
std::int64_t saturated(Wide x) {
  using Limits = std::numeric_limits<std::int64_t>;
  return static_cast<std::int64_t>(std::clamp<Wide>(x, Limits::min(), Limits::max()));
}

// One call by order of dims.
struct Call {
  const char* name;
  std::size_t spatial;
  bool transposed;
  const Tensor &x, &filter;
  const ConvOptions& options;
  Site site;

  [[noreturn]] void fail(ErrorCode code, const std::string& what, const std::string& fix) const {
    throw UserError({.code = code,
                     .what = str(name, " of ", x.shape(), " by a filter ", filter.shape(), ": ", what),
                     .where = str(name, " at ", to_string(site)),
                     .fix = fix});
  }
  const Dim& channels() const { return x.shape()[x.shape().rank() - 1]; }
  const Dim& place(std::size_t i) const { return x.shape()[x.shape().rank() - 1 - spatial + i]; }
};

void check_dims(const Call& call, std::size_t filter_rank, std::size_t channels_at) {
  const Shape &x = call.x.shape(), &filter = call.filter.shape();
  if (x.rank() < call.spatial + 1 || filter.rank() != filter_rank || filter[channels_at].name != call.channels().name)
    call.fail("conv.dims-mismatch", "their dims do not fit",
              str("give x [batch…, ", call.spatial, " spatial dims, channels] and a filter [", call.spatial, " taps, ",
                  call.transposed ? "out, channels]" : "channels, out]", ", or use convolution() with windows"));
}

// Strides or dilations, one per spatial dim.
std::vector<std::int64_t> steps(const Call& call, const std::vector<std::int64_t>& given, const char* what) {
  if (given.empty()) return std::vector<std::int64_t>(call.spatial, 1);
  if (given.size() != call.spatial)
    call.fail("conv.step-count-mismatch", str("there are ", given.size(), " ", what),
              str("give one for each of ", call.spatial, " spatial dims"));
  return given;
}

std::vector<Window> windows_of(const Call& call) {
  const ConvOptions& o = call.options;
  const std::vector<std::int64_t> strides = steps(call, o.strides, "strides");
  const std::vector<std::int64_t> dilations = steps(call, o.dilations, "dilations");
  std::vector<Window> windows;
  for (std::size_t i = 0; i < call.spatial; ++i) {
    Dim dim = call.place(i);
    const Dim& taps = call.filter.shape()[i];
    if (call.transposed && o.padding == Padding::kSame) dim.size = saturated(Wide{dim.size} * strides[i]);
    else if (call.transposed)
      dim.size = saturated(Wide{dim.size - 1} * strides[i] + Wide{taps.size - 1} * dilations[i] + 1);
    windows.push_back(window(dim, taps, o.padding, strides[i], dilations[i]));
  }
  return windows;
}

// x with channels cut into (groups, channels / groups), and the filter with its dim `outer` cut in the same way:
// `outer` is the dim that has all groups. The groups and channels of the result become one dim.
Tensor grouped(const Call& call, const Dim& inner, const Dim& outer) {
  const std::int64_t groups = call.options.groups;
  const Dim& channels = call.channels();
  const bool fits = groups >= 1 && channels.size % groups == 0 && outer.size % groups == 0;
  const std::int64_t each = call.transposed ? channels.size : inner.size * groups;
  if (!fits || each != channels.size)
    call.fail("conv.groups-do-not-divide", str("they do not fit ", groups, " groups"),
              "groups must divide the channels on both sides, and the filter has the channels of one group");
  const std::vector<Window> windows = windows_of(call);
  const auto apply = call.transposed ? convolution_transpose : convolution;
  if (groups == 1) return apply(call.x, call.filter, windows, {}, call.site);
  const OwnDimsGuard allowed(call.x.graph());
  const Dim parts{kGroups, groups};
  const Tensor x = split_dim(call.x, channels, {parts, {channels.name, channels.size / groups}}, call.site);
  const Tensor filter = split_dim(call.filter, outer, {parts, {outer.name, outer.size / groups}}, call.site);
  const Tensor y = apply(x, filter, windows, {parts}, call.site);
  const Dim own = call.transposed ? inner : Dim{outer.name, outer.size / groups};
  return merge_dims(y, {parts, own}, own.name, call.site);
}

Tensor conv(const char* name, std::size_t spatial, const Tensor& x, const Tensor& filter, const ConvOptions& options,
            Site site) {
  const Call call{name, spatial, false, x, filter, options, site};
  check_dims(call, spatial + 2, spatial);
  return grouped(call, filter.shape()[spatial], filter.shape()[spatial + 1]);
}

Tensor conv_transpose(const char* name, std::size_t spatial, const Tensor& x, const Tensor& filter,
                      const ConvOptions& options, Site site) {
  const Call call{name, spatial, true, x, filter, options, site};
  check_dims(call, spatial + 2, spatial + 1);
  return grouped(call, filter.shape()[spatial], filter.shape()[spatial + 1]);
}

}  // namespace

Window window(const Dim& dim, const Dim& filter, Padding padding, std::int64_t stride, std::int64_t dilation) {
  Window w{.dim = dim, .filter = filter, .stride = stride, .dilation = dilation};
  if (padding == Padding::kValid || stride < 1) return w;
  const std::int64_t places = (dim.size - 1) / stride + 1;
  const std::int64_t missing = saturated(Wide{places - 1} * stride + Wide{filter.size - 1} * dilation + 1 - dim.size);
  if (missing <= 0) return w;
  w.before = missing / 2;
  w.after = missing - w.before;
  return w;
}

Window window(const Dim& dim, std::int64_t taps, Padding padding, std::int64_t stride, std::int64_t dilation) {
  return window(dim, {"#taps", taps}, padding, stride, dilation);
}

Tensor conv1d(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  return conv("conv1d", 1, x, filter, options, site);
}
Tensor conv2d(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  return conv("conv2d", 2, x, filter, options, site);
}
Tensor conv3d(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  return conv("conv3d", 3, x, filter, options, site);
}
Tensor conv1d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  return conv_transpose("conv1d_transpose", 1, x, filter, options, site);
}
Tensor conv2d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  return conv_transpose("conv2d_transpose", 2, x, filter, options, site);
}
Tensor conv3d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  return conv_transpose("conv3d_transpose", 3, x, filter, options, site);
}

Tensor depthwise_conv(const Tensor& x, const Tensor& filter, const ConvOptions& options, Site site) {
  const Dim channels = x.shape().empty() ? Dim{"channels"} : x.shape()[x.shape().rank() - 1];
  const std::size_t spatial = filter.shape().find(channels.name).value_or(filter.shape().rank());
  const Call call{"depthwise_conv", spatial, false, x, filter, options, site};
  if (options.groups != 1 || !filter.shape().has(channels) || x.shape().rank() < spatial + 1)
    call.fail("depthwise-conv.dims-mismatch", "their dims do not fit one channel each",
              "give x [batch…, spatial…, channels] and a filter [taps…, channels] or [taps…, channels, multiplier]");
  return convolution(x, filter, windows_of(call), {channels}, site);
}

Tensor separable_conv1d(const Tensor& x, const Tensor& depthwise, const Tensor& pointwise, const DimRef& along,
                        std::int64_t first, Site site) {
  const Dim length = along.in(x, site);
  Shape own = depthwise.shape().minus(x.shape());
  if (own.rank() != 1)
    throw UserError({.code = "separable-conv1d.bad-filter",
                     .what = str("separable_conv1d of ", x.shape(), " by ", depthwise.shape(), " along dim ", length),
                     .where = str("separable_conv1d at ", to_string(site)),
                     .fix = "give a depthwise filter [taps, channels] with one dim that x does not have"});
  const Window w{.dim = length, .filter = own[0], .before = -first, .after = own[0].size - 1 + first};
  const Tensor mixed = convolution(x, depthwise, {w}, depthwise.shape().minus(own), site);
  return einsum({mixed, pointwise}, site);
}

}  // namespace weft
