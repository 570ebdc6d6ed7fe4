// Dims of a tensor by Dim and by name: both give the same op.
#include <gtest/gtest.h>

#include <functional>

#include "base/str.h"
#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::dim_ref_test {
namespace {

struct Named {
  const char* what;
  std::function<Tensor(const DimRef& a, const DimRef& b)> call;
};

class DimRefTest : public ::testing::Test {
 protected:
  const Dim a_{"a", 4}, b_{"b", 6};
  Graph g_;
  const Tensor x_ = g_.input("x", {a_, b_});
  const Tensor i_ = g_.input("i", {a_}, DType::kI32);

  Feeds feeds() const {
    Array x({a_, b_}, DType::kF32), i({a_}, DType::kI32);
    for (std::int64_t k = 0; k < 24; ++k) x.set(k, k * 7 % 11);
    for (std::int64_t k = 0; k < 4; ++k) i.set(k, (k * 5) % 6);
    return {{x_, x}, {i_, i}};
  }

  // By Dim and by name: the same shape and the same bits.
  void expect_same(const std::vector<Named>& functions) {
    for (const Named& f : functions) {
      const Tensor by_dim = f.call(a_, b_), by_name = f.call("a", std::string("b"));
      EXPECT_EQ(by_dim.shape(), by_name.shape()) << f.what;
      EXPECT_EQ(eval(by_dim, feeds()).values(), eval(by_name, feeds()).values()) << f.what;
    }
  }
};

TEST_F(DimRefTest, ReductionsTakeBoth) {
  expect_same({
      {"reduce_sum", [&](auto& a, auto& b) { return reduce_sum(x_, {a, b}); }},
      {"mean", [&](auto&, auto& b) { return mean(x_, {b}); }},
      {"reduce_max", [&](auto& a, auto&) { return reduce_max(x_, {a}); }},
      {"reduce_sum_to", [&](auto&, auto& b) { return reduce_sum_to(x_, {b}); }},
      {"einsum_over", [&](auto& a, auto&) { return einsum_over({x_, x_}, {a}); }},
      {"reduce_logsumexp", [&](auto&, auto& b) { return reduce_logsumexp(x_, b); }},
      {"softmax", [&](auto& a, auto&) { return softmax(x_, a); }},
      {"softmax with a logit", [&](auto&, auto& b) { return softmax(x_, b, 1.0); }},
      {"cross_entropy", [&](auto&, auto& b) { return cross_entropy(x_, i_, b); }},
      {"cumsum", [&](auto&, auto& b) { return cumsum(x_, b); }},
      {"cummax", [&](auto&, auto& b) { return cummax(x_, b); }},
  });
}

TEST_F(DimRefTest, IndicesTakeBoth) {
  expect_same({
      {"gather", [&](auto&, auto& b) { return gather(x_, i_, b); }},
      {"scatter_add", [&](auto& a, auto&) { return scatter_add(x_, i_, Dim{"c", 6}, {a}); }},
      {"sort", [&](auto&, auto& b) { return sort(x_, b).values; }},
      {"top_k", [&](auto&, auto& b) { return top_k(x_, b, {"k", 2}).values; }},
      {"argmax", [&](auto&, auto& b) { return argmax(x_, b); }},
      {"nth_smallest", [&](auto& a, auto&) { return nth_smallest(x_, 1, a); }},
      {"dynamic_slice", [&](auto&, auto& b) { return dynamic_slice(x_, constant(g_, 2, {}, DType::kI32), b, 3); }},
  });
}

TEST_F(DimRefTest, MovementTakesBoth) {
  expect_same({
      {"transpose", [&](auto& a, auto& b) { return transpose(x_, {b, a}); }},
      {"rename", [&](auto& a, auto&) { return rename(x_, a, "c"); }},
      {"split_dim", [&](auto&, auto& b) { return split_dim(x_, b, {{"c", 2}, {"d", 3}}); }},
      {"merge_dims", [&](auto& a, auto& b) { return merge_dims(x_, {a, b}, "c"); }},
      {"concat", [&](auto& a, auto&) { return concat({x_, x_}, a); }},
      {"split", [&](auto&, auto& b) { return split(x_, b, 2)[1]; }},
      {"unstack", [&](auto& a, auto&) { return unstack(x_, a)[3]; }},
      {"slice", [&](auto&, auto& b) { return slice(x_, b, 1, 2); }},
      {"pad", [&](auto&, auto& b) { return pad(x_, b, 1, 2); }},
      {"shift", [&](auto& a, auto&) { return shift(x_, a, 1, true); }},
      {"dynamic_shift", [&](auto&, auto& b) { return dynamic_shift(x_, i_, b); }},
      {"microbatch",
       [&](auto& a, auto&) {
         return microbatch({x_}, a, 2, [](const Tensors& part) { return Tensors{square(part[0])}; })[0];
       }},
  });
}

TEST_F(DimRefTest, LayersTakeBoth) {
  Graph by_dim, by_name;
  const Tensor x1 = by_dim.input("x", {a_, b_}), x2 = by_name.input("x", {a_, b_});
  const auto built = [&](const Tensor& x, const DimRef& b) {
    const Tensor normed = nn::rms_norm(nn::layer_norm(x, b), b);
    return nn::dense(normed, {{"c", 3}}, {.reduced = {b}});
  };
  const Array value = feeds()[0].second;
  EXPECT_EQ(eval(built(x1, b_), {{x1, value}}).values(), eval(built(x2, "b"), {{x2, value}}).values());
}

TEST_F(DimRefTest, ANameThatTheTensorLacksIsRefused) {
  const Tensor x = rename(x_, "b", "length");
  const std::string line = str("dim_ref_test.cc:", __LINE__ + 1);
  EXPECT_USER_ERROR(softmax(x, "lenght"), " [a=4 length=6] has no dim 'lenght'", line, "did you mean 'length'?");
  EXPECT_USER_ERROR(reduce_sum(x_, {"a", "width"}), "'x' [a=4 b=6] has no dim 'width'", "name one of its dims: a, b");
  EXPECT_USER_ERROR(einsum_over({x_, i_}, {"width"}), "the tensors have no dim 'width'", "name one of its dims: a, b",
                    "code:  tensor.unknown-dim");
  EXPECT_USER_ERROR(softmax(x_, Dim{"b", 7}), "cannot reduce dim b=7 of 'x' [a=4 b=6]");
}

}  // namespace
}  // namespace weft::dim_ref_test
