// copy, concat, take, put, gather, scatter_add, random, scan, sort, reduce: bit for bit what the reference gives, for any
// strides and any number of workers.
#include <functional>

#include "cpu/bodies.h"

namespace weft::test::move_test {
namespace {

using Make = std::function<Kernel(const KernelArgs&)>;

struct Case {
  Operation operation;
  std::vector<Held> inputs;
  std::vector<std::pair<Shape, DType>> outputs;
  double tolerance = 0;
};

void fill(const Held& x, std::mt19937& random, double least, double most) {
  std::uniform_real_distribution<double> real(least, most);
  for (std::int64_t i = 0; i < x.view.shape.elements(); ++i) set_number(x.view, i, std::floor(real(random)));
}

Held filled(const Shape& shape, DType dtype, const Shape& order, std::mt19937& random, double least = -50,
            double most = 50, std::int64_t pad = 0) {
  Held out = held(shape, dtype, order, pad);
  fill(out, random, least, most);
  return out;
}

void expect_same(const Case& c, const Make& make, const Make& reference) {
  Program program;
  Instr instr{c.operation, {}, {}, {}};
  const auto add = [&](const Shape& shape, DType dtype) {
    return program.values.add({"", dtype, shape, Sharding{std::vector<Axes>(shape.rank()), {}}});
  };
  std::vector<TensorView> in;
  for (const Held& input : c.inputs) {
    instr.inputs.push_back(add(input.view.shape, input.view.dtype));
    in.push_back(input.view);
  }
  for (const auto& [shape, dtype] : c.outputs) instr.outputs.push_back(add(shape, dtype));
  const auto run = [&](const Make& maker, int workers) {
    Workers team(workers);
    std::vector<Held> out;
    std::vector<TensorView> views;
    for (const auto& [shape, dtype] : c.outputs) {
      out.push_back(held(shape, dtype, shape));
      views.push_back(out.back().view);
    }
    const KernelArgs args = kernel_args(program, instr, team, in, views);
    const Kernel kernel = maker(args);
    StepState state;
    state.seed = 7;
    state.step = 3;
    kernel(state);
    kernel(state);
    return out;
  };
  const std::vector<Held> want = run(reference, 1);
  for (int workers : {1, 2, 3}) {
    const std::vector<Held> got = run(make, workers);
    for (std::size_t k = 0; k < got.size(); ++k) {
      ASSERT_TRUE(same(got[k].view, want[k].view, c.tolerance)) << "output " << k << ", workers " << workers;
      ASSERT_TRUE(got[k].memory->untouched_around());
    }
  }
}

const std::vector<DType> kDTypes = {DType::kF32, DType::kBF16, DType::kI64, DType::kU8, DType::kI32, DType::kF64};

TEST(CpuMoves, CopiesInEveryOrder) {
  std::mt19937 random(1);
  for (const auto& sizes :
       std::vector<std::array<std::int64_t, 3>>{{3, 5, 7}, {64, 33, 40}, {1, 130, 70}, {200, 1, 300}}) {
    std::vector<Dim> dims = {{"a", sizes[0]}, {"b", sizes[1]}, {"c", sizes[2]}};
    std::vector<int> order = {0, 1, 2};
    do {
      const std::vector<Dim> memory = {dims[static_cast<std::size_t>(order[0])],
                                       dims[static_cast<std::size_t>(order[1])],
                                       dims[static_cast<std::size_t>(order[2])]};
      for (DType dtype : kDTypes)
        expect_same({Copy{}, {filled(Shape(dims), dtype, Shape(memory), random, 0, 100, 2)}, {{Shape(dims), dtype}}},
                    cpu_kernel, reference_kernel);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(CpuMoves, Concat) {
  std::mt19937 random(2);
  for (const char* dim : {"a", "b"}) {
    const Shape x{{"a", 30}, {"b", 500}};
    const Shape y = x.resized(dim, 17), both = x.resized(dim, x.size_of(dim) + 17);
    const Shape turned{{"b", y.size_of("b")}, {"a", y.size_of("a")}};
    expect_same({Concat{dim},
                 {filled(x, DType::kF32, x, random), filled(y, DType::kF32, turned, random)},
                 {{both, DType::kF32}}},
                cpu_kernel, reference_kernel);
  }
}

TEST(CpuMoves, TakeAndPutAtAnyOffset) {
  std::mt19937 random(3);
  const Shape x{{"a", 40}, {"b", 300}};
  for (const char* dim : {"a", "b"})
    for (std::int64_t offset : {-400, -3, 0, 5, 38, 290, 400}) {
      const Shape piece = x.resized(dim, 12);
      Held at = held({}, DType::kI32, {});
      set_number(at.view, 0, static_cast<double>(offset));
      expect_same({DynamicSlice{dim}, {filled(x, DType::kF32, x, random), at}, {{piece, DType::kF32}}}, cpu_kernel,
                  reference_kernel);
      expect_same({DynamicUpdate{dim},
                   {filled(x, DType::kF32, x, random), filled(piece, DType::kF32, piece, random), at},
                   {{x, DType::kF32}}},
                  cpu_kernel, reference_kernel);
    }
}

TEST(CpuMoves, GatherRowsAndElements) {
  std::mt19937 random(4);
  const Shape table{{"v", 50}, {"d", 33}}, turned{{"d", 33}, {"v", 50}};
  for (const Shape& order : {table, turned})
    for (const Shape& ids : {Shape{{"b", 7}, {"l", 90}}, Shape{{"d", 33}, {"l", 20}}, Shape{}}) {
      const Shape out = ids.plus({{"d", 33}});
      for (DType dtype : {DType::kF32, DType::kBF16, DType::kI64})
        expect_same({Gather{"v"},
                     {filled(table, dtype, order, random), filled(ids, DType::kI32, ids, random, -5, 55)},
                     {{out, dtype}}},
                    cpu_kernel, reference_kernel);
    }
}

TEST(CpuMoves, ScatterAddsEveryUpdateOnce) {
  std::mt19937 random(5);
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32}) {
    const Shape ids{{"b", 11}, {"l", 40}};
    const Shape table{{"v", 60}, {"d", 64}}, updates{{"b", 11}, {"l", 40}, {"d", 64}};
    expect_same({ScatterAdd{"v"},
                 {filled(ids, DType::kI32, ids, random, -5, 65), filled(updates, dtype, updates, random, -9, 9)},
                 {{table, dtype}}},
                cpu_kernel, reference_kernel);
    const Shape grouped{{"b", 11}, {"v", 60}, {"d", 64}};  // a table for every b
    expect_same({ScatterAdd{"v"},
                 {filled(ids, DType::kI64, ids, random, -5, 65), filled(updates, dtype, updates, random, -9, 9)},
                 {{grouped, dtype}}},
                cpu_kernel, reference_kernel);
    const Shape narrow{{"v", 60}, {"d", 3}}, few{{"l", 40}, {"d", 3}};  // updates repeated along b
    expect_same({ScatterAdd{"v"},
                 {filled(ids, DType::kI32, ids, random, 0, 60), filled(few, dtype, few, random, -9, 9)},
                 {{narrow, dtype}}},
                cpu_kernel, reference_kernel);
    const Shape wide{{"v", 60}, {"d", 32}}, wide_few{{"l", 40}, {"d", 32}};
    expect_same({ScatterAdd{"v"},
                 {filled(ids, DType::kI32, ids, random, 0, 60), filled(wide_few, dtype, wide_few, random, -9, 9)},
                 {{wide, dtype}}},
                cpu_kernel, reference_kernel);
  }
}

TEST(CpuMoves, RandomNumbersAreTheSame) {
  for (Distribution distribution : {Distribution::kUniform, Distribution::kNormal, Distribution::kTruncatedNormal,
                                    Distribution::kBernoulli, Distribution::kBits})
    for (const Shape& shape :
         {Shape{}, Shape{{"a", 5}}, Shape{{"a", 33}, {"b", 211}}, Shape{{"a", 2}, {"b", 9}, {"c", 301}}}) {
      const DType dtype = distribution == Distribution::kBits ? DType::kU32 : DType::kF32;
      expect_same({Random{distribution, 0.3, 0.9, 12345}, {}, {{shape, dtype}}}, cpu_kernel, reference_kernel);
    }
}

TEST(CpuMoves, ScanAndSort) {
  std::mt19937 random(6);
  const Shape x{{"a", 70}, {"b", 90}};
  for (const char* dim : {"a", "b"})
    for (bool reverse : {false, true}) {
      expect_same({Scan{dim, Reduce::kSum, reverse, reverse}, {filled(x, DType::kF32, x, random)}, {{x, DType::kF32}}},
                  cpu_kernel, reference_kernel);
      const Shape first = x.renamed(dim, "k").resized("k", 9);
      expect_same(
          {Sort{dim, "k", reverse}, {filled(x, DType::kF32, x, random)}, {{first, DType::kF32}, {first, DType::kI32}}},
          cpu_kernel, reference_kernel);
    }
}

TEST(CpuMoves, ReduceAnyDims) {
  std::mt19937 random(7);
  const Shape x{{"a", 9}, {"b", 31}, {"c", 47}}, turned{{"c", 47}, {"a", 9}, {"b", 31}};
  for (const Shape& out :
       {Shape{{"a", 9}, {"c", 47}}, Shape{{"b", 31}}, Shape{{"c", 47}, {"b", 31}}, Shape{{"c", 47}}, Shape{}, x})
    for (DType dtype : {DType::kF32, DType::kI32, DType::kBF16, DType::kF64})
      for (Reduce how : {Reduce::kSum, Reduce::kMax, Reduce::kMin})
        expect_same({ReduceDims{how}, {filled(x, dtype, turned, random, -3, 4)}, {{out, dtype}}}, cpu_kernel,
                    reference_kernel);
}

}  // namespace
}  // namespace weft::test::move_test
