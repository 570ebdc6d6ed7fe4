// Dims that the user cut into blocks: halos between blocks, and convolutions of the image that the blocks form.
#include "base/str.h"
#include "language/shape_math.h"
#include "weft/convolution.h"
#include "weft/error.h"
#include "weft/ops.h"

namespace weft {

namespace {

void check_halo(const char* name, const Tensor& x, const Dim& blocks, const Dim& size, std::int64_t halo, Site site) {
  if (!x.shape().has(blocks) || !x.shape().has(size) || blocks.name == size.name || halo < 0 ||
      static_cast<double>(halo) > volume({blocks, size}))
    throw UserError(
        {.code = "blocks.bad-halo",
         .what = str(name, " of ", x.shape(), " by ", halo, " between blocks ", blocks, " of ", size),
         .where = str(name, " at ", to_string(site)),
         .fix = "name two dims of the tensor, with their sizes, and a halo from 0 to the size of all blocks"});
}

// The `halo` elements before (or after) each block: a part of one block, and complete neighbouring blocks.
Tensors halo_parts(const Tensor& x, const Dim& blocks, const Dim& size, std::int64_t halo, bool wrap, bool before,
                   Site site) {
  const std::int64_t whole = halo / size.size, rest = halo % size.size, way = before ? 1 : -1;
  Tensors parts;
  for (std::int64_t k = 1; k <= whole; ++k) parts.push_back(shift(x, blocks, way * k, wrap, site));
  if (rest > 0) {
    const Tensor margin = slice(x, size, before ? size.size - rest : 0, rest, site);
    parts.push_back(shift(margin, blocks, way * (whole + 1), wrap, site));
  }
  if (before) return Tensors(parts.rbegin(), parts.rend());
  return parts;
}

Tensor with_halos(const char* name, const Tensor& x, const Dim& blocks, const Dim& size, std::int64_t halo, bool wrap,
                  bool both, Site site) {
  check_halo(name, x, blocks, size, halo, site);
  if (halo == 0) return x;
  Tensors parts = halo_parts(x, blocks, size, halo, wrap, true, site);
  parts.push_back(x);
  if (both)
    for (Tensor& part : halo_parts(x, blocks, size, halo, wrap, false, site)) parts.push_back(std::move(part));
  return concat(parts, size.name, site);
}

using Conv = Tensor (*)(const Tensor&, const Tensor&, const ConvOptions&, Site);

// A cut dim of a tensor.
struct CutDim {
  Dim blocks, size;
};

// x with each cut dim joined again, under the name of its blocks, so that a layout of the blocks splits it.
Tensor image_of(const char* name, const Tensor& x, const std::vector<CutDim>& blocks, Site site) {
  std::vector<Dim> order;
  Shape cut;
  for (const CutDim& b : blocks) {
    if (!x.shape().has(b.blocks) || !x.shape().has(b.size) || cut.has(b.blocks.name) || cut.has(b.size.name) ||
        b.blocks.name == b.size.name)
      throw UserError({.code = "blocks.unknown-dims",
                       .what = str(name, " of ", x.shape(), " with blocks ", b.blocks, " of ", b.size),
                       .where = str(name, " at ", to_string(site)),
                       .fix = "name for each cut dim its two dims in the tensor, with their sizes"});
    cut = cut.plus({b.blocks, b.size});
  }
  for (const Dim& dim : x.shape()) {
    bool is_blocks = false;
    for (const CutDim& b : blocks) {
      if (b.size == dim) order.push_back(b.blocks);
      is_blocks = is_blocks || b.blocks == dim;
    }
    if (!is_blocks) order.push_back(dim);
  }
  Tensor image = transpose(x, Shape(order), site);
  for (const CutDim& b : blocks) image = merge_dims(image, {b.blocks, b.size}, b.blocks.name, site);
  return image;
}

Tensor with_blocks(const char* name, Conv conv, const Tensor& x, const Tensor& filter, const std::vector<Blocks>& named,
                   const ConvOptions& options, Site site) {
  std::vector<CutDim> blocks;
  for (const Blocks& b : named) blocks.push_back({b.blocks.in(x, site), b.size.in(x, site)});
  Tensor y = conv(image_of(name, x, blocks, site), filter, options, site);
  const Dim out = y.shape()[y.shape().rank() - 1];
  std::vector<Dim> order = x.shape().dims();
  order.back() = out;
  for (const CutDim& b : blocks) {
    const Dim whole = y.shape().dim(b.blocks.name);
    if (whole.size % b.blocks.size != 0)
      throw UserError(
          {.code = "blocks.uneven-places",
           .what = str(name, " of ", x.shape(), " gives ", whole.size, " places along '", b.size.name, "', which ",
                       b.blocks.size, " blocks cannot divide evenly"),
           .where = str(name, " at ", to_string(site)),
           .fix = "choose stride and padding so that the places divide evenly, for instance Padding::kSame"});
    const Dim own{b.size.name, whole.size / b.blocks.size};
    y = split_dim(y, whole, {b.blocks, own}, site);
    for (Dim& dim : order)
      if (dim.name == own.name) dim = own;
  }
  // Dims without blocks may have other sizes too.
  for (Dim& dim : order) dim = y.shape().dim(dim.name);
  return transpose(y, Shape(order), site);
}

}  // namespace

Tensor halo_exchange(const Tensor& x, const DimRef& blocks, const DimRef& size, std::int64_t halo, bool wrap,
                     Site site) {
  return with_halos("halo_exchange", x, blocks.in(x, site), size.in(x, site), halo, wrap, true, site);
}

Tensor left_halo_exchange(const Tensor& x, const DimRef& blocks, const DimRef& size, std::int64_t halo, bool wrap,
                          Site site) {
  return with_halos("left_halo_exchange", x, blocks.in(x, site), size.in(x, site), halo, wrap, false, site);
}

Tensor conv2d_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                          const ConvOptions& options, Site site) {
  return with_blocks("conv2d_with_blocks", conv2d, x, filter, blocks, options, site);
}

Tensor conv3d_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                          const ConvOptions& options, Site site) {
  return with_blocks("conv3d_with_blocks", conv3d, x, filter, blocks, options, site);
}

Tensor conv2d_transpose_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                                    const ConvOptions& options, Site site) {
  return with_blocks("conv2d_transpose_with_blocks", conv2d_transpose, x, filter, blocks, options, site);
}

Tensor conv3d_transpose_with_blocks(const Tensor& x, const Tensor& filter, const std::vector<Blocks>& blocks,
                                    const ConvOptions& options, Site site) {
  return with_blocks("conv3d_transpose_with_blocks", conv3d_transpose, x, filter, blocks, options, site);
}

}  // namespace weft
