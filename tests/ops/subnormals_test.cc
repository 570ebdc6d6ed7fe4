// What engines compute with subnormal floats. Ours follow IEEE 754. XLA's CPU compiler moves them unchanged, and computes with
// zeros in their place, in f32 and in f64: neither an operand nor a result of arithmetic is subnormal. scripts/check-xla runs
// this on the plugin; judge::Arithmetic::flushes is what it means for random graphs.
#include <gtest/gtest.h>

#include <limits>

#include "support/processes.h"

namespace weft::subnormals_test {
namespace {

bool flushes() { return test::device_under_test().name == "xla"; }

// Of x = {subnormal, the smallest normal number, 1}.
class Subnormals : public ::testing::TestWithParam<DType> {
 protected:
  static double smallest() {
    return GetParam() == DType::kF32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  }
  std::vector<double> of(const std::function<Tensor(const Tensor&)>& function) const {
    const Dim a{"a", 3};
    Graph g;
    const Tensor x = g.input("x", {a}, GetParam()), y = function(x);
    Array numbers({a}, GetParam());
    for (const std::int64_t i : {0, 1, 2}) numbers.set(i, i == 0 ? smallest() / 4 : i == 1 ? smallest() : 1.0);
    Session session(Mesh(), wire::threads(), test::device_under_test());
    const Array got = session.compile(g, Layout(), {.fetch = {y}}).run({{x, numbers}})[y];
    std::vector<double> all;
    for (std::int64_t i = 0; i < got.elements(); ++i) all.push_back(got.at(i));
    return all;
  }
  // The subnormal number, or what the device makes of it.
  static double subnormal() { return flushes() ? 0 : smallest() / 4; }
};

TEST_P(Subnormals, AreMovedUnchanged) {
  const Dim a{"a", 3};
  const std::vector<double> got = of([&](const Tensor& x) { return concat({x, x}, a.name); });
  EXPECT_EQ(got[0], smallest() / 4);
  EXPECT_EQ(got[3], smallest() / 4);
}

TEST_P(Subnormals, AreOperands) {
  EXPECT_EQ(of([](const Tensor& x) { return x * 8.0; })[0], flushes() ? 0 : 2 * smallest());
  EXPECT_EQ(of([](const Tensor& x) { return x + x; })[0], 2 * subnormal());
  EXPECT_EQ(of([](const Tensor& x) { return cast(greater(x, 0.0), DType::kF32); })[0], flushes() ? 0 : 1);
  EXPECT_EQ(of([](const Tensor& x) { return 1.0 / x; })[0],
            flushes() || GetParam() == DType::kF64 ? 1 / subnormal()
                                                   : static_cast<double>(1 / static_cast<float>(subnormal())));
}

TEST_P(Subnormals, AreResults) {
  EXPECT_EQ(of([](const Tensor& x) { return x * 0.5; })[1], flushes() ? 0 : smallest() / 2);
  const Dim a{"a", 3};
  EXPECT_EQ(of([&](const Tensor& x) { return reduce_sum(slice(x, a.name, 1, 1) * 0.5); })[0],
            flushes() ? 0 : smallest() / 2);
}

INSTANTIATE_TEST_SUITE_P(Floats, Subnormals, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& dtype) { return std::string(name_of(dtype.param)); });

}  // namespace
}  // namespace weft::subnormals_test
