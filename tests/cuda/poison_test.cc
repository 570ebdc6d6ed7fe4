// What WEFT_CUDA_POISON overwrites; and that programs do not read it.
#include "runtime/cuda/poison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "runtime/cuda/open.h"
#include "weft/weft.h"

namespace weft::cuda_poison_test {
namespace {

TEST(CudaPoison, FillsWhatIsDead) {
  MemoryPlan plan;
  plan.storages = {{.first = 0, .last = 2, .bytes = 256, .offset = 0},
                   {.first = 1, .last = 2, .bytes = 256, .offset = 256},
                   {.first = 2, .last = 5, .bytes = 512, .offset = 512},
                   {.first = 3, .last = 4, .bytes = 256, .offset = 0}};
  const auto offsets = [&](int before, int position) {
    std::vector<std::int64_t> found;
    for (const Storage& storage : cuda::dead_storages(plan, before, position, 5)) found.push_back(storage.offset);
    return found;
  };
  using Offsets = std::vector<std::int64_t>;
  EXPECT_EQ(offsets(-1, 1), Offsets{});
  EXPECT_EQ(offsets(1, 2), (Offsets{0, 256}));
  EXPECT_EQ(offsets(2, 3), Offsets{});
  EXPECT_EQ(offsets(1, 3), Offsets{256});  // two instructions at once: the later one has written over the first storage
  EXPECT_EQ(offsets(3, 4), Offsets{0});    // what lives to the end stays
}

TEST(CudaPoison, IsAskedForByTheEnvironment) {
  EXPECT_FALSE(cuda::wants_poison());
  setenv("WEFT_CUDA_POISON", "1", 1);
  EXPECT_TRUE(cuda::wants_poison());
  setenv("WEFT_CUDA_POISON", "0", 1);
  EXPECT_FALSE(cuda::wants_poison());
  unsetenv("WEFT_CUDA_POISON");
}

std::vector<double> train() {
  Graph g;
  const Dim batch{"batch", 32}, width{"width", 48}, classes{"classes", 24};
  const Tensor x = g.input("x", {batch, width});
  const Tensor w = g.variable("w", {width, classes}, init::normal(0.3));
  const Tensor p = softmax(tanh(einsum({x, w}, {batch, classes})), classes);
  const Tensor loss = reduce_sum(p * log(p));
  Session session(Mesh(), wire::threads(), device::cuda());
  Executable step = session.compile(g, Layout(), {.fetch = {loss}, .update = optim::sgd(loss, g.variables(), 0.01)});
  Array values({batch, width}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i % 7) * 0.1 - 0.3);
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(step.run({{x, values}}).scalar(loss));
  return losses;
}

TEST(GpuPoison, ChangesNoResult) {
  if (!cuda_library().has_card) GTEST_SKIP() << cuda_library().found;
  const std::vector<double> want = train();
  setenv("WEFT_CUDA_POISON", "1", 1);
  const std::vector<double> got = train();
  unsetenv("WEFT_CUDA_POISON");
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace weft::cuda_poison_test
