// microbatch: a batch in equal parts, one after another. Part i takes every parts-th example. Each processor then
// already holds its share of a part, and a part is the same under every layout.
#include <algorithm>

#include "base/str.h"
#include "language/region.h"
#include "weft/ops.h"

namespace weft {

namespace {

void check_parts(const Tensors& inputs, const Dim& batch, std::int64_t parts, Site site) {
  if (parts < 1 || batch.size % parts != 0)
    throw UserError({.code = "microbatch.uneven-parts",
                     .what = str("a batch of ", batch.size, " cannot be divided into ", parts, " equal parts"),
                     .where = str("microbatch at ", to_string(site)),
                     .fix = "give a number of parts that divides the batch"});
  if (inputs.empty())
    throw UserError({.code = "microbatch.no-input",
                     .what = "microbatch() was given no input",
                     .where = str("microbatch at ", to_string(site)),
                     .fix = str("give the tensors that have the dim ", batch.name)});
  for (const Tensor& x : inputs)
    if (!x || !x.shape().has(batch))
      throw UserError(
          {.code = "microbatch.input-without-batch",
           .what = x ? str("input '", x.name(), "' ", x.shape(), " has no dim ", batch)
                     : str("an input of microbatch() is empty"),
           .where = str("microbatch at ", to_string(site)),
           .fix = "give only tensors that have the batch dim; the function may use other tensors directly"});
}

// The batch dim and its parts.
class Parts {
 public:
  Parts(const Dim& batch, std::int64_t parts, Site site)
      : whole_(batch), small_{batch.name, batch.size / parts}, part_{kMicrobatchPart, parts}, site_(site) {}

  Tensor split(const Tensor& x) const {
    const OwnDimsGuard own(x.graph());
    return split_dim(x, whole_, {small_, part_}, site_);
  }
  Tensor take(const Tensor& split, const Tensor& i) const {
    return reshape(dynamic_slice(split, i, part_, 1, site_), split.shape().minus({part_}), site_);
  }
  bool has_part(const Tensor& x) const { return x.shape().has(small_); }
  // From the kept values of a loop: [iterations, … batch …] with the smaller batch.
  Tensor joined(const Tensor& kept) const {
    std::vector<Dim> order;
    for (const Dim& dim : kept.shape().minus({kept.shape()[0]})) {
      order.push_back(dim);
      if (dim == small_) order.push_back(part_);
    }
    const OwnDimsGuard own(kept.graph());
    const Tensor named = rename(kept, kept.shape()[0], part_.name, site_);
    return merge_dims(transpose(named, Shape(order), site_), {small_, part_}, whole_.name, site_);
  }

 private:
  Dim whole_, small_, part_;
  Site site_;
};

}  // namespace

Tensors microbatch(const Tensors& inputs, const DimRef& batch_dim, std::int64_t parts,
                   const std::function<Tensors(const Tensors& part)>& step, Site site) {
  const Dim batch = batch_dim.in(inputs, site);
  check_parts(inputs, batch, parts, site);
  const Parts by(batch, parts, site);
  Tensors split;
  for (const Tensor& x : inputs) split.push_back(by.split(x));
  std::vector<bool> whole;  // per result: it has the batch dim
  const LoopResult result = loop(
      Graph(inputs[0].graph()), parts, {},
      [&](const Tensor& i, const Tensors&) {
        GraphData& graph = *i.graph();
        graph.loops[static_cast<std::size_t>(graph.loop)].batch = batch;
        Tensors part;
        for (const Tensor& x : split) part.push_back(by.take(x, i));
        LoopStep out;
        for (const Tensor& x : step(part)) {
          whole.push_back(by.has_part(x));
          (whole.back() ? out.kept : out.sums).push_back(x);
        }
        return out;
      },
      site);
  Tensors results;
  std::size_t sums = 0, kept = 0;
  for (bool joins : whole) results.push_back(joins ? by.joined(result.kept[kept++]) : result.sums[sums++]);
  return results;
}

Tensor microbatch_loss(const Tensors& inputs, const DimRef& batch, std::int64_t parts,
                       const std::function<Tensor(const Tensors& part)>& loss, Site site) {
  Tensors xs;  // outside tensors that the loss depends on and that have a gradient
  const Tensors sums = microbatch(
      inputs, batch, parts,
      [&](const Tensors& part) {
        GraphData& graph = *part[0].graph();
        const NodeId first = graph.nodes.end_id();
        const Tensor one = loss(part);
        if (!one || !one.shape().empty() || !is_float(one.dtype()))
          throw UserError({.code = "microbatch.loss-not-scalar",
                           .what = one ? str("the loss of a part is ", one.dtype(), " ", one.shape())
                                       : str("the loss of a part is an empty tensor"),
                           .where = str("microbatch_loss at ", to_string(site)),
                           .fix = "give a floating-point scalar, for instance mean(…)"});
        const Tensor share = multiply(one, 1.0 / static_cast<double>(parts), site);
        Tensors candidates, outside, made = {share};
        for (std::size_t i = 0; i < part.size(); ++i)
          if (is_float(part[i].dtype())) {
            candidates.push_back(part[i]);
            outside.push_back(inputs[i]);
          }
        for (TensorId id : captures_of(graph, {first, graph.nodes.end_id(), graph.loop}, {share.id()}))
          if (graph.node(id).loop != graph.loop && is_float(graph.type(id).dtype)) {
            candidates.emplace_back(part[0].graph(), id);
            outside.push_back(candidates.back());
          }
        const Tensors dxs = gradients_from(first, {share}, candidates, {ones_like(share, site)}, site);
        for (std::size_t i = 0; i < dxs.size(); ++i) {
          if (!dxs[i]) continue;
          xs.push_back(outside[i]);
          made.push_back(dxs[i]);
        }
        return made;
      },
      site);
  if (xs.empty()) return sums[0];
  // The gradients are inputs too: if the loss is recomputed, as in the backward pass of a surrounding loop, so are
  // they.
  const std::size_t count = xs.size();
  Tensors inputs_and_derivatives = xs;
  inputs_and_derivatives.insert(inputs_and_derivatives.end(), sums.begin() + 1, sums.end());
  return custom_gradient(
      inputs_and_derivatives, [&](const Tensors&) { return Tensors{sums[0]}; },
      [count, site](const Tensors& given, const Tensors&, const Tensors& dys) {
        Tensors dxs(given.size());
        for (std::size_t i = 0; i < count; ++i) {
          const Tensor& dx = given[count + i];
          dxs[i] = multiply(dx, cast(dys[0], dx.dtype(), site), site);
        }
        return dxs;
      },
      site)[0];
}

}  // namespace weft
