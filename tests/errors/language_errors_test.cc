// What a user reads when shapes, arrays, scopes, variables or gradients are wrong.
#include <limits>

#include "errors/lines.h"

namespace weft::language_errors_test {
namespace {

using test::here;
using test::lines;

TEST(LanguageErrors, NamesOfDims) {
  EXPECT_USER_ERROR(Shape({{"batch", 4}, {"d model", 8}}),
                    lines("'d model' cannot be the name of a dim", "shape [batch=4 d model=8]",
                          "give it at least one character, and only letters, digits, '_', '.' and '/'"));
  EXPECT_USER_ERROR(Shape({{"", 4}}),
                    lines("'' cannot be the name of a dim", "shape [=4]",
                          "give it at least one character, and only letters, digits, '_', '.' and '/'"));
}

TEST(LanguageErrors, SizesOfDims) {
  EXPECT_USER_ERROR(Shape({{"batch", 0}}),
                    lines("dim 'batch' has size 0", "shape [batch=0]", "give it a size of at least 1"),
                    "code:  dim.size-too-small");
  EXPECT_USER_ERROR(Shape({{"batch", -3}}), "dim 'batch' has size -3");
}

// 2^62 and 2^32 times 2^32 are beyond what 64 bits count.
TEST(LanguageErrors, TooManyElements) {
  EXPECT_USER_ERROR(Shape({{"heads", std::int64_t{1} << 62}}),
                    lines("dim 'heads' has size 4611686018427387904", "shape [heads=4611686018427387904]",
                          "give it at most 17592186044416"),
                    "code:  dim.size-too-large");
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_USER_ERROR(
      Shape({{"q", big}, {"r", big}}).elements(),
      lines("a tensor [q=4294967296 r=4294967296] has 1.84467e+19 elements", "shape [q=4294967296 r=4294967296]",
            "make its dims smaller: a tensor has at most 17592186044416 elements"),
      "code:  shape.too-many-elements");
  EXPECT_USER_ERROR(Array({{"q", big}, {"r", big}}, DType::kF32), "a tensor [q=4294967296 r=4294967296] has");
  Graph g;
  EXPECT_USER_ERROR(g.input("x", {{"q", big}, {"r", big}}),
                    lines("input gives [q=4294967296 r=4294967296], a tensor of 1.84467e+19 elements",
                          "input at " + here(), "make its dims smaller: a tensor has at most 17592186044416 elements"));
  EXPECT_USER_ERROR(g.variable("v", {{"q", big}, {"r", 4097}}), "variable gives [q=4294967296 r=4097], a tensor of");
  EXPECT_USER_ERROR(constant(g, 1, {{"q", big}, {"r", big}}), "constant gives [q=4294967296 r=4294967296]", here());
  const Tensor x = g.input("y", {{"q", big}}), z = g.input("z", {{"r", big}});
  EXPECT_USER_ERROR(reshape(x, {{"q", big}, {"r", big}}), "reshape gives [q=4294967296 r=4294967296]", here());
  EXPECT_USER_ERROR(broadcast(x, {{"q", big}, {"r", big}}), "broadcast gives [q=4294967296 r=4294967296]", here());
  EXPECT_USER_ERROR(einsum({x, z}, {{"q", big}, {"r", big}}), "einsum gives [q=4294967296 r=4294967296]", here());
  EXPECT_USER_ERROR(x + z, "add gives [q=4294967296 r=4294967296]", here());
  EXPECT_USER_ERROR(one_hot(x, {"r", big}), "equal gives [q=4294967296 r=4294967296]", here());
  EXPECT_USER_ERROR(loop(g, 1 << 20, {},
                         [&](const Tensor&, const Tensors&) {
                           return LoopStep{{}, {}, {x}, {}};
                         }),
                    "loop gives [#trips0=1048576 q=4294967296]", here());
  // The work of a contraction may be more than 64 bits count.
  const Tensor a = g.input("a", {{"i", 1 << 22}, {"j", 1 << 22}}), b = g.input("b", {{"j", 1 << 22}, {"k", 1 << 22}});
  EXPECT_EQ(einsum({a, b}).shape().elements(), std::int64_t{1} << 44);
}

TEST(LanguageErrors, NumbersAtTheEndsOf64Bits) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                         least = std::numeric_limits<std::int64_t>::min();
  Graph g;
  const Dim a{"a", 6};
  const Tensor x = g.input("x", {a});
  EXPECT_USER_ERROR(slice(x, a, most, 5),
                    lines("slice takes 5 elements from 9223372036854775807 on of dim a=6", "slice at " + here(),
                          "stay within 0 and 6, with at least one element"));
  EXPECT_USER_ERROR(slice(x, a, 1, most), "slice takes 9223372036854775807 elements from 1 on of dim a=6", here());
  EXPECT_USER_ERROR(pad(x, a, most, 1), lines("cannot pad dim a=6 by 9223372036854775807 before and 1 after",
                                              "pad at " + here(), "give at most 17592186044416"));
  EXPECT_USER_ERROR(pad(x, a, 1, most), "cannot pad dim a=6 by 1 before and 9223372036854775807 after", here());
  for (const std::int64_t by : {most, least})
    EXPECT_EQ(eval(shift(x, a, by), {{x, Array({a}, std::vector<float>(6, 1))}}).values(), std::vector<double>(6, 0));
  EXPECT_TRUE(gradients({reduce_sum(shift(x, a, least, true))}, {x})[0]);
  EXPECT_USER_ERROR(dynamic_slice(x, constant(g, 0, {}, DType::kI64), a, most), "takes 9223372036854775807 elements");
  EXPECT_USER_ERROR(top_k(x, a, {"k", most}), "cannot take top_k of dim a=6 of [a=6] into k=9223372036854775807",
                    here());
  EXPECT_USER_ERROR(nth_largest(x, most, a), "nth_largest of number 9223372036854775807", here());
  EXPECT_USER_ERROR(loop(g, most, {}, [](const Tensor&, const Tensors&) { return LoopStep{}; }),
                    lines("a loop cannot run 9223372036854775807 trips", "loop at " + here(),
                          "give at most 1048576, or put a loop around it"));
  const Tensor image = g.input("image", {{"batch", 2}, a, {"c", 2}});
  const Tensor filter = g.input("filter", {{"taps", 3}, {"c", 2}, {"o", 2}});
  EXPECT_USER_ERROR(conv1d(image, filter, {.strides = {most}}), "convolution along dim a=6 with 3 taps, stride 9223",
                    here());
  EXPECT_USER_ERROR(conv1d(image, filter, {.dilations = {most}}), "convolution along dim a=6 with 3 taps", here());
  const Tensor back = g.input("back", {{"taps", 3}, {"o", 2}, {"c", 2}});
  EXPECT_USER_ERROR(conv1d_transpose(image, back, {.strides = {most}}), "9223372036854775807");
  const Tensor blocks = g.input("blocks", {{"n", 3}, {"s", 2}});
  EXPECT_USER_ERROR(halo_exchange(blocks, {"n", 3}, {"s", 2}, most), "by 9223372036854775807 between blocks n=3 of s=2",
                    "a halo from 0 to the size of all blocks");
}

TEST(LanguageErrors, NamesThatTheLibraryKeeps) {
  Graph g;
  const Dim a{"a", 6};
  const Tensor x = g.input("x", {a});
  EXPECT_USER_ERROR(
      g.input("y", {{"#k", 4}}),
      lines("input gives [#k=4], but dim names that begin with '#' are reserved for the library", "input at " + here(),
            "give dim '#k' another name; if a result of a function has it, rename() it first"));
  EXPECT_USER_ERROR(g.variable("v", {{"#from", 4}}), "variable gives [#from=4], but dim names that begin with '#'");
  EXPECT_USER_ERROR(rename(x, a, "#from"), "reshape gives [#from=6], but dim names", here());
  EXPECT_USER_ERROR(split_dim(x, a, {{"b", 2}, {"#c", 3}}), "reshape gives [b=2 #c=3], but dim names", here());
  EXPECT_USER_ERROR(top_k(x, a, {"#k", 2}), "top_k gives [#k=2], but dim names", here());
  EXPECT_USER_ERROR(stack({x, x}, "#row"),
                    lines("stack along '#row', but dim names that begin with '#' are reserved for the library",
                          "stack at " + here(), "give the new dim another name"));
  EXPECT_USER_ERROR(broadcast(x, {a, {"#n", 2}}), "broadcast gives [a=6 #n=2], but dim names", here());
  EXPECT_USER_ERROR(iota(g, {"#n", 2}), "iota gives [#n=2], but dim names", here());
  EXPECT_USER_ERROR(one_hot(cast(x, DType::kI32), {"#n", 2}), "iota gives [#n=2], but dim names", here());
  EXPECT_USER_ERROR(einsum({x}, {a, {"#n", 2}}), "einsum gives [a=6 #n=2], but dim names", here());
  const Tensor y = custom_gradient(
      {x}, [](const Tensors& in) { return in; },
      [](const Tensors& in, const Tensors&, const Tensors&) {
        return Tensors{rename(in[0], {"a", 6}, "#b")};
      })[0];
  EXPECT_USER_ERROR(gradients({reduce_sum(y)}, {x}), "reshape gives [#b=6], but dim names");
  EXPECT_EQ(g.input("z", {{"a#b", 4}}).shape()[0].name, "a#b");
}

TEST(LanguageErrors, RepeatedDim) {
  EXPECT_USER_ERROR(Shape({{"length", 4}, {"heads", 2}, {"length", 5}}),
                    lines("dim 'length' occurs twice in one shape", "shape [length=4 heads=2 length=5]",
                          "rename one of the two dims with rename(): a name may occur once in a tensor"));
}

TEST(LanguageErrors, ArrayOfAnotherCount) {
  EXPECT_USER_ERROR(Array({{"a", 2}, {"b", 3}}, std::vector<float>(5)),
                    lines("an array of shape [a=2 b=3] needs 6 values, but 5 were given", "Array",
                          "give as many values as the shape has elements, in row-major order"));
  EXPECT_USER_ERROR(Array({{"a", 2}}, std::vector<std::int32_t>(3)), "[a=2] needs 2 values, but 3 were given");
  EXPECT_USER_ERROR(Array({{"a", 2}}, std::vector<double>(1), DType::kF64), "[a=2] needs 2 values, but 1 were given");
}

TEST(LanguageErrors, ItemOfManyElements) {
  EXPECT_USER_ERROR(Array({{"a", 2}}, DType::kF32).item(),
                    lines("item() was called on an array of shape [a=2], which has 2 elements", "Array::item",
                          "reduce it to one element first, or read it with at(index)"));
}

TEST(LanguageErrors, TransposeOfAnArray) {
  EXPECT_USER_ERROR(Array({{"a", 2}, {"b", 3}}, DType::kF32).transposed({{"b", 3}, {"c", 2}}),
                    lines("an array of shape [a=2 b=3] cannot be put in the order [b=3 c=2]", "Array::transposed",
                          "name the same dims with the same sizes"));
}

TEST(LanguageErrors, ComparisonOfUnlikeArrays) {
  EXPECT_USER_ERROR(relative_difference(Array({{"a", 2}}, DType::kF32), Array({{"a", 3}}, DType::kF32)),
                    lines("arrays of shapes [a=2] and [a=3] cannot be compared", "relative_difference",
                          "compare arrays of one shape"));
}

TEST(LanguageErrors, ScopeWithoutName) {
  const Graph g;
  EXPECT_USER_ERROR(g.scope(""), lines("a scope needs a name", "Graph::scope", "give a name such as \"layer_0\""));
}

TEST(LanguageErrors, EmptyTensor) {
  Graph g;
  const Tensor x = g.input("x", {{"a", 4}}), none;
  EXPECT_USER_ERROR(none.shape(),
                    lines("the shape of an empty tensor was asked for", "Tensor::shape",
                          "test the tensor first; gradients() returns an empty Tensor for an x that no y depends on"));
  EXPECT_USER_ERROR(none.dtype(), "the dtype of an empty tensor was asked for");
  EXPECT_USER_ERROR(none.name(), "the name of an empty tensor was asked for");
  EXPECT_USER_ERROR(none.site(), "the site of an empty tensor was asked for");
  EXPECT_USER_ERROR(none.named("y"), "the name of an empty tensor was asked for");
  EXPECT_USER_ERROR(einsum({x, none}, Shape{}),
                    lines("einsum was given an empty tensor", "einsum at " + here(),
                          "leave it out; gradients() returns an empty Tensor for an x that no y depends on"));
  EXPECT_USER_ERROR(exp(none), lines("exp was given no tensor", "exp at " + here(),
                                     "give at least one tensor of a graph (an empty Tensor has no value)"));
  EXPECT_USER_ERROR(concat({}, "a"), "concat was given no tensor", here());
  EXPECT_USER_ERROR(select(none, 1.0, 0.0), "constant was given no tensor", here());
}

TEST(LanguageErrors, TensorsOfTwoGraphs) {
  Graph g, h;
  const Tensor x = g.input("x", {{"a", 4}}), y = h.input("y", {{"a", 4}});
  EXPECT_USER_ERROR(x + y, lines("add was given tensors of two graphs ('y' belongs to another graph)",
                                 "add at " + here(), "build all operands in one Graph"));
}

TEST(LanguageErrors, TwoInputsOfOneName) {
  Graph g;
  const auto scope = g.scope("encoder");
  g.input("x", {});
  EXPECT_USER_ERROR(g.input("x", {}), lines("there is an input 'encoder/x' already", here(),
                                            "give the input another name, or make it in another scope"));
}

TEST(LanguageErrors, TwoVariablesOfOneName) {
  Graph g;
  const auto scope = g.scope("encoder");
  g.variable("w", {});
  EXPECT_USER_ERROR(g.variable("w", {}),
                    lines("there is a variable 'encoder/w' already", here(),
                          "give it another name or scope; to share weights, pass the first Tensor on"));
}

TEST(LanguageErrors, FirstValuesOfAnotherShape) {
  Graph g;
  EXPECT_USER_ERROR(g.variable("w", {{"a", 4}}, init::values(Array({{"a", 3}}, DType::kF32))),
                    lines("variable 'w' [a=4] cannot start from values of shape [a=3]", here(),
                          "give values with the variable's dims"));
}

TEST(LanguageErrors, NotAVariable) {
  Graph g;
  const Tensor x = g.input("x", {{"a", 4}});
  EXPECT_USER_ERROR(assign(x, x), lines("'x' is not a variable", here(), "give a tensor that Graph::variable() made"));
  EXPECT_USER_ERROR(assign_sub(Tensor(), x), "an empty tensor is not a variable", here());
}

TEST(LanguageErrors, AssignOfAnotherShape) {
  Graph g;
  const Tensor w = g.variable("w", {{"a", 4}});
  const Tensor x = g.input("x", {{"b", 4}});
  EXPECT_USER_ERROR(assign(w, x),
                    lines("assign of f32 [b=4] to variable 'w', which is f32 [a=4]", "assign at " + here(),
                          "give a value with the dims and the slice dtype of the variable"));
}

class GradientErrors : public ::testing::Test {
 protected:
  Graph g, other;
  Tensor x = g.input("x", {{"a", 4}}), y = exp(x).named("y");
  Tensor whole = g.input("whole", {{"a", 4}}, DType::kI32), far = other.input("far", {{"a", 4}});
};

TEST_F(GradientErrors, OfNothing) {
  EXPECT_USER_ERROR(gradients({}, {x}), lines("gradients() was given no y", here(), "give at least one y"));
}

TEST_F(GradientErrors, OfEmptyTensorsAndOtherGraphs) {
  const std::string fix = "give tensors of one graph; leave out empty results of gradients()";
  EXPECT_USER_ERROR(gradients({y, Tensor()}, {x}), lines("gradients() was given a y that is empty", here(), fix));
  EXPECT_USER_ERROR(gradients({Tensor()}, {x}), "gradients() was given a y that is empty");
  EXPECT_USER_ERROR(gradients({y}, {x, far}),
                    lines("gradients() was given an x that is of another graph: 'far'", here(), fix));
  EXPECT_USER_ERROR(gradients({y}, {x}, {far}), "gradients() was given a dy that is of another graph: 'far'");
}

TEST_F(GradientErrors, WithAnotherNumberOfDys) {
  EXPECT_USER_ERROR(gradients({y}, {x}, {x, x}),
                    lines("gradients() was given 1 ys and 2 dys", here(),
                          "give one dy for each y, or no dys at all: they default to ones"));
}

TEST_F(GradientErrors, OfWholeNumbers) {
  EXPECT_USER_ERROR(gradients({whole}, {x}),
                    lines("gradients() of 'whole', which is i32", here(),
                          "cast it to a floating-point dtype first: only these have gradients"));
}

TEST_F(GradientErrors, WithADyOfAnotherShape) {
  EXPECT_USER_ERROR(gradients({y}, {x}, {reduce_sum(x)}),
                    lines("dy [] does not fit y 'y' [a=4]", here(), "give a dy with the dims of its y"));
}

TEST_F(GradientErrors, ThroughAnOpWithoutOne) {
  const Tensor w = g.variable("w", {{"a", 4}});
  const auto [changed, line] = std::pair(assign(w, x), here());
  EXPECT_USER_ERROR(
      gradients({exp(changed)}, {x}),
      lines("the gradient goes through 'assign', but assign has no gradient: it changes state", "assign at " + line,
            "put stop_gradient() before it, or define its gradient with custom_gradient()"));
}

TEST_F(GradientErrors, FromACustomBackward) {
  const auto forward = [](const Tensors& in) { return Tensors{in[0] * 2.0}; };
  const auto too_many = [](const Tensors&, const Tensors&, const Tensors& dy) { return Tensors{dy[0], dy[0]}; };
  const auto [twice, line] = std::pair(custom_gradient({x}, forward, too_many)[0], here());
  EXPECT_USER_ERROR(gradients({twice}, {x}),
                    lines("custom_gradient's backward returned 2 gradients for 1 inputs", "custom_gradient at " + line,
                          "return one gradient for each input; an empty Tensor if there is none"));
  const auto wrong = [](const Tensors&, const Tensors&, const Tensors& dy) { return Tensors{reduce_sum(dy[0])}; };
  const auto [again, next] = std::pair(custom_gradient({x}, forward, wrong)[0], here());
  EXPECT_USER_ERROR(gradients({again}, {x}),
                    lines("custom_gradient's backward returned a gradient [] for input 'x' [a=4]",
                          "custom_gradient at " + next, "return a gradient with the dims of its input"));
}

TEST(LanguageErrors, ValueAndGradNeedsAScalarOfItsTensors) {
  Graph g;
  const Tensor x = g.input("x", {{"a", 3}}), y = g.input("y", {{"a", 3}});
  EXPECT_USER_ERROR(value_and_grad([](const Tensors& xs) { return xs[0] * 2.0; }, {x}),
                    "value_and_grad() was given a function whose result is '", "[a=3]",
                    "return a scalar: reduce_sum() or mean() of the tensor");
  EXPECT_USER_ERROR(value_and_grad([](const Tensors&) { return Tensor(); }, {x}), "whose result is empty");
  EXPECT_USER_ERROR(value_and_grad([](const Tensors& xs) { return reduce_sum(xs[0]); }, {x, y}),
                    "value_and_grad() of a function that does not depend on 'y'",
                    "leave out this tensor, or use it in the function");
}

TEST(ArrayErrors, IndexThatNoElementHas) {
  Array array({{"a", 4}}, DType::kF32);
  for (const std::int64_t index : {std::int64_t{-1}, std::int64_t{4}}) {
    const std::string what = "element " + std::to_string(index) + " of an array of shape [a=4], which has 4 elements";
    const std::string fix = "give a row-major index from 0 to one less than the number of elements";
    EXPECT_USER_ERROR(array.at(index), what, fix);
    EXPECT_USER_ERROR(array.number(index), what, fix);
    EXPECT_USER_ERROR(array.set(index, 1), what, fix);
  }
}

TEST(ArrayErrors, MoreThanTheMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program at such an allocation";
#endif
  EXPECT_RUN_ERROR(Array({{"big", std::int64_t{1} << 44}}, DType::kF64),
                   "this machine does not give the 140737488355328 bytes of an array of shape [big=17592186044416]",
                   "use a smaller array; a session holds large values in shards");
}

}  // namespace
}  // namespace weft::language_errors_test
