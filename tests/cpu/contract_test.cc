// contract on the CPU: any dims in any order and with any strides, for any number of workers, gives the reference's numbers.
#include <algorithm>

#include "cpu/bodies.h"

namespace weft::test::contract_test {
namespace {

// Whole numbers small enough for their sums to be exact in every dtype of the products.
Held filled(Held out, std::mt19937& random) {
  for (std::int64_t i = 0; i < out.view.shape.elements(); ++i)
    set_number(out.view, i, static_cast<double>(random() % 5) - 2);
  return out;
}

Held random_operand(std::vector<Dim> dims, DType dtype, std::mt19937& random) {
  const Shape shape(dims);
  std::shuffle(dims.begin(), dims.end(), random);
  return filled(held(shape, dtype, Shape(dims), static_cast<std::int64_t>(random() % 3)), random);
}

struct Contraction {
  std::vector<Dim> x, y, out;
};

// Up to two dims of each role: in both and the result, in one and the result, summed.
Contraction random_contraction(std::mt19937& random) {
  static constexpr std::int64_t kSizes[] = {1, 2, 3, 8, 17, 40};
  Contraction c;
  const auto add = [&](const char* role, bool in_x, bool in_y, bool in_out) {
    for (std::uint32_t i = 0, count = random() % 3; i < count; ++i) {
      const Dim dim{str(role, i), kSizes[random() % 6]};
      if (in_x) c.x.push_back(dim);
      if (in_y) c.y.push_back(dim);
      if (in_out) c.out.push_back(dim);
    }
  };
  add("b", true, true, true);
  add("m", true, false, true);
  add("n", false, true, true);
  add("k", true, true, false);
  for (std::vector<Dim>* dims : {&c.x, &c.y, &c.out}) std::shuffle(dims->begin(), dims->end(), random);
  return c;
}

Held run(const Contraction& c, const Held& x, const Held& y, DType out, int workers, bool on_cpu) {
  Workers team(workers);
  Program program;
  for (const auto& dims : {c.x, c.y, c.out})
    program.values.push_back({"", DType::kF32, Shape(dims), Sharding{std::vector<Axes>(dims.size()), {}}});
  const Instr instr{Contract{}, {ValueId(0), ValueId(1)}, {ValueId(2)}, {}};
  const Held result = held(Shape(c.out), out, Shape(c.out));
  const KernelArgs args = kernel_args(program, instr, team, {x.view, y.view}, {result.view});
  const Kernel kernel = on_cpu ? cpu_kernel(args) : reference_kernel(args);
  kernel({});
  kernel({});
  return result;
}

void check_numbers(const Contraction& c, const Held& x, const Held& y, DType out) {
  const Held want = run(c, x, y, out, 1, false);
  for (int workers : {1, 2, 3}) {
    const Held got = run(c, x, y, out, workers, true);
    ASSERT_TRUE(got.memory->untouched_around());
    for (std::int64_t i = 0; i < got.view.shape.elements(); ++i)
      ASSERT_EQ(number(got.view, i), number(want.view, i)) << Shape(c.x) << " " << Shape(c.y) << " -> " << Shape(c.out)
                                                           << ", element " << i << ", " << workers << " workers";
  }
}

void check(unsigned seed, DType in, DType out) {
  SCOPED_TRACE(str("seed ", seed));
  std::mt19937 random(seed);
  const Contraction c = random_contraction(random);
  if (Shape(c.x).elements() > 200000 || Shape(c.y).elements() > 200000 || Shape(c.out).elements() > 200000) return;
  const Held x = random_operand(c.x, in, random), y = random_operand(c.y, in, random);
  check_numbers(c, x, y, out);
}

TEST(CpuContract, GivesTheNumbersOfTheReference) {
  for (unsigned seed = 0; seed < 300; ++seed) ASSERT_NO_FATAL_FAILURE(check(seed, DType::kF32, DType::kF32));
}

TEST(CpuContract, NarrowFactorsWideSums) {
  for (unsigned seed = 0; seed < 60; ++seed) ASSERT_NO_FATAL_FAILURE(check(seed, DType::kBF16, DType::kF32));
}

TEST(CpuContract, OtherDtypes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    ASSERT_NO_FATAL_FAILURE(check(seed, DType::kF64, DType::kF64));
    ASSERT_NO_FATAL_FAILURE(check(seed, DType::kI32, DType::kI32));
  }
}

// A gradient by weights, of which each worker has some columns.
void check_gradient(std::int64_t summed, std::int64_t rows, std::int64_t columns, DType in, DType out) {
  const Dim k{"k", summed}, m{"m", rows}, n{"n", columns};
  const Contraction c{{k, m}, {k, n}, {m, n}};
  std::mt19937 random(7);
  const Held x = filled(held(Shape(c.x), in, Shape(c.x)), random), y = filled(held(Shape(c.y), in, Shape(c.y)), random);
  check_numbers(c, x, y, out);
}

TEST(CpuContract, ProductsInPartsOfTheColumns) {
  for (const std::int64_t columns : {3072, 3000}) {
    ASSERT_NO_FATAL_FAILURE(check_gradient(200, 65, columns, DType::kF32, DType::kF32));
    ASSERT_NO_FATAL_FAILURE(check_gradient(200, 65, columns, DType::kBF16, DType::kF32));
    ASSERT_NO_FATAL_FAILURE(check_gradient(30, 65, columns, DType::kBF16, DType::kBF16));
  }
}

// Where the rows of y begin at multiples of 4 KiB.
TEST(CpuContract, ProductsOfPackedBlocks) {
  ASSERT_NO_FATAL_FAILURE(check_gradient(514, 512, 2048, DType::kF32, DType::kF32));
  ASSERT_NO_FATAL_FAILURE(check_gradient(30, 512, 1024, DType::kF32, DType::kF32));
}

}  // namespace
}  // namespace weft::test::contract_test
