// maps/<what>: sweeps of the CPU engine in GB/s of the memory they must touch, beside a plain copy by the same workers.
// Roof: the copy. Each line is the median of alternating rounds; the last column compares the best ones.
// weft_bench_maps [workers] [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "program/fusible.h"
#include "runtime/cpu/kernels.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/workers.h"

using namespace weft;

namespace {

struct Bench {
  std::string name;
  double bytes = 0;
  std::function<void()> run;
  std::vector<double> seconds = {};
};

// A body, the memory of its operands and results, and its kernel.
class Case {
 public:
  ValueId value(const Shape& shape, DType dtype = DType::kF32) {
    return program_.values.add({"", dtype, shape, Sharding{std::vector<Axes>(shape.rank()), {}}});
  }
  ValueId input(const Shape& shape, DType dtype = DType::kF32) {
    const ValueId id = value(shape, dtype);
    program_.inputs.push_back({"", id});
    return id;
  }
  ValueId map(const std::vector<ValueId>& inputs, const std::vector<MapNode>& nodes, const Shape& shape) {
    Map work;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      work.nodes.push_back({.op = "input", .dtype = of(inputs[i]).dtype, .input = static_cast<int>(i)});
    work.nodes.insert(work.nodes.end(), nodes.begin(), nodes.end());
    const ValueId out = value(shape, work.nodes.back().dtype);
    program_.body.push_back({work, inputs, {out}, {}});
    return out;
  }
  ValueId reduce(ValueId x, const Shape& shape, Reduce how = Reduce::kSum) {
    const ValueId out = value(shape, of(x).dtype);
    program_.body.push_back({ReduceDims{how}, {x}, {out}, {}});
    return out;
  }
  // Over operand `over`, if that is not negative.
  void output(ValueId id, int over = -1) {
    program_.outputs.push_back({"", id});
    over_.push_back(over);
  }

  Bench bench(const std::string& name, Workers& workers) {
    double bytes = 0;
    std::vector<TensorView> in, out;
    for (const ProgramInput& input : program_.inputs) in.push_back(place(of(input.value), bytes));
    for (std::size_t k = 0; k < over_.size(); ++k) {
      out.push_back(over_[k] < 0 ? place(of(program_.outputs[k].value), bytes)
                                 : in[static_cast<std::size_t>(over_[k])]);
      if (over_[k] >= 0)
        bytes += static_cast<double>(out.back().shape.elements()) * static_cast<double>(size_of(out.back().dtype));
    }
    instr_.operation = Fused{Body(program_)};
    Kernel kernel = cpu::kernels().make({.program = program_,
                                         .instr = instr_,
                                         .inputs = in,
                                         .outputs = out,
                                         .processor = ProcessorId(0),
                                         .label = {},
                                         .group = {},
                                         .workers = &workers,
                                         .workspace = {}});
    return {name, bytes, [kernel] { kernel({}); }};
  }

 private:
  const Value& of(ValueId id) const { return program_.values[id]; }
  TensorView place(const Value& value, double& bytes) {
    const auto count = static_cast<std::size_t>(value.shape.elements());
    memory_.emplace_back(count * size_of(value.dtype) + 64);
    bytes += static_cast<double>(count * size_of(value.dtype));
    if (value.dtype == DType::kF32)
      for (std::size_t i = 0; i < count; ++i)
        reinterpret_cast<float*>(memory_.back().data())[i] = static_cast<float>(i % 97) / 97;
    return dense_view(memory_.back().data(), value.dtype, value.shape);
  }

  Program program_;
  Instr instr_;
  std::vector<int> over_;
  std::vector<std::vector<std::byte>> memory_;
};

MapNode literal(double x) { return {.op = "literal", .literal = x}; }
MapNode node(const std::string& op, std::vector<int> args, DType dtype = DType::kF32) {
  return {.op = op, .args = std::move(args), .dtype = dtype};
}

void adam(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}};
  const ValueId w = c.input(full), g = c.input(full), m = c.input(full), v = c.input(full), rate = c.input({});
  const ValueId m2 = c.map(
      {m, g}, {literal(0.9), literal(0.1), node("multiply", {0, 2}), node("multiply", {1, 3}), node("add", {4, 5})},
      full);
  const ValueId v2 = c.map({v, g},
                           {literal(0.999), literal(0.001), node("multiply", {0, 2}), node("square", {1}),
                            node("multiply", {5, 3}), node("add", {4, 6})},
                           full);
  const ValueId w2 = c.map({w, m2, v2, rate},
                           {node("sqrt", {2}), literal(1e-6), node("add", {4, 5}), node("divide", {1, 6}),
                            node("multiply", {7, 3}), node("subtract", {0, 8})},
                           full);
  c.output(m2, 2);
  c.output(v2, 3);
  c.output(w2, 0);
}

void norm_forward(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}}, row{{"r", rows}}, col{{"c", cols}};
  const ValueId x = c.input(full), more = c.input(full), scale = c.input(col), bias = c.input(col);
  const double part = 1.0 / static_cast<double>(cols);
  const ValueId sum = c.map({x, more}, {node("add", {0, 1})}, full);
  const ValueId mean = c.map({c.reduce(sum, row)}, {literal(part), node("multiply", {0, 1})}, row);
  const ValueId centered = c.map({sum, mean}, {node("subtract", {0, 1})}, full);
  const ValueId squares = c.reduce(c.map({centered}, {node("square", {0})}, full), row);
  const ValueId factor =
      c.map({squares},
            {literal(part), node("multiply", {0, 1}), literal(1e-6), node("add", {2, 3}), node("rsqrt", {4})}, row);
  const ValueId out = c.map({centered, factor, scale, bias},
                            {node("multiply", {0, 1}), node("multiply", {4, 2}), node("add", {5, 3})}, full);
  c.output(sum, 0);
  c.output(out);
  c.output(mean);
  c.output(factor);
}

void norm_backward(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}}, row{{"r", rows}}, col{{"c", cols}};
  const ValueId dy = c.input(full), x = c.input(full), scale = c.input(col), mean = c.input(row), factor = c.input(row);
  const double part = 1.0 / static_cast<double>(cols);
  const ValueId normed = c.map({x, mean, factor}, {node("subtract", {0, 1}), node("multiply", {3, 2})}, full);
  const ValueId g = c.map({dy, scale}, {node("multiply", {0, 1})}, full);
  const ValueId s1 = c.reduce(g, row), s2 = c.reduce(c.map({g, normed}, {node("multiply", {0, 1})}, full), row);
  const ValueId dx = c.map({g, normed, s1, s2, factor},
                           {literal(part), node("multiply", {2, 5}), node("multiply", {3, 5}), node("multiply", {1, 7}),
                            node("subtract", {0, 6}), node("subtract", {9, 8}), node("multiply", {10, 4})},
                           full);
  c.output(dx, 0);
  c.output(c.reduce(c.map({dy, normed}, {node("multiply", {0, 1})}, full), col));
  c.output(c.reduce(dy, col));
}

void softmax(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}}, row{{"r", rows}};
  const ValueId x = c.input(full);
  const ValueId most = c.reduce(x, row, Reduce::kMax);
  const ValueId e = c.map({x, most}, {node("subtract", {0, 1}), node("exp", {2})}, full);
  const ValueId sum = c.map({c.reduce(e, row)}, {node("reciprocal", {0})}, row);
  c.output(c.map({e, sum}, {node("multiply", {0, 1})}, full), 0);
}

void cross_entropy(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}}, row{{"r", rows}};
  const ValueId x = c.input(full), target = c.input(row, DType::kI32);
  const ValueId most = c.reduce(x, row, Reduce::kMax);
  const ValueId e = c.map({x, most}, {node("subtract", {0, 1}), node("exp", {2})}, full);
  const ValueId sum = c.reduce(e, row);
  c.output(c.map({e, sum, target},
                 {{.op = "index", .dtype = DType::kI32, .dim = "c"},
                  node("equal", {3, 2}, DType::kBool),
                  node("cast", {4}),
                  node("divide", {0, 1}),
                  node("subtract", {6, 5}),
                  literal(1.0 / 2048),
                  node("multiply", {7, 8})},
                 full),
           0);
  c.output(c.map({sum, most}, {node("log", {0}), node("add", {2, 1})}, row));
}

void gelu(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}};
  const ValueId x = c.input(full);
  c.output(c.map({x},
                 {literal(0.7071067811865476), node("multiply", {0, 1}), node("erf", {2}), literal(1),
                  node("add", {3, 4}), literal(0.5), node("multiply", {5, 6}), node("multiply", {7, 0})},
                 full));
}

void relu_mask(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}};
  const ValueId y = c.input(full), dy = c.input(full);
  c.output(c.map({y, dy}, {literal(0), node("greater", {0, 2}, DType::kBool), node("select", {3, 1, 2})}, full), 1);
}

void to_bf16(Case& c, std::int64_t rows, std::int64_t cols) {
  const Shape full{{"r", rows}, {"c", cols}};
  c.output(c.map({c.input(full)}, {node("cast", {0}, DType::kBF16)}, full));
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  const int size = count > 1 ? std::atoi(words[1]) : 2;
  const int rounds = count > 2 ? std::atoi(words[2]) : 15;
  Workers workers(size);
  std::vector<Bench> benches;
  std::vector<std::unique_ptr<Case>> cases;
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  std::vector<std::byte> from(kBytes, std::byte{1}), to(kBytes, std::byte{2});
  benches.push_back({"copy", 2.0 * kBytes, [&] {
                       workers.run([&](int worker) {
                         const Share share = share_of(kBytes, worker, workers.size(), 4096);
                         std::memcpy(to.data() + share.begin, from.data() + share.begin,
                                     static_cast<std::size_t>(share.end - share.begin));
                       });
                     }});
  const char* only = count > 3 ? words[3] : "";
  const auto add = [&](const std::string& name, void (*make)(Case&, std::int64_t, std::int64_t), std::int64_t rows,
                       std::int64_t cols) {
    if (name.find(only) == std::string::npos) return;
    cases.push_back(std::make_unique<Case>());
    make(*cases.back(), rows, cols);
    benches.push_back(cases.back()->bench(name + " " + std::to_string(rows) + "x" + std::to_string(cols), workers));
  };
  add("adam", adam, 8192, 1024);
  add("adam", adam, 64, 256);
  add("norm", norm_forward, 2048, 256);
  add("norm", norm_forward, 2048, 512);
  add("norm back", norm_backward, 2048, 256);
  add("norm back", norm_backward, 2048, 512);
  add("softmax", softmax, 2048, 8192);
  add("softmax", softmax, 16384, 128);
  add("cross entropy", cross_entropy, 2048, 8192);
  add("gelu", gelu, 2048, 2048);
  add("relu mask", relu_mask, 2048, 2048);
  add("to bf16", to_bf16, 2048, 2048);
  // A matrix turned: read along its columns.
  constexpr std::int64_t kSide = 4096;
  Program turning;
  turning.values = {{"", DType::kF32, {{"r", kSide}, {"c", kSide}}, {}},
                    {"", DType::kF32, {{"c", kSide}, {"r", kSide}}, {}}};
  const Instr turn{Copy{}, {ValueId(0)}, {ValueId(1)}, {}};
  const Kernel transpose =
      cpu::kernels().make({.program = turning,
                           .instr = turn,
                           .inputs = {dense_view(from.data(), DType::kF32, turning.values[ValueId(0)].shape)},
                           .outputs = {dense_view(to.data(), DType::kF32, turning.values[ValueId(1)].shape)},
                           .processor = ProcessorId(0),
                           .label = {},
                           .group = {},
                           .workers = &workers,
                           .workspace = {}});
  if (std::string("transpose").find(only) != std::string::npos)
    benches.push_back({"transpose 4096x4096", 2.0 * kBytes, [&] { transpose({}); }});
  for (int round = 0; round < rounds; ++round)
    for (Bench& bench : benches) {
      const auto begin = std::chrono::steady_clock::now();
      bench.run();
      bench.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  std::printf("%-24s %10s %10s %10s %8s\n", "maps", "us", "GB/s", "of copy", "best");
  const auto best = [](const Bench& bench) { return *std::min_element(bench.seconds.begin(), bench.seconds.end()); };
  const double best_roof = benches[0].bytes / best(benches[0]);
  std::printf("best copy: %.1f GB/s\n", best_roof * 1e-9);
  const double roof = benches[0].bytes / median(benches[0].seconds);
  for (const Bench& bench : benches) {
    const double seconds = median(bench.seconds);
    std::printf("%-24s %10.1f %10.1f %9.0f%% %7.0f%%\n", bench.name.c_str(), seconds * 1e6,
                bench.bytes / seconds * 1e-9, 100 * bench.bytes / seconds / roof,
                100 * bench.bytes / best(bench) / best_roof);
  }
}
