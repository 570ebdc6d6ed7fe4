// What a user reads when an op cannot take what it was given: names and sizes, the user's own line, and a cure.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "errors/lines.h"

namespace weft::ops_errors_test {
namespace {

using test::here;
using test::lines;

class OpsErrors : public ::testing::Test {
 protected:
  const Dim a{"a", 6}, b{"b", 4}, c{"c", 2};
  Graph g;
  Tensor x = g.input("x", {a, b}), whole = g.input("whole", {a}, DType::kI32),
         truth = g.input("truth", {a}, DType::kBool);
  Tensor index = g.input("index", {}, DType::kI32);
};

using EinsumErrors = OpsErrors;

// Without the check the typo would sum 'hidden' and fill the output with copies of the sum.
TEST_F(EinsumErrors, AMisspeltDimOfTheOutput) {
  const Dim batch{"batch", 8}, hidden{"hidden", 16}, io{"io", 4};
  const Tensor rows = g.input("rows", {batch, io}), w = g.input("w", {io, hidden});
  EXPECT_USER_ERROR(einsum({rows, w}, {batch, {"hiden", 16}}),
                    lines("einsum sums dim hidden=16 of its inputs and broadcasts along dim hiden=16 of its output "
                          "[batch=8 hiden=16], which no input has",
                          "einsum at " + here(),
                          "write 'hidden' in the output if you mean that dim; otherwise leave 'hiden' out of the "
                          "output and add it with broadcast()"));
  EXPECT_USER_ERROR(einsum({rows, w}, {{"batches", 8}, hidden}), "broadcasts along dim batches=8");
  EXPECT_USER_ERROR(einsum({rows}, {io, {"bacth", 8}}), "sums dim batch=8");
}

TEST_F(EinsumErrors, CopiesThatAreMeantAreNotRefused) {
  const Dim batch{"batch", 8}, hidden{"hidden", 16}, io{"io", 4};
  const Tensor rows = g.input("rows", {batch, io}), w = g.input("w", {io, hidden});
  EXPECT_NO_THROW(einsum({rows, w}, {batch, {"hidden2", 32}})) << "another size is another dim";
  EXPECT_NO_THROW(einsum({rows, w}, {batch, {"copies", 16}}));
  EXPECT_NO_THROW(einsum({rows, w}, {batch, hidden, {"batch2", 8}})) << "nothing like it is summed";
  EXPECT_NO_THROW(einsum({x}, {b, {"d", 6}})) << "names of one letter are all alike";
  const Tensor sum = einsum({rows, w}, {batch});
  EXPECT_NO_THROW(broadcast(sum, {batch, {"hiden", 16}}));
}

// The derivative by an input copies dy along the dims that only this input had.
TEST_F(EinsumErrors, DerivativesMayCopyAlongSuchDims) {
  const Dim first{"width1", 4}, second{"width2", 4};
  const Tensor p = g.input("p", {first}), q = g.input("q", {second});
  EXPECT_EQ(gradients({einsum({p, q}, Shape{})}, {p, q})[0].shape(), Shape{first});
}

using PointwiseErrors = OpsErrors;

TEST_F(PointwiseErrors, NeedsFloats) {
  EXPECT_USER_ERROR(exp(whole), lines("exp needs a floating-point tensor, not i32 [a=6]", "exp at " + here(),
                                      "cast() it to f32 first"));
  EXPECT_USER_ERROR(-truth, "negative needs a floating-point tensor, not bool [a=6]", here());
}

TEST_F(PointwiseErrors, NeedsADtype) {
  EXPECT_USER_ERROR(logical_not(x),
                    lines("logical_not needs bool for operand 1, not f32 [a=6 b=4]", "logical_not at " + here(),
                          "cast() it to bool or compare it first"),
                    "code:  op.wrong-dtype");
  EXPECT_USER_ERROR(select(truth, x, whole), "select needs f32 for operand 3, not i32 [a=6]",
                    "cast() it to f32 or compare it first");
}

TEST_F(PointwiseErrors, NeedsOneDtype) {
  EXPECT_USER_ERROR(x + whole, lines("add of f32 [a=6 b=4] and i32 [a=6]: operands must have one dtype",
                                     "add at " + here(), "cast() one of them, for instance to f32"));
}

TEST_F(PointwiseErrors, NeedsOtherDtypes) {
  EXPECT_USER_ERROR(whole / whole,
                    lines("divide does not take i32 operands, as here [a=6] and [a=6]", "divide at " + here(),
                          "cast() the operands to a dtype it takes, such as f32 or i32"));
  EXPECT_USER_ERROR(logical_and(x, x),
                    lines("logical_and does not take f32 operands, as here [a=6 b=4] and [a=6 b=4]",
                          "logical_and at " + here(), "compare the operands first: logical functions take bool"));
}

TEST_F(PointwiseErrors, NeedsATensor) {
  EXPECT_USER_ERROR(add(1.0, 2.0),
                    lines("add was given two numbers", "add at " + here(), "give at least one tensor as an operand"));
  for (const auto& use : std::vector<std::function<Tensor()>>{
           [&] { return x * Tensor(); }, [&] { return Tensor() + x; }, [&] { return select(truth, Tensor(), x); }})
    EXPECT_USER_ERROR(use(), "an operand is an empty tensor, which has no value",
                      "test the tensor first; gradients() returns an empty Tensor for an x that no y depends on");
  EXPECT_USER_ERROR(add_n({}), lines("add_n was given no tensors", "add_n at " + here(), "give at least one tensor"));
}

TEST_F(PointwiseErrors, NumbersBesideIntegersAreWhole) {
  EXPECT_USER_ERROR(whole * 0.5,
                    lines("multiply of i32 [a=6] and the number 0.5, which is not whole", "multiply at " + here(),
                          "cast() the tensor to f32 first: a number takes the dtype of the tensor operand"));
  EXPECT_USER_ERROR(select(truth, whole, 0.5), "select of i32 [a=6] and the number 0.5, which is not whole", here());
  EXPECT_USER_ERROR(mean(whole), "multiply of i32 [] and the number 0.166667, which is not whole", here());
  EXPECT_EQ((whole * 2.0).dtype(), DType::kI32);
}

TEST_F(PointwiseErrors, NumbersFitTheDtypeBesideThem) {
  const Tensor byte = g.input("byte", {{"a", 6}}, DType::kU8), half = g.input("half", {{"a", 6}}, DType::kF16);
  EXPECT_USER_ERROR(
      maximum(byte, 300),
      lines("maximum of u8 [a=6] and the number 300, which is not within 0 to 255", "maximum at " + here(),
            "cast() the tensor to f32 first: a number takes the dtype of the tensor operand"));
  EXPECT_USER_ERROR(byte - 256, "subtract of u8 [a=6] and the number 256, which is not within 0 to 255", here());
  EXPECT_USER_ERROR(-1 * byte, "multiply of u8 [a=6] and the number -1, which is not within 0 to 255", here());
  EXPECT_USER_ERROR(whole + std::int64_t{3000000000}, "and the number 3000000000, which is not within -2147483648 to ");
  EXPECT_USER_ERROR(select(truth, whole, NAN), "select of i32 [a=6] and the number nan, which is not within", here());
  EXPECT_USER_ERROR(equal(whole, INFINITY), "equal of i32 [a=6] and the number inf, which is not within", here());
  EXPECT_USER_ERROR(pow(half, 1e5),
                    lines("pow of f16 [a=6] and the number 100000, which is too large for f16", "pow at " + here(),
                          "cast() the tensor to f64 first: a number takes the dtype of the tensor operand"));
  EXPECT_USER_ERROR(x * 1e39, "multiply of f32 [a=6 b=4] and the number 1e+39, which is too large for f32", here());
  EXPECT_EQ((byte + 255).dtype(), DType::kU8);
  EXPECT_EQ((x * INFINITY).dtype(), DType::kF32);
  EXPECT_EQ((x * 1e38).dtype(), DType::kF32);
}

TEST_F(PointwiseErrors, ConstantsFitTheirDtype) {
  EXPECT_USER_ERROR(constant(g, 2.7, {}, DType::kI32),
                    lines("a constant of i32 [] from the number 2.7, which is not whole", "constant at " + here(),
                          "give a number that i32 holds, or another dtype"));
  const std::vector<std::pair<Number, DType>> refused = {
      {300, DType::kU8},       {-1, DType::kU8},        {-1, DType::kU32},
      {0x1p32, DType::kU32},   {0x1p31, DType::kI32},   {NAN, DType::kI32},
      {INFINITY, DType::kI64}, {-INFINITY, DType::kU8}, {0x1p63, DType::kI64},
      {2, DType::kBool},       {1e39, DType::kF32},     {-1e39, DType::kBF16},
      {1e5, DType::kF16},      {0.5, DType::kBool},     {std::uint64_t{1} << 63, DType::kI64}};
  for (const auto& [number, dtype] : refused)
    EXPECT_USER_ERROR(constant(g, number, {}, dtype), str("a constant of ", dtype, " [] from the number "), here());
  const std::vector<std::pair<Number, DType>> held = {
      {255, DType::kU8},         {4294967295, DType::kU32}, {-2147483648.0, DType::kI32},
      {-0x1p63, DType::kI64},    {1, DType::kBool},         {NAN, DType::kF16},
      {-INFINITY, DType::kBF16}, {65504, DType::kF16},      {1e300, DType::kF64},
      {1e-300, DType::kF32},     {0.1, DType::kF32},        {std::numeric_limits<std::int64_t>::max(), DType::kI64}};
  for (const auto& [number, dtype] : held) EXPECT_EQ(constant(g, number, {}, dtype).dtype(), dtype) << number;
  EXPECT_USER_ERROR(g.variable("v", {{"a", 2}}, init::constant(2.5), {.stored = DType::kI32}),
                    "variable 'v' of i32 [a=2] cannot start from the number 2.5, which is not whole", here(),
                    "give a number that i32 holds, or store the variable in another dtype");
  EXPECT_USER_ERROR(g.variable("v", {{"a", 2}}, init::constant(1e39)),
                    "from the number 1e+39, which is too large for f32");
  EXPECT_USER_ERROR(iota(g, {"a", 300}, DType::kU8),
                    lines("iota of u8 along a=300 ends with the number 299, which is not within 0 to 255",
                          "iota at " + here(), "give a wider dtype, such as i32 or i64"));
}

TEST_F(PointwiseErrors, OneNameWithTwoSizes) {
  const Tensor y = g.input("y", {{"b", 5}});
  EXPECT_USER_ERROR(x * y, lines("multiply of [a=6 b=4] and [b=5]: dim 'b' has size 4 in the first and 5 in the second",
                                 "multiply at " + here(),
                                 "rename() one of the dims or slice() it: dims of one name must have one size"));
}

using DimErrors = OpsErrors;

TEST_F(DimErrors, NoSuchDim) {
  EXPECT_USER_ERROR(cumsum(x, c), lines("cumsum along dim c=2, which [a=6 b=4] does not have", "cumsum at " + here(),
                                        "name one of its dims: a, b"));
  EXPECT_USER_ERROR(shift(x, {"b", 5}, 1), lines("shift along dim b=5, which [a=6 b=4] does not have",
                                                 "shift at " + here(), "the dim has size 4 there"));
}

TEST_F(DimErrors, Broadcast) {
  EXPECT_USER_ERROR(broadcast(x, {b, c}),
                    lines("cannot broadcast [a=6 b=4] to [b=4 c=2]: dim a=6 is missing there", "broadcast at " + here(),
                          "give a shape with all dims of the tensor, with their sizes"));
  EXPECT_USER_ERROR(transpose(x, {b, c}), lines("cannot transpose [a=6 b=4] to [b=4 c=2]", "transpose at " + here(),
                                                "name the same dims in another order"));
}

TEST_F(DimErrors, Reduce) {
  EXPECT_USER_ERROR(reduce_max(x, {c}),
                    lines("cannot reduce dim c=2 of 'x' [a=6 b=4]: the tensor does not have it",
                          "reduce_max at " + here(), "name dims of the tensor, with their sizes: a=6, b=4"));
  EXPECT_USER_ERROR(reduce_sum_to(x, {c}), lines("cannot reduce [a=6 b=4] to [c=2]: it has no dim c=2",
                                                 "reduce at " + here(), "name only dims of the tensor"));
  EXPECT_USER_ERROR(reduce_any(x),
                    lines("reduce_any of 'x', which is f32, not bool", "reduce_any at " + here(),
                          "compare it first, for instance not_equal(x, 0)"),
                    "code:  reduce.not-bool");
}

TEST_F(DimErrors, Reshape) {
  EXPECT_USER_ERROR(reshape(x, {{"n", 25}}),
                    lines("cannot reshape [a=6 b=4] with 24 elements to [n=25] with 25", "reshape at " + here(),
                          "give a shape with the same number of elements"));
  EXPECT_USER_ERROR(rename(x, c, "d"), lines("rename of dim c=2, which 'x' [a=6 b=4] does not have",
                                             "rename at " + here(), "name a dim of the tensor, with its size"));
  EXPECT_USER_ERROR(split_dim(x, c, {{"c1", 1}, {"c2", 2}}), "split_dim of dim c=2, which 'x' [a=6 b=4] does not have",
                    "split_dim at " + here());
  EXPECT_USER_ERROR(merge_dims(x, {b, a}, "n"),
                    lines("merge_dims cannot merge [b=4 a=6], which do not follow each other in 'x' [a=6 b=4]",
                          "merge_dims at " + here(),
                          "name neighbouring dims in their order; transpose() the tensor first if need be"));
}

TEST_F(DimErrors, Einsum) {
  EXPECT_USER_ERROR(einsum({}, {a}),
                    lines("einsum was given no tensors", "einsum at " + here(), "give at least one tensor"));
  EXPECT_USER_ERROR(einsum_over({x}, {c}), lines("einsum_over sums dim c=2, which no input has",
                                                 "einsum_over at " + here(), "name dims of the inputs: a=6, b=4"));
  EXPECT_USER_ERROR(einsum({x}, {{"b", 9}}),
                    "einsum of [b=9] and [a=6 b=4]: dim 'b' has size 9 in the first and 4 in the second");
}

using PieceErrors = OpsErrors;

TEST_F(PieceErrors, Slice) {
  const std::string fix = "stay within 0 and 6, with at least one element";
  EXPECT_USER_ERROR(slice(x, a, 4, 3), lines("slice takes 3 elements from 4 on of dim a=6", "slice at " + here(), fix));
  EXPECT_USER_ERROR(slice(x, a, -1, 3), "slice takes 3 elements from -1 on of dim a=6");
  EXPECT_USER_ERROR(slice(x, a, 0, 0), "slice takes 0 elements from 0 on of dim a=6");
}

TEST_F(PieceErrors, Pad) {
  EXPECT_USER_ERROR(pad(x, a, -1, 2), lines("cannot pad dim a=6 by -1 before and 2 after", "pad at " + here(),
                                            "give padding of at least 0; use slice() to cut"));
}

TEST_F(PieceErrors, Concat) {
  const Tensor y = g.input("y", {a, c});
  EXPECT_USER_ERROR(concat({x, y}, "a"),
                    lines("cannot concat along 'a' of [a=6 b=4] and [a=6 c=2]", "concat at " + here(),
                          "give tensors with the same dims and sizes except 'a'"));
}

TEST_F(PieceErrors, Split) {
  EXPECT_USER_ERROR(split(x, a, 4), lines("cannot split dim a=6 into 4 parts", "split at " + here(),
                                          "give a number of parts that divides the size"));
  EXPECT_USER_ERROR(split(x, a, 0), "cannot split dim a=6 into 0 parts");
}

TEST_F(PieceErrors, DynamicSlice) {
  EXPECT_USER_ERROR(
      dynamic_slice(x, whole, a, 2),
      lines("dynamic_slice along 'a' of [a=6 b=4] cannot begin at i32 [a=6]", "dynamic_slice at " + here(),
            "give an i32 or i64 scalar, or such numbers with dims of: b=4"));
  EXPECT_USER_ERROR(dynamic_slice(x, reduce_sum(x), a, 2), "cannot begin at f32 []");
  EXPECT_USER_ERROR(dynamic_slice(x, index, a, 7), lines("dynamic_slice takes 7 elements of dim a=6",
                                                         "dynamic_slice at " + here(), "take between 1 and 6"));
}

TEST_F(PieceErrors, DynamicUpdate) {
  const Tensor piece = g.input("piece", {{"a", 7}, b});
  EXPECT_USER_ERROR(dynamic_update(x, piece, index, a),
                    lines("dynamic_update along 'a' of f32 [a=6 b=4] with f32 [a=7 b=4]", "dynamic_update at " + here(),
                          "give a piece with the tensor's dtype and dims, with no more of 'a'"));
}

TEST_F(PieceErrors, ScatterUpdate) {
  const Tensor updates = g.input("updates", {{"a", 7}, {"b", 5}}), few = g.input("few", {{"a", 2}, {"b", 3}});
  EXPECT_USER_ERROR(
      scatter_update(x, updates, whole, a),
      lines("scatter_update along 'a' of f32 [a=6 b=4] with f32 [a=7 b=5]", "scatter_update at " + here(),
            "give updates with the tensor's dtype and dims, other dims than 'a' no longer than the tensor's"));
  EXPECT_USER_ERROR(scatter_update(x, few, whole, a),
                    lines("scatter_update along 'a' of [a=6 b=4] cannot write [a=2 b=3] at i32 [a=6]",
                          "scatter_update at " + here(), "give i32 or i64 indices [a=2]"));
}

using IndexErrors = OpsErrors;

TEST_F(IndexErrors, Gather) {
  EXPECT_USER_ERROR(gather(x, x, b), lines("gather needs whole numbers as indices, not f32 [a=6 b=4]",
                                           "gather at " + here(), "cast() the indices to i32"));
  EXPECT_USER_ERROR(gather(x, whole, a), lines("gather along 'a' with indices [a=6]: the indices have that dim too",
                                               "gather at " + here(), "rename() the dim of the indices"));
}

TEST_F(IndexErrors, ScatterAdd) {
  const Tensor updates = g.input("updates", {b});
  EXPECT_USER_ERROR(scatter_add(updates, whole, c),
                    lines("scatter_add of updates [b=4] at indices [a=6]: the updates lack dim a=6",
                          "scatter_add at " + here(), "broadcast() the updates to the dims of the indices first"));
  EXPECT_USER_ERROR(scatter_add(x, whole, b), lines("scatter_add along 'b', which the updates [a=6 b=4] have already",
                                                    "scatter_add at " + here(), "rename() that dim of the updates"));
}

TEST_F(IndexErrors, TopK) {
  const std::string fix = "give k a new name and at most the size of the dim it picks from";
  EXPECT_USER_ERROR(top_k(x, a, {"k", 7}),
                    lines("cannot take top_k of dim a=6 of [a=6 b=4] into k=7", "top_k at " + here(), fix));
  EXPECT_USER_ERROR(top_k(x, a, {"b", 2}), "cannot take top_k of dim a=6 of [a=6 b=4] into b=2", fix);
}

TEST_F(IndexErrors, NthElements) {
  EXPECT_USER_ERROR(
      nth_largest(x, 6, a),
      lines("nth_largest of number 6 of dim a=6", "nth_largest at " + here(), "give a number from 0, the first, to 5"),
      "code:  nth.out-of-range");
  EXPECT_USER_ERROR(nth_smallest(x, -1, b), "nth_smallest of number -1 of dim b=4");
}

TEST_F(IndexErrors, Lines) {
  EXPECT_USER_ERROR(take_along(x, x, b), lines("take_along needs whole numbers as indices, not f32 [a=6 b=4]",
                                               "take_along at " + here(), "cast() the indices to i32"));
  EXPECT_USER_ERROR(take_along(x, whole, b),
                    lines("take_along along 'b' of [a=6 b=4] with indices [a=6]", "take_along at " + here(),
                          "the indices need dim 'b', and no dim that the tensor lacks"));
  const Tensor other = g.input("other", {a, c}, DType::kI32), few = g.input("few", {{"b", 3}}, DType::kI32);
  EXPECT_USER_ERROR(take_along(x, other, a), "take_along along 'a' of [a=6 b=4] with indices [a=6 c=2]");
  EXPECT_USER_ERROR(put_along(x, few, {"b", 9}),
                    lines("put_along 'b' of [a=6 b=4] with indices [b=3]", "put_along at " + here(),
                          "give one index along the dim for each element that is put"));
}

TEST_F(IndexErrors, DynamicShift) {
  EXPECT_USER_ERROR(dynamic_shift(x, whole, a),
                    lines("dynamic_shift cannot move along a=6 by i32 [a=6]", "dynamic_shift at " + here(),
                          "give whole offsets without dim 'a'"));
  EXPECT_USER_ERROR(dynamic_shift(x, g.input("f", {}), a), "dynamic_shift cannot move along a=6 by f32 []");
}

TEST_F(IndexErrors, SampleCategorical) {
  EXPECT_USER_ERROR(
      sample_categorical(x, b, {.temperature = -1}),
      lines("sample_categorical along b=4 of f32 [a=6 b=4] at temperature -1, keeping 0 and probability 1",
            "sample_categorical at " + here(),
            "give floats with that dim, a temperature of at least 0, a number to keep (0: all) and a "
            "probability above 0 (1: all)"));
  EXPECT_USER_ERROR(sample_categorical(x, c), "sample_categorical along c=2 of f32 [a=6 b=4]");
  EXPECT_USER_ERROR(sample_categorical(whole, a), "sample_categorical along a=6 of i32 [a=6]");
  EXPECT_USER_ERROR(sample_categorical(x, a, {.keep_top_k = -2}), "at temperature 1, keeping -2");
  EXPECT_USER_ERROR(sample_categorical(x, a, {.keep_top_p = 0}), "keeping 0 and probability 0");
  EXPECT_USER_ERROR(sample_categorical(x, a, {.keep_top_p = 1.5}), "keeping 0 and probability 1.5");
}

TEST_F(IndexErrors, CrossEntropy) {
  const Tensor targets = g.input("targets", {a});
  EXPECT_USER_ERROR(
      cross_entropy(x, targets, b),
      lines("cross_entropy targets 'targets' [a=6] are f32 without the class dim b=4", "cross_entropy at " + here(),
            "give whole class ids, or probabilities that have the class dim"));
}

using OtherErrors = OpsErrors;

TEST_F(OtherErrors, DropoutAtRunTime) {
  EXPECT_USER_ERROR(dropout(x, x), lines("dropout keeps elements with a probability that is f32 [a=6 b=4]",
                                         "dropout at " + here(), "give an f32 scalar"));
  EXPECT_USER_ERROR(dropout(x, index), "dropout keeps elements with a probability that is i32 []");
}

TEST_F(OtherErrors, Jitter) {
  EXPECT_USER_ERROR(multiplicative_jitter(x, -0.5),
                    lines("multiplicative_jitter cannot use epsilon -0.5", "multiplicative_jitter at " + here(),
                          "give a number of at least 0"));
}

TEST_F(OtherErrors, ClipActivationGradient) {
  EXPECT_USER_ERROR(clip_activation_gradient(x, 0),
                    lines("clip_activation_gradient cannot clip to a root mean square of 0",
                          "clip_activation_gradient at " + here(), "give a number above 0"));
}

TEST_F(OtherErrors, Dropout) {
  const std::string fix = "give a probability above 0 and at most 1";
  EXPECT_USER_ERROR(dropout(x, 0), lines("dropout keeps elements with probability 0", "dropout at " + here(), fix));
  EXPECT_USER_ERROR(dropout(x, 1.5), "dropout keeps elements with probability 1.5");
  EXPECT_USER_ERROR(dropout(x, 0.5, {c}),
                    lines("dropout draws along dim c=2, which 'x' [a=6 b=4] does not have", "dropout at " + here(),
                          "name dims of the tensor, with their sizes; all other dims share one draw"));
}

TEST_F(OtherErrors, RandomNumbers) {
  EXPECT_USER_ERROR(
      random_uniform(g, {a}, 2, 2),
      lines("random_uniform draws from [2, 2)", "random_uniform at " + here(), "give a lower end below the upper end"));
  EXPECT_USER_ERROR(random_bernoulli(g, {a}, 1.5),
                    lines("random_bernoulli gives 1 with probability 1.5", "random_bernoulli at " + here(),
                          "give a probability from 0 to 1"));
}

TEST_F(OtherErrors, ScalarMetric) {
  EXPECT_USER_ERROR(scalar_metric("loss", x),
                    lines("metric 'loss' of 'x' [a=6 b=4] is not a scalar", "scalar_metric at " + here(),
                          "reduce it first, for instance with mean()"));
  scalar_metric("loss", mean(x));
  EXPECT_USER_ERROR(scalar_metric("loss", reduce_sum(x)), "there is a metric 'loss' already, at ",
                    "give the metric another name");
}

TEST_F(OtherErrors, WithLayout) {
  EXPECT_USER_ERROR(with_layout(x, "c:model"),
                    lines("with_layout lays dim 'c', which [a=6 b=4] does not have", "with_layout at " + here(),
                          "name its dims: a, b; end the rule with '?' if the dim or axis may be absent"));
  EXPECT_USER_ERROR(with_layout(x, "a:"), lines("the layout has a word that lacks its axis: 'a:'",
                                                "with_layout at " + here() + ", layout \"a:\", column 3",
                                                "write dim:axis, as in \"batch:data heads,d_ff:model\""));
  EXPECT_EQ(with_layout(x, "c:model?").shape(), x.shape());
}

}  // namespace
}  // namespace weft::ops_errors_test
