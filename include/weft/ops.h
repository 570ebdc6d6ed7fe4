// The functions on tensors. Dims are matched, broadcast and reduced by name; no function takes an integer axis.
// Every function takes the user's line as its last argument, by default the line of the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/graph.h"
#include "weft/tensor.h"

namespace weft {

// --- Values from nothing ---
// UserError for a number that the dtype cannot hold (weft/number.h), here and wherever a number stands beside a tensor.
Tensor constant(const Graph& g, const Number& value, const Shape& shape = {}, DType dtype = DType::kF32,
                Site site = Site::current());
Tensor constant(const Graph& g, const Array& values, Site site = Site::current());
Tensor zeros_like(const Tensor& x, Site site = Site::current());
Tensor ones_like(const Tensor& x, Site site = Site::current());
// 0, 1, 2, … along the dim.
Tensor iota(const Graph& g, const Dim& dim, DType dtype = DType::kI32, Site site = Site::current());

// --- Random numbers: the same bits under every layout; new ones at every step ---
Tensor random_uniform(const Graph& g, const Shape& shape, double low = 0, double high = 1, DType dtype = DType::kF32,
                      Site site = Site::current());
Tensor random_normal(const Graph& g, const Shape& shape, double mean = 0, double deviation = 1,
                     DType dtype = DType::kF32, Site site = Site::current());
Tensor random_truncated_normal(const Graph& g, const Shape& shape, double mean = 0, double deviation = 1,
                               DType dtype = DType::kF32, Site site = Site::current());  // within two deviations
Tensor random_bernoulli(const Graph& g, const Shape& shape, double probability, DType dtype = DType::kF32,
                        Site site = Site::current());
// -log(-log(uniform)): the largest of logits + gumbel falls on class i with probability softmax(logits)_i.
Tensor random_gumbel(const Graph& g, const Shape& shape, DType dtype = DType::kF32, Site site = Site::current());
// x times uniform numbers from 1 - epsilon to 1 + epsilon.
Tensor multiplicative_jitter(const Tensor& x, double epsilon = 1e-2, Site site = Site::current());
// Keeps an element with probability `keep` and divides it by `keep`, else 0. `noise_shape`: the dims over which draws
// differ (the others share one draw); all of them by default.
Tensor dropout(const Tensor& x, double keep, Site site = Site::current());
Tensor dropout(const Tensor& x, double keep, const Shape& noise_shape, Site site = Site::current());
// With a run-time probability, an f32 scalar: it may change from step to step.
Tensor dropout(const Tensor& x, const Tensor& keep, Site site = Site::current());
Tensor dropout(const Tensor& x, const Tensor& keep, const Shape& noise_shape, Site site = Site::current());

// --- Element by element ---
Tensor identity(const Tensor& x, Site site = Site::current());
Tensor cast(const Tensor& x, DType dtype, Site site = Site::current());
Tensor negative(const Tensor& x, Site site = Site::current());
Tensor abs(const Tensor& x, Site site = Site::current());
Tensor sign(const Tensor& x, Site site = Site::current());   // derivative 0
Tensor floor(const Tensor& x, Site site = Site::current());  // derivative 0
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

// Two operands, equal dtypes. Dims of the result: those of the operand that contains the other's dims in order, else x's
// dims followed by y's new ones.
Tensor add(const Operand& x, const Operand& y, Site site = Site::current());
Tensor subtract(const Operand& x, const Operand& y, Site site = Site::current());
Tensor multiply(const Operand& x, const Operand& y, Site site = Site::current());
Tensor divide(const Operand& x, const Operand& y, Site site = Site::current());
Tensor pow(const Operand& x, const Operand& y, Site site = Site::current());  // x > 0: exp(y log x)
// NaN wins, here and in reduce_max and reduce_min, on every processor.
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
// condition ? x : y, element by element; what is not chosen never shows, NaN or not.
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
// The inputs' product, summed over dims absent from `output`; copies along its new dims (UserError for likely typos).
Tensor einsum(const Tensors& xs, const Shape& output, Site site = Site::current());
// Without an output: dims that occur in two or more inputs are summed, the rest kept in order of appearance.
Tensor einsum(const Tensors& xs, Site site = Site::current());
// Sums just these dims.
Tensor einsum_over(const Tensors& xs, const Shape& reduced, Site site = Site::current());
// Over all dims, or over those named.
Tensor reduce_sum(const Tensor& x, Site site = Site::current());
Tensor reduce_sum(const Tensor& x, const Shape& dims, Site site = Site::current());
Tensor mean(const Tensor& x, Site site = Site::current());
Tensor mean(const Tensor& x, const Shape& dims, Site site = Site::current());
Tensor reduce_max(const Tensor& x, Site site = Site::current());
Tensor reduce_max(const Tensor& x, const Shape& dims, Site site = Site::current());
Tensor reduce_min(const Tensor& x, Site site = Site::current());
Tensor reduce_min(const Tensor& x, const Shape& dims, Site site = Site::current());
Tensor reduce_product(const Tensor& x, Site site = Site::current());
Tensor reduce_product(const Tensor& x, const Shape& dims, Site site = Site::current());
Tensor reduce_any(const Tensor& x, Site site = Site::current());  // of bool
Tensor reduce_any(const Tensor& x, const Shape& dims, Site site = Site::current());
Tensor reduce_all(const Tensor& x, Site site = Site::current());
Tensor reduce_all(const Tensor& x, const Shape& dims, Site site = Site::current());
// Sums the dims that `output` lacks and gives its order.
Tensor reduce_sum_to(const Tensor& x, const Shape& output, Site site = Site::current());
// log sum exp over a dim, without overflow; `extra_logit` is one more class.
Tensor reduce_logsumexp(const Tensor& x, const Dim& dim, Site site = Site::current());
Tensor reduce_logsumexp(const Tensor& x, const Dim& dim, const Operand& extra_logit, Site site = Site::current());
Tensor softmax(const Tensor& x, const Dim& dim, Site site = Site::current());
Tensor softmax(const Tensor& x, const Dim& dim, const Operand& extra_logit, Site site = Site::current());
Tensor log_softmax(const Tensor& x, const Dim& dim, Site site = Site::current());
// Targets with the class dim are probabilities; integers without it are ids. An id out of range has no loss: write -1
// where there is no label; CompileOptions::check_ids finds ids that are too large. Adds z_loss * logsumexp^2.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const Dim& classes, double z_loss = 0,
                     Site site = Site::current());
// Of targets from 0 to 1, element by element: softplus(x) - x * target.
Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& targets, Site site = Site::current());
Tensor cumsum(const Tensor& x, const Dim& dim, bool exclusive = false, bool reverse = false,
              Site site = Site::current());
Tensor cummax(const Tensor& x, const Dim& dim, bool reverse = false, Site site = Site::current());

// --- Indices ---
Tensor one_hot(const Tensor& indices, const Dim& dim, double on = 1, double off = 0, DType dtype = DType::kF32,
               Site site = Site::current());
// x at dim = indices; zeros out of range (CompileOptions::check_ids finds such ids). Dims that both have are matched.
Tensor gather(const Tensor& x, const Tensor& indices, const Dim& dim, Site site = Site::current());
// Zeros with `dim` in the place of the indices' dims (those that `keep` does not name), each update added at its index.
Tensor scatter_add(const Tensor& updates, const Tensor& indices, const Dim& dim, const Shape& keep = {},
                   Site site = Site::current());
// Each line of x along `dim` at indices of its own, which have the dim too (in any size) and may lack others of x; zeros
// where an index is out of range. And its transpose: zeros along `dim`, each element added at its index.
Tensor take_along(const Tensor& x, const Tensor& indices, const Dim& dim, Site site = Site::current());
Tensor put_along(const Tensor& x, const Tensor& indices, const Dim& dim, Site site = Site::current());

// In order; ties go to the lower index, and NaN counts as the largest.
struct SortResult {
  Tensor values, indices;  // indices: i32, where each value was
};
using TopKResult = SortResult;
SortResult sort(const Tensor& x, const Dim& dim, bool descending = false, Site site = Site::current());
// The largest along `dim`, descending, or the smallest, ascending; `k` is a new dim at the end.
TopKResult top_k(const Tensor& x, const Dim& dim, const Dim& k, bool smallest = false, Site site = Site::current());
Tensor argmax(const Tensor& x, const Dim& dim, Site site = Site::current());
Tensor argmin(const Tensor& x, const Dim& dim, Site site = Site::current());
// The element of rank n along `dim`: 0 is the largest (smallest) itself.
Tensor nth_largest(const Tensor& x, std::int64_t n, const Dim& dim, Site site = Site::current());
Tensor nth_smallest(const Tensor& x, std::int64_t n, const Dim& dim, Site site = Site::current());
// A class of `dim` at random, in i32: class i with probability softmax(logits / temperature)_i; at temperature 0 the
// likeliest. Whole numbers have no derivative. `keep_top_k`: only logits above the (k+1)-th largest are drawn (of equals
// at that edge none is); 0 keeps all. `keep_top_p`: of these only the likeliest that together reach the probability p (of
// equals at that edge all); 1 keeps all.
struct SampleOptions {
  double temperature = 1;
  std::int64_t keep_top_k = 0;
  double keep_top_p = 1;
};
Tensor sample_categorical(const Tensor& logits, const Dim& dim, const SampleOptions& options = {},
                          Site site = Site::current());
// `size` elements from a run-time scalar index on, clamped to fit; and writing them.
Tensor dynamic_slice(const Tensor& x, const Tensor& begin, const Dim& dim, std::int64_t size,
                     Site site = Site::current());
Tensor dynamic_update(const Tensor& x, const Tensor& piece, const Tensor& begin, const Dim& dim,
                      Site site = Site::current());

// --- Moving ---
Tensor broadcast(const Tensor& x, const Shape& shape, Site site = Site::current());  // any order, new dims are copies
Tensor transpose(const Tensor& x, const Shape& order, Site site = Site::current());
Tensor reshape(const Tensor& x, const Shape& shape, Site site = Site::current());  // row-major
Tensor rename(const Tensor& x, const Dim& from, const std::string& to, Site site = Site::current());
Tensor split_dim(const Tensor& x, const Dim& dim, const Shape& into, Site site = Site::current());
Tensor merge_dims(const Tensor& x, const Shape& dims, const std::string& into, Site site = Site::current());
Tensor concat(const Tensors& xs, const std::string& dim, Site site = Site::current());
Tensors split(const Tensor& x, const Dim& dim, int parts, Site site = Site::current());
Tensor stack(const Tensors& xs, const std::string& dim, Site site = Site::current());  // the new dim comes first
Tensors unstack(const Tensor& x, const Dim& dim, Site site = Site::current());
Tensor slice(const Tensor& x, const Dim& dim, std::int64_t begin, std::int64_t size, Site site = Site::current());
Tensor pad(const Tensor& x, const Dim& dim, std::int64_t before, std::int64_t after, Site site = Site::current());
// By +offset to higher indices; what leaves is lost and zeros come in, unless it wraps.
Tensor shift(const Tensor& x, const Dim& dim, std::int64_t offset, bool wrap = false, Site site = Site::current());
// By run-time offsets, which may lack any dim of x: each line of x along `dim` by its own.
Tensor dynamic_shift(const Tensor& x, const Tensor& offset, const Dim& dim, bool wrap = false,
                     Site site = Site::current());
// This one value lies by these rules (`dim:axis`, `dim:-` = unsplit) in place of the global layout's.
Tensor with_layout(const Tensor& x, std::string_view layout, Site site = Site::current());

// --- Gradients by hand ---
Tensor stop_gradient(const Tensor& x, Site site = Site::current());
// x itself; its derivative is scaled down to a root mean square of at most `rms`.
Tensor clip_activation_gradient(const Tensor& x, double rms = 1, Site site = Site::current());
// backward(inputs, outputs, dys) gives one derivative (or an empty Tensor) per input, in place of forward's own.
// Tensors that forward uses or returns without being given them have no derivative: give them as inputs.
Tensors custom_gradient(
    const Tensors& inputs, const std::function<Tensors(const Tensors&)>& forward,
    const std::function<Tensors(const Tensors& inputs, const Tensors& outputs, const Tensors& dys)>& backward,
    Site site = Site::current());

// --- Loops, and what is computed twice ---
struct LoopStep {
  Tensors carried;  // for the next trip
  Tensors sums;     // added up over the trips; reduced over processors once, after the loop
  Tensors kept;     // of every trip
  Tensor stop;      // if given: a bool scalar that ends the loop after this trip
};
struct LoopResult {
  Tensors carried, sums;
  // With a new first dim, one index per trip; zeros for trips that did not run. The dim is kept[i].shape()[0]; its name is
  // the library's own, so rename() it before it meets dims of other tensors or a layout.
  Tensors kept;
};
// Runs the body `trips` times. It is called once, with the iteration (an i64 scalar) and the carried values, and may use
// any outside tensor. Random numbers differ from trip to trip. Differentiable (each trip is made again from the carried
// values, which are kept) unless it may stop early.
LoopResult loop(const Graph& g, std::int64_t trips, const Tensors& first,
                const std::function<LoopStep(const Tensor& i, const Tensors& carried)>& body,
                Site site = Site::current());
// The batch in equal parts, one after another: `step` is called once, with one part of each input (the batch dim that
// much smaller). Results that have the batch dim come back whole, the others are summed over the parts. Part i takes
// every parts-th example, so the parts are the same under every layout.
Tensors microbatch(const Tensors& inputs, const Dim& batch, std::int64_t parts,
                   const std::function<Tensors(const Tensors& part)>& step, Site site = Site::current());
// The mean of a scalar loss over the parts. Its derivatives are computed part by part in the same loop and summed, so
// that values of one part are in memory at a time.
Tensor microbatch_loss(const Tensors& inputs, const Dim& batch, std::int64_t parts,
                       const std::function<Tensor(const Tensors& part)>& loss, Site site = Site::current());
// The function's results. What it computes on the way is not kept for the backward pass but computed again there, with
// the same random numbers.
Tensors recompute(const Graph& g, const std::function<Tensors()>& function, Site site = Site::current());
// (x1, x2) -> (x2, x1 + layer(x2)), layer after layer. The backward pass makes the inputs of each layer from its outputs,
// so that nothing is kept, however many layers there are.
Tensors reversible(const Tensor& x1, const Tensor& x2, const std::vector<std::function<Tensor(const Tensor&)>>& layers,
                   Site site = Site::current());

// --- To the host ---
// x itself; prints it whenever a run computes the result.
Tensor print(const Tensor& x, const std::string& label, Site site = Site::current());
// A scalar that every run of an executable compiled with `.metrics = true` reports under this name.
void scalar_metric(const std::string& name, const Tensor& x, Site site = Site::current());

// --- State. Old values are read, new ones seen from the next run on. The result is handed to compile() as an update. ---
Tensor assign(const Tensor& variable, const Tensor& value, Site site = Site::current());
Tensor assign_add(const Tensor& variable, const Tensor& value, Site site = Site::current());
Tensor assign_sub(const Tensor& variable, const Tensor& value, Site site = Site::current());

}  // namespace weft
