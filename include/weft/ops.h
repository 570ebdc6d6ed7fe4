// Functions on tensors. Dims are matched, broadcast and reduced by name; no function takes an integer axis. A dim that a
// tensor has is given as a Dim or by its name: softmax(x, vocab), softmax(x, "vocab"). The last argument of every
// function is the user's line, by default the line of the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/graph.h"
#include "weft/tensor.h"

namespace weft {

// --- Constants ---
// UserError for a number that the dtype cannot hold (weft/number.h), here and wherever an operand is a number.
Tensor constant(const Graph& g, const Number& value, const Shape& shape = {}, DType dtype = DType::kF32,
                Site site = Site::current());
Tensor constant(const Graph& g, const Array& values, Site site = Site::current());
Tensor zeros_like(const Tensor& x, Site site = Site::current());
Tensor ones_like(const Tensor& x, Site site = Site::current());
// 0, 1, 2, … along the dim.
Tensor iota(const Graph& g, const Dim& dim, DType dtype = DType::kI32, Site site = Site::current());

// --- Random numbers: the same bits under every layout; new numbers at every step ---
Tensor random_uniform(const Graph& g, const Shape& shape, double low = 0, double high = 1, DType dtype = DType::kF32,
                      Site site = Site::current());
Tensor random_normal(const Graph& g, const Shape& shape, double mean = 0, double deviation = 1,
                     DType dtype = DType::kF32, Site site = Site::current());
Tensor random_truncated_normal(const Graph& g, const Shape& shape, double mean = 0, double deviation = 1,
                               DType dtype = DType::kF32, Site site = Site::current());  // within two deviations
Tensor random_bernoulli(const Graph& g, const Shape& shape, double probability, DType dtype = DType::kF32,
                        Site site = Site::current());
// -log(-log(uniform)): the largest of logits + gumbel is class i with probability softmax(logits)_i.
Tensor random_gumbel(const Graph& g, const Shape& shape, DType dtype = DType::kF32, Site site = Site::current());
// x times uniform random numbers from 1 - epsilon to 1 + epsilon.
Tensor multiplicative_jitter(const Tensor& x, double epsilon = 1e-2, Site site = Site::current());
// Keeps an element with probability `keep` and divides it by `keep`, otherwise 0. `noise_dims`: the dims along which
// draws differ; along all other dims one draw is shared. Default: all dims.
Tensor dropout(const Tensor& x, double keep, Site site = Site::current());
Tensor dropout(const Tensor& x, double keep, const DimRefs& noise_dims, Site site = Site::current());
// With a run-time probability, an f32 scalar: it may change between steps.
Tensor dropout(const Tensor& x, const Tensor& keep, Site site = Site::current());
Tensor dropout(const Tensor& x, const Tensor& keep, const DimRefs& noise_dims, Site site = Site::current());

// --- Pointwise ---
Tensor identity(const Tensor& x, Site site = Site::current());
Tensor cast(const Tensor& x, DType dtype, Site site = Site::current());
Tensor negative(const Tensor& x, Site site = Site::current());
Tensor abs(const Tensor& x, Site site = Site::current());
Tensor sign(const Tensor& x, Site site = Site::current());   // gradient 0
Tensor floor(const Tensor& x, Site site = Site::current());  // gradient 0
Tensor square(const Tensor& x, Site site = Site::current());
Tensor sqrt(const Tensor& x, Site site = Site::current());
Tensor rsqrt(const Tensor& x, Site site = Site::current());
Tensor reciprocal(const Tensor& x, Site site = Site::current());
Tensor exp(const Tensor& x, Site site = Site::current());
Tensor expm1(const Tensor& x, Site site = Site::current());
Tensor log(const Tensor& x, Site site = Site::current());
Tensor log1p(const Tensor& x, Site site = Site::current());
Tensor sin(const Tensor& x, Site site = Site::current());
Tensor cos(const Tensor& x, Site site = Site::current());
Tensor asinh(const Tensor& x, Site site = Site::current());
Tensor tanh(const Tensor& x, Site site = Site::current());
Tensor erf(const Tensor& x, Site site = Site::current());
Tensor sigmoid(const Tensor& x, Site site = Site::current());
Tensor softplus(const Tensor& x, Site site = Site::current());
Tensor relu(const Tensor& x, Site site = Site::current());
Tensor leaky_relu(const Tensor& x, double alpha = 0.2, Site site = Site::current());
Tensor elu(const Tensor& x, Site site = Site::current());
Tensor selu(const Tensor& x, Site site = Site::current());
Tensor swish(const Tensor& x, Site site = Site::current());
Tensor gelu(const Tensor& x, Site site = Site::current());  // the tanh form
Tensor logical_not(const Tensor& x, Site site = Site::current());

// Two operands of equal dtypes. The result has the dims of the operand that contains all dims of the other operand in
// order, otherwise x's dims followed by y's new dims.
Tensor add(const Operand& x, const Operand& y, Site site = Site::current());
Tensor subtract(const Operand& x, const Operand& y, Site site = Site::current());
Tensor multiply(const Operand& x, const Operand& y, Site site = Site::current());
Tensor divide(const Operand& x, const Operand& y, Site site = Site::current());
Tensor pow(const Operand& x, const Operand& y, Site site = Site::current());  // x > 0: exp(y log x)
// NaN wins, also in reduce_max and reduce_min, on every processor.
Tensor minimum(const Operand& x, const Operand& y, Site site = Site::current());
Tensor maximum(const Operand& x, const Operand& y, Site site = Site::current());
Tensor floordiv(const Operand& x, const Operand& y, Site site = Site::current());  // towards minus infinity
Tensor mod(const Operand& x, const Operand& y, Site site = Site::current());       // the sign of y
Tensor less(const Operand& x, const Operand& y, Site site = Site::current());
Tensor less_equal(const Operand& x, const Operand& y, Site site = Site::current());
Tensor greater(const Operand& x, const Operand& y, Site site = Site::current());
Tensor greater_equal(const Operand& x, const Operand& y, Site site = Site::current());
Tensor equal(const Operand& x, const Operand& y, Site site = Site::current());
Tensor not_equal(const Operand& x, const Operand& y, Site site = Site::current());
Tensor logical_and(const Operand& x, const Operand& y, Site site = Site::current());
Tensor logical_or(const Operand& x, const Operand& y, Site site = Site::current());
// condition ? x : y, element by element; the result does not depend on elements that are not chosen, not even if they
// are NaN.
Tensor select(const Tensor& condition, const Operand& x, const Operand& y, Site site = Site::current());
Tensor add_n(const Tensors& xs, Site site = Site::current());

inline Tensor operator+(const Operand& x, const Operand& y) { return add(x, y, x.site()); }
inline Tensor operator-(const Operand& x, const Operand& y) { return subtract(x, y, x.site()); }
inline Tensor operator*(const Operand& x, const Operand& y) { return multiply(x, y, x.site()); }
inline Tensor operator/(const Operand& x, const Operand& y) { return divide(x, y, x.site()); }
inline Tensor operator-(const Operand& x) { return negative(x.tensor(), x.site()); }
// Element by element, as less() and its like; bool tensors. == compares handles: use equal().
inline Tensor operator<(const Operand& x, const Operand& y) { return less(x, y, x.site()); }
inline Tensor operator<=(const Operand& x, const Operand& y) { return less_equal(x, y, x.site()); }
inline Tensor operator>(const Operand& x, const Operand& y) { return greater(x, y, x.site()); }
inline Tensor operator>=(const Operand& x, const Operand& y) { return greater_equal(x, y, x.site()); }

// --- Contraction and reduction ---
// The product of the inputs, summed over dims absent from `output`, broadcast along its new dims (UserError for likely
// typos).
Tensor einsum(const Tensors& xs, const Shape& output, Site site = Site::current());
// Without an output: sums dims that occur in two or more inputs and keeps the rest in order of appearance.
Tensor einsum(const Tensors& xs, Site site = Site::current());
// Sums exactly these dims.
Tensor einsum_over(const Tensors& xs, const DimRefs& reduced, Site site = Site::current());
// Over all dims, or over the named dims.
Tensor reduce_sum(const Tensor& x, Site site = Site::current());
Tensor reduce_sum(const Tensor& x, const DimRefs& dims, Site site = Site::current());
Tensor mean(const Tensor& x, Site site = Site::current());
Tensor mean(const Tensor& x, const DimRefs& dims, Site site = Site::current());
Tensor reduce_max(const Tensor& x, Site site = Site::current());
Tensor reduce_max(const Tensor& x, const DimRefs& dims, Site site = Site::current());
Tensor reduce_min(const Tensor& x, Site site = Site::current());
Tensor reduce_min(const Tensor& x, const DimRefs& dims, Site site = Site::current());
Tensor reduce_product(const Tensor& x, Site site = Site::current());
Tensor reduce_product(const Tensor& x, const DimRefs& dims, Site site = Site::current());
Tensor reduce_any(const Tensor& x, Site site = Site::current());  // of bool
Tensor reduce_any(const Tensor& x, const DimRefs& dims, Site site = Site::current());
Tensor reduce_all(const Tensor& x, Site site = Site::current());
Tensor reduce_all(const Tensor& x, const DimRefs& dims, Site site = Site::current());
// Sums the dims that `output` lacks; the result has the dim order of `output`.
Tensor reduce_sum_to(const Tensor& x, const DimRefs& output, Site site = Site::current());
// log sum exp over a dim, without overflow; `extra_logit` is an additional class.
Tensor reduce_logsumexp(const Tensor& x, const DimRef& dim, Site site = Site::current());
Tensor reduce_logsumexp(const Tensor& x, const DimRef& dim, const Operand& extra_logit, Site site = Site::current());
Tensor softmax(const Tensor& x, const DimRef& dim, Site site = Site::current());
Tensor softmax(const Tensor& x, const DimRef& dim, const Operand& extra_logit, Site site = Site::current());
Tensor log_softmax(const Tensor& x, const DimRef& dim, Site site = Site::current());
// Targets with the class dim are probabilities; integers without it are ids. An id out of range has no loss: write -1
// if there is no label; CompileOptions::check_ids finds ids that are too large. Adds z_loss * logsumexp^2.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const DimRef& classes, double z_loss = 0,
                     Site site = Site::current());
// For targets from 0 to 1, element by element: softplus(x) - x * target.
Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& targets, Site site = Site::current());
Tensor cumsum(const Tensor& x, const DimRef& dim, bool exclusive = false, bool reverse = false,
              Site site = Site::current());
Tensor cummax(const Tensor& x, const DimRef& dim, bool reverse = false, Site site = Site::current());

// --- Indices ---
Tensor one_hot(const Tensor& indices, const Dim& dim, double on = 1, double off = 0, DType dtype = DType::kF32,
               Site site = Site::current());
// x at dim = indices; zeros if out of range (CompileOptions::check_ids finds these ids). Dims that both have are
// matched.
Tensor gather(const Tensor& x, const Tensor& indices, const DimRef& dim, Site site = Site::current());
// Starts from zeros with `dim` in place of the indices' dims, except the dims that `keep` names, and adds each update
// at its index.
Tensor scatter_add(const Tensor& updates, const Tensor& indices, const Dim& dim, const DimRefs& keep = {},
                   Site site = Site::current());
// take_along reads each line of x along `dim` at separate indices. The indices have the dim too (in any size) and may
// lack other dims of x; an index out of range gives zeros. put_along is its transpose: starts from zeros along `dim`
// and adds each element at its index.
Tensor take_along(const Tensor& x, const Tensor& indices, const DimRef& dim, Site site = Site::current());
Tensor put_along(const Tensor& x, const Tensor& indices, const Dim& dim, Site site = Site::current());

// In order; of equal values the lower index comes first, and NaN counts as the largest.
struct SortResult {
  Tensor values, indices;  // indices: i32, the original position of each value
};
using TopKResult = SortResult;
SortResult sort(const Tensor& x, const DimRef& dim, bool descending = false, Site site = Site::current());
// The largest along `dim`, descending, or the smallest, ascending; `k` is a new dim at the end.
TopKResult top_k(const Tensor& x, const DimRef& dim, const Dim& k, bool smallest = false, Site site = Site::current());
Tensor argmax(const Tensor& x, const DimRef& dim, Site site = Site::current());
Tensor argmin(const Tensor& x, const DimRef& dim, Site site = Site::current());
// The element of rank n along `dim`, from 0: the largest (smallest).
Tensor nth_largest(const Tensor& x, std::int64_t n, const DimRef& dim, Site site = Site::current());
Tensor nth_smallest(const Tensor& x, std::int64_t n, const DimRef& dim, Site site = Site::current());
// Draws a class of `dim`, in i32: class i with probability softmax(logits / temperature)_i; at temperature 0 the
// likeliest. The result has no gradient. `keep_top_k`: draws only logits above the (k+1)-th largest (if several logits
// equal it, none of them is drawn); 0 keeps all. `keep_top_p`: of these, draws only the likeliest that together reach
// probability p (if several logits are equal at the limit, all of them are kept); 1 keeps all.
struct SampleOptions {
  double temperature = 1;
  std::int64_t keep_top_k = 0;
  double keep_top_p = 1;
};
Tensor sample_categorical(const Tensor& logits, const DimRef& dim, const SampleOptions& options = {},
                          Site site = Site::current());
// Reads, or writes, `size` elements from a run-time index on, clamped to fit. The index is a scalar, or has other dims of
// x: then each of their indices has a begin.
Tensor dynamic_slice(const Tensor& x, const Tensor& begin, const DimRef& dim, std::int64_t size,
                     Site site = Site::current());
Tensor dynamic_update(const Tensor& x, const Tensor& piece, const Tensor& begin, const DimRef& dim,
                      Site site = Site::current());
// Writes each index of `dim` in `updates` to a run-time index of x: x[indices[i]] = updates[i]. `indices` has the dim alone.
// Indices out of range are dropped; of equal indices the last counts, and gradients need different indices. Other dims of
// `updates` may be shorter than those of x: then their first elements are written, and a layout must not split them.
Tensor scatter_update(const Tensor& x, const Tensor& updates, const Tensor& indices, const DimRef& dim,
                      Site site = Site::current());

// --- Shapes and movement ---
Tensor broadcast(const Tensor& x, const Shape& shape, Site site = Site::current());  // any order; copies along new dims
Tensor transpose(const Tensor& x, const DimRefs& order, Site site = Site::current());
Tensor reshape(const Tensor& x, const Shape& shape, Site site = Site::current());  // row-major
Tensor rename(const Tensor& x, const DimRef& from, const std::string& to, Site site = Site::current());
Tensor split_dim(const Tensor& x, const DimRef& dim, const Shape& into, Site site = Site::current());
Tensor merge_dims(const Tensor& x, const DimRefs& dims, const std::string& into, Site site = Site::current());
// Only the name of `dim` counts: the tensors may have different sizes along it.
Tensor concat(const Tensors& xs, const DimRef& dim, Site site = Site::current());
Tensors split(const Tensor& x, const DimRef& dim, int parts, Site site = Site::current());
Tensor stack(const Tensors& xs, const std::string& dim, Site site = Site::current());  // the new dim comes first
Tensors unstack(const Tensor& x, const DimRef& dim, Site site = Site::current());
Tensor slice(const Tensor& x, const DimRef& dim, std::int64_t begin, std::int64_t size, Site site = Site::current());
Tensor pad(const Tensor& x, const DimRef& dim, std::int64_t before, std::int64_t after, Site site = Site::current());
// Moves elements by +offset to higher indices. Elements that leave are lost and zeros enter, unless `wrap`.
Tensor shift(const Tensor& x, const DimRef& dim, std::int64_t offset, bool wrap = false, Site site = Site::current());
// By run-time offsets, which may lack any dim of x: each line of x along `dim` has a separate offset.
Tensor dynamic_shift(const Tensor& x, const Tensor& offset, const DimRef& dim, bool wrap = false,
                     Site site = Site::current());
// Sets the layout of this value by these rules (`dim:axis`, `dim:-` = unsplit), in place of the global layout's.
Tensor with_layout(const Tensor& x, std::string_view layout, Site site = Site::current());

// --- Custom gradients ---
Tensor stop_gradient(const Tensor& x, Site site = Site::current());
// x unchanged; its gradient is scaled down to a root mean square of at most `rms`.
Tensor clip_activation_gradient(const Tensor& x, double rms = 1, Site site = Site::current());
// backward(inputs, outputs, dys) returns one gradient (or an empty Tensor) per input, in place of the gradient of
// forward. Tensors that forward uses or returns without being inputs get no gradient: pass them as inputs.
Tensors custom_gradient(
    const Tensors& inputs, const std::function<Tensors(const Tensors&)>& forward,
    const std::function<Tensors(const Tensors& inputs, const Tensors& outputs, const Tensors& dys)>& backward,
    Site site = Site::current());

// --- Loops and recomputation ---
struct LoopStep {
  Tensors carried;  // for the next iteration
  Tensors sums;     // summed over the iterations; reduced over processors once, after the loop
  Tensors kept;     // of every iteration
  Tensor stop;      // if given: a bool scalar that ends the loop after this iteration
};
struct LoopResult {
  Tensors carried, sums;
  // With a new first dim, one index per iteration; zeros for iterations that did not run. The dim is
  // kept[i].shape()[0]. Its name is reserved, so rename() it before you combine it with other tensors or name it in a
  // layout.
  Tensors kept;
};
// Runs the body `trips` times. The function is called once, with the iteration (an i64 scalar) and the carried values,
// and may use any outside tensor. Random numbers differ between iterations. Differentiable, unless it may stop early:
// the backward pass recomputes each iteration from the carried values, which are kept.
LoopResult loop(const Graph& g, std::int64_t trips, const Tensors& first,
                const std::function<LoopStep(const Tensor& i, const Tensors& carried)>& body,
                Site site = Site::current());
// Runs a batch in equal parts, one after another. `step` is called once, with one part of each input (the batch dim
// divided by `parts`). Results that have the batch dim are returned for the whole batch; other results are summed over
// the parts. Part i takes every parts-th example, so the parts are the same under every layout.
Tensors microbatch(const Tensors& inputs, const DimRef& batch, std::int64_t parts,
                   const std::function<Tensors(const Tensors& part)>& step, Site site = Site::current());
// The mean of a scalar loss over the parts. Its gradients are computed part by part in the same loop and summed, so
// that the values of only one part are in memory at a time.
Tensor microbatch_loss(const Tensors& inputs, const DimRef& batch, std::int64_t parts,
                       const std::function<Tensor(const Tensors& part)>& loss, Site site = Site::current());
// The function's results. Its intermediate values are not kept for the backward pass but recomputed there, with the
// same random numbers.
Tensors recompute(const Graph& g, const std::function<Tensors()>& function, Site site = Site::current());
// (x1, x2) -> (x2, x1 + layer(x2)), layer after layer. The backward pass computes the inputs of each layer from its
// outputs, so that nothing is kept, for any number of layers.
Tensors reversible(const Tensor& x1, const Tensor& x2, const std::vector<std::function<Tensor(const Tensor&)>>& layers,
                   Site site = Site::current());

// --- To the host ---
// x unchanged; prints it whenever a run computes the result.
Tensor print(const Tensor& x, const std::string& label, Site site = Site::current());
// A scalar that every run of an executable compiled with `.metrics = true` reports under this name.
void scalar_metric(const std::string& name, const Tensor& x, Site site = Site::current());

// --- State: a run reads old values; new values are visible in the next run. Pass results to compile() as updates. ---
Tensor assign(const Tensor& variable, const Tensor& value, Site site = Site::current());
Tensor assign_add(const Tensor& variable, const Tensor& value, Site site = Site::current());
Tensor assign_sub(const Tensor& variable, const Tensor& value, Site site = Site::current());

}  // namespace weft
