// convolve and pool against the reference's kernels: windows of all kinds, in every direction, for any order of dims and
// any number of workers.
#include <functional>

#include "cpu/bodies.h"
#include "runtime/cpu/convolution_form.h"

namespace weft::test::convolve_test {
namespace {

using Make = std::function<Kernel(const KernelArgs&)>;

struct Window {
  std::int64_t elements, taps, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t places() const { return (elements + before + after - (taps - 1) * dilation - 1) / stride + 1; }
};

const std::vector<std::string> kSpace = {"d", "h", "w"};

std::vector<WindowDim> window_dims(const std::vector<Window>& windows) {
  std::vector<WindowDim> dims;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    dims.push_back({kSpace[i], "k" + kSpace[i], w.taps, w.stride, w.dilation, w.before});
  }
  return dims;
}

Shape with_space(const Shape& first, const std::vector<Window>& windows, const Shape& last,
                 std::int64_t (*size)(const Window&), const std::string& prefix = "") {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < windows.size(); ++i) dims.push_back({prefix + kSpace[i], size(windows[i])});
  return first.plus(Shape(dims)).plus(last);
}

Shape elements_of(const Shape& first, const std::vector<Window>& windows, const Shape& last) {
  return with_space(first, windows, last, [](const Window& w) { return w.elements; });
}
Shape places_of(const Shape& first, const std::vector<Window>& windows, const Shape& last) {
  return with_space(first, windows, last, [](const Window& w) { return w.places(); });
}
Shape taps_of(const Shape& first, const std::vector<Window>& windows, const Shape& last) {
  return with_space(
      first, windows, last, [](const Window& w) { return w.taps; }, "k");
}

Shape reversed(const Shape& shape) { return Shape(std::vector<Dim>(shape.dims().rbegin(), shape.dims().rend())); }

// Whole numbers between -most and most: few enough that every sum is exact, also in f32.
Held filled(const Shape& shape, DType dtype, const Shape& order, std::mt19937& random, int most, std::int64_t pad = 0) {
  Held out = held(shape, dtype, order, pad);
  std::uniform_int_distribution<int> whole(-most, most);
  for (std::int64_t i = 0; i < shape.elements(); ++i) set_number(out.view, i, whole(random));
  return out;
}

Held run(const Make& make, const Operation& operation, const std::vector<Held>& inputs, const Shape& shape, DType dtype,
         const Shape& order, int workers) {
  Workers team(workers, false);
  Program program;
  const Instr instr{operation, {}, {}, {}};
  std::vector<TensorView> in;
  for (const Held& input : inputs) in.push_back(input.view);
  Held out = held(shape, dtype, order);
  const KernelArgs args = kernel_args(program, instr, team, in, {out.view});
  const Kernel kernel = make(args);
  kernel({});
  kernel({});
  return out;
}

void expect_same(const Make& make, const Make& reference, const Operation& operation, const std::vector<Held>& inputs,
                 const Shape& shape, const Shape& order, double tolerance = 0) {
  const DType dtype = inputs[0].view.dtype;
  const Held want = run(reference, operation, inputs, shape, dtype, order, 1);
  for (int workers : {1, 2, 3}) {
    const Held got = run(make, operation, inputs, shape, dtype, order, workers);
    ASSERT_TRUE(same(got.view, want.view, tolerance)) << "workers " << workers;
    ASSERT_TRUE(got.memory->untouched_around());
  }
}

struct Case {
  std::vector<Window> windows;
  Shape batch, in, out, groups = {};
  DType dtype = DType::kF32;
  bool reverses = false;  // the operands lie the other way round
  std::int64_t pad = 0;
  int most = 5;
};

void expect_all_directions(const Case& c) {
  std::mt19937 random(1);
  const Shape x = elements_of(c.batch, c.windows, c.groups.plus(c.in)),
              y = places_of(c.batch, c.windows, c.groups.plus(c.out)),
              filter = taps_of({}, c.windows, c.groups.plus(c.in).plus(c.out));
  const auto order = [&](const Shape& shape) { return c.reverses ? reversed(shape) : shape; };
  const auto make = [&](const Shape& shape) { return filled(shape, c.dtype, order(shape), random, c.most, c.pad); };
  const Held vx = make(x), vy = make(y), vf = make(filter);
  Convolve operation{Direction::kForward, window_dims(c.windows)};
  SCOPED_TRACE(str("x ", x, " filter ", filter, " y ", y, " stride ", c.windows[0].stride, " dilation ",
                   c.windows[0].dilation, " before ", c.windows[0].before, c.reverses ? " reversed" : "", " pad ",
                   c.pad, c.dtype == DType::kBF16 ? " bf16" : ""));
  const double tolerance = c.dtype == DType::kBF16 ? 0.02 : 0;
  expect_same(cpu_kernel, reference_kernel, operation, {vx, vf}, y, order(y), tolerance);
  operation.direction = Direction::kToInput;
  expect_same(cpu_kernel, reference_kernel, operation, {vy, vf}, x, order(x), tolerance);
  operation.direction = Direction::kToFilter;
  expect_same(cpu_kernel, reference_kernel, operation, {vx, vy}, filter, order(filter), tolerance);
}

const Shape kBatch{{"n", 4}}, kIn{{"c", 8}}, kOut{{"o", 16}};

std::vector<Window> many_windows() {
  std::vector<Window> all;
  for (std::int64_t elements : {7, 12})
    for (std::int64_t taps : {1, 2, 3})
      for (std::int64_t stride : {1, 2, 3})
        for (std::int64_t dilation : {1, 2})
          for (const auto& [before, after] :
               {std::pair{0, 0}, {1, 1}, {0, 2}, {2, 0}, {-1, 1}, {1, -3}, {-2, -2}, {4, 5}})
            if (elements + before + after > (taps - 1) * dilation)
              all.push_back({elements, taps, stride, dilation, before, after});
  return all;
}

TEST(CpuConvolve, EveryWindowAlongOneDim) {
  for (const Window& w : many_windows())
    expect_all_directions({.windows = {w}, .batch = kBatch, .in = kIn, .out = kOut});
}

TEST(CpuConvolve, EveryWindowAlongTheFirstOfTwoDims) {
  for (const Window& w : many_windows())
    expect_all_directions({.windows = {w, {9, 3, 2, 1, 1, 0}}, .batch = kBatch, .in = kIn, .out = kOut});
}

TEST(CpuConvolve, ThreeDims) {
  const Window h{6, 2, 1, 1, 0, 1}, w{8, 3, 2, 1, 1, 1};
  for (const Window& d : {Window{5, 3, 1, 1, 1, 1}, Window{5, 2, 2, 2, 0, 2}, Window{6, 3, 1, 1, -1, 0}})
    expect_all_directions({.windows = {d, h, w}, .batch = {{"n", 2}}, .in = {{"c", 4}}, .out = {{"o", 18}}});
}

TEST(CpuConvolve, ChannelsAndBatchesOfEverySize) {
  const std::vector<Window> windows = {{10, 3, 1, 1, 1, 1}, {11, 3, 1, 1, 1, 1}};
  for (std::int64_t batch : {1, 2, 3, 5})
    for (const auto& [in, out] : {std::pair{1, 1}, {1, 20}, {3, 64}, {17, 5}, {64, 48}, {33, 1}})
      for (bool reverses : {false, true})
        for (std::int64_t pad : {0, 3})
          expect_all_directions({.windows = windows,
                                 .batch = {{"n", batch}},
                                 .in = {{"c", in}},
                                 .out = {{"o", out}},
                                 .reverses = reverses,
                                 .pad = pad,
                                 .most = 3});
}

// Dims of one role are one if they lie like one, else the reference takes over; no dims at all are a size of 1.
TEST(CpuConvolve, SeveralDimsOrNoneOfARole) {
  const std::vector<Window> windows = {{7, 3, 1, 1, 1, 1}, {9, 2, 2, 1, 0, 0}};
  const Shape two{{"n", 2}, {"m", 3}}, in{{"c", 3}, {"e", 4}}, out{{"o", 2}, {"p", 8}}, groups{{"g", 2}};
  for (bool reverses : {false, true}) {
    expect_all_directions({.windows = windows, .batch = two, .in = in, .out = out, .reverses = reverses});
    expect_all_directions({.windows = windows, .batch = {}, .in = {}, .out = {}, .reverses = reverses});
    expect_all_directions({.windows = windows, .batch = kBatch, .in = {}, .out = kOut, .reverses = reverses});
    expect_all_directions(
        {.windows = windows, .batch = kBatch, .in = {}, .out = {}, .groups = {{"g", 24}}, .reverses = reverses});
    expect_all_directions(
        {.windows = windows, .batch = kBatch, .in = {}, .out = {{"o", 3}}, .groups = {{"g", 5}}, .reverses = reverses});
    expect_all_directions(
        {.windows = windows, .batch = two, .in = kIn, .out = kOut, .groups = groups, .reverses = reverses});
  }
}

TEST(CpuConvolve, BF16AndOtherTypes) {
  for (DType dtype : {DType::kBF16, DType::kF64, DType::kI32})
    expect_all_directions({.windows = {{9, 3, 1, 1, 1, 1}, {12, 3, 2, 1, 0, 1}},
                           .batch = {{"n", 4}},
                           .in = {{"c", 32}},
                           .out = {{"o", 32}},
                           .dtype = dtype});
}

// What is meant to be fast is: the form exists, and oneDNN has more than its own reference for it.
TEST(CpuConvolve, CommonShapesAreFast) {
  const Window same{28, 3, 1, 1, 1, 1}, half{28, 3, 2, 1, 0, 1}, point{28, 1}, cropped{28, 3, 1, 1, -1, -2};
  for (const Window& w : {same, half, point, cropped})
    for (bool reverses : {false, true})
      for (Direction direction : {Direction::kForward, Direction::kToInput, Direction::kToFilter}) {
        const std::vector<Window> windows = {w, w};
        const Shape shapes[] = {elements_of(kBatch, windows, kIn), places_of(kBatch, windows, kOut),
                                taps_of({}, windows, kIn.plus(kOut))};
        std::vector<TensorView> views;
        for (const Shape& s : shapes) views.push_back(held(s, DType::kF32, reverses ? reversed(s) : s).view);
        const auto form = cpu::convolution_form({direction, window_dims(windows)}, views[0], views[1], views[2]);
        ASSERT_TRUE(form);
        EXPECT_TRUE(cpu::Convolution::make(form->shape)) << name_of(direction) << ", reversed " << reverses;
      }
}

// Where oneDNN has bf16 at all, also for the workers' f32 sums of a filter's gradient.
TEST(CpuConvolve, SumsOfBF16AreFastToo) {
  cpu::ConvolutionShape shape;
  shape.batch = 2;
  shape.in = shape.out = 32;
  shape.space = {{.elements = 28, .places = 28, .taps = 3, .before = 1, .x = 32, .y = 32, .filter = 32 * 32}};
  shape.x_batch = shape.y_batch = 28 * 32;
  shape.x_channel = shape.y_channel = shape.filter_out = 1;
  shape.filter_in = 32;
  shape.x = shape.y = shape.filter = DType::kBF16;
  if (!cpu::Convolution::make(shape)) GTEST_SKIP() << "no bf16 on this machine";
  shape.direction = Direction::kToFilter;
  shape.filter = DType::kF32;
  EXPECT_TRUE(cpu::Convolution::make(shape));
}

// Fractions: close to the reference, and the same bits again and again for a number of workers.
TEST(CpuConvolve, BitsDependOnWorkersAlone) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> real(-1, 1);
  const std::vector<Window> windows = {{14, 3, 1, 1, 1, 1}, {14, 3, 1, 1, 1, 1}};
  const Shape x = elements_of({{"n", 6}}, windows, kIn), y = places_of({{"n", 6}}, windows, kOut),
              filter = taps_of({}, windows, kIn.plus(kOut));
  const auto make = [&](const Shape& shape) {
    Held out = held(shape, DType::kF32, shape);
    for (std::int64_t i = 0; i < shape.elements(); ++i) set_number(out.view, i, real(random));
    return out;
  };
  const Held vx = make(x), vy = make(y), vf = make(filter);
  const auto check = [&](Direction direction, const std::vector<Held>& inputs, const Shape& out) {
    const Convolve operation{direction, window_dims(windows)};
    const Held want = run(reference_kernel, operation, inputs, out, DType::kF32, out, 1);
    for (int workers : {1, 2, 3}) {
      const Held first = run(cpu_kernel, operation, inputs, out, DType::kF32, out, workers);
      EXPECT_TRUE(same(first.view, want.view, 2e-5)) << name_of(direction);
      for (int again = 0; again < 5; ++again)
        EXPECT_TRUE(same(run(cpu_kernel, operation, inputs, out, DType::kF32, out, workers).view, first.view));
    }
  };
  check(Direction::kForward, {vx, vf}, y);
  check(Direction::kToInput, {vy, vf}, x);
  check(Direction::kToFilter, {vx, vy}, filter);
}

void expect_all_pools(const std::vector<Window>& windows, const Shape& batch, const Shape& channels, DType dtype,
                      bool reverses) {
  std::mt19937 random(2);
  const Shape x = elements_of(batch, windows, channels), y = places_of(batch, windows, channels);
  const auto order = [&](const Shape& shape) { return reverses ? reversed(shape) : shape; };
  const auto make = [&](const Shape& shape) { return filled(shape, dtype, order(shape), random, 3, reverses ? 0 : 2); };
  const Held vx = make(x), vy = make(y), like_x = make(x), like_y = make(y);
  SCOPED_TRACE(str("x ", x, " y ", y, " taps ", windows[0].taps, " stride ", windows[0].stride, " before ",
                   windows[0].before, reverses ? " reversed" : ""));
  const auto expect = [&](PoolKind kind, Direction direction, const std::vector<Held>& inputs, const Shape& out) {
    SCOPED_TRACE(str(name_of(kind), " ", name_of(direction), " of ", inputs.size()));
    expect_same(cpu_kernel, reference_kernel, Pool{kind, direction, window_dims(windows)}, inputs, out, order(out));
  };
  expect(PoolKind::kMax, Direction::kForward, {vx}, y);
  expect(PoolKind::kSum, Direction::kForward, {vx}, y);
  expect(PoolKind::kSum, Direction::kToInput, {vy}, x);
  expect(PoolKind::kWinners, Direction::kForward, {vx, vy}, y);
  expect(PoolKind::kWinners, Direction::kForward, {vx, vy, like_x}, y);
  expect(PoolKind::kWinners, Direction::kToInput, {vx, vy, like_y}, x);
}

TEST(CpuPool, EveryWindow) {
  for (const Window& w : many_windows())
    for (bool reverses : {false, true}) {
      expect_all_pools({w}, {{"n", 2}}, {{"c", 37}}, DType::kF32, reverses);
      expect_all_pools({w, {9, 3, 2, 1, 1, 0}}, {{"n", 3}}, {{"c", 20}}, DType::kF32, reverses);
    }
}

TEST(CpuPool, OtherTypesAndThreeDims) {
  const std::vector<Window> windows = {{5, 2, 2}, {6, 3, 1, 1, 1, 1}, {7, 2, 2, 2, 1, 0}};
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32})
    for (bool reverses : {false, true}) {
      expect_all_pools(windows, {{"n", 2}}, {{"c", 9}}, dtype, reverses);
      expect_all_pools(windows, {}, {}, dtype, reverses);
    }
}

TEST(CpuPool, NaNAndNothing) {
  const std::vector<Window> windows = {{8, 2, 2, 1, 4, 0}};  // the first two windows meet nothing
  const Shape x = elements_of({}, windows, {{"c", 19}}), y = places_of({}, windows, {{"c", 19}});
  std::mt19937 random(3);
  const Held vx = filled(x, DType::kF32, x, random, 3);
  for (std::int64_t i : {0, 5, 40, 150}) set_number(vx.view, i, std::nan(""));
  for (int e = 0; e < 2; ++e) set_number(vx.view, 2 * 19 + 19 * e + 3, -INFINITY);
  expect_same(cpu_kernel, reference_kernel, Pool{PoolKind::kMax, Direction::kForward, window_dims(windows)}, {vx}, y,
              y);
}

// Many meetings: the sum of f32 stays close to that of doubles.
TEST(CpuPool, LargeWindowsAreSummedWell) {
  const std::vector<Window> windows = {{56, 56}, {57, 57}};
  const Shape x = elements_of({}, windows, {{"c", 24}}), y = places_of({}, windows, {{"c", 24}});
  const Held vx = held(x, DType::kF32, x);
  std::mt19937 random(4);
  std::uniform_real_distribution<double> real(0, 1);
  for (std::int64_t i = 0; i < x.elements(); ++i) set_number(vx.view, i, real(random));
  expect_same(cpu_kernel, reference_kernel, Pool{PoolKind::kSum, Direction::kForward, window_dims(windows)}, {vx}, y, y,
              2e-6);
}

}  // namespace
}  // namespace weft::test::convolve_test
