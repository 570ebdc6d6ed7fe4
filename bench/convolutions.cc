// convolutions/<runtime>/1/<what>: convolutions with both gradients in GFLOP/s, and pools in billions of results a second.
// Roof: a matrix product of as many multiplications by the same workers. Medians; the reference runs once, it is slow.
// weft_bench_convolutions [workers] [rounds] [rounds of the reference]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "weft/weft.h"

using namespace weft;

namespace {

struct Sizes {
  std::int64_t batch, side, in, out, taps, stride = 1;
};

struct Bench {
  std::string name;
  double work = 0;  // flops, or results
  Session session;
  Executable step;
  std::vector<double> seconds = {};

  void run() {
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
};

class Benches {
 public:
  Benches(const device::Choice& choice, int workers) : choice_(choice), workers_(workers) {}

  void add_convolution(const Sizes& s) {
    for (const char* what : {"forward", "to_input", "to_filter"}) {
      Graph g;
      const Dim in{"in", s.in}, out{"out", s.out};
      const Tensor x =
          g.variable("x", {{"batch", s.batch}, {"rows", s.side}, {"cols", s.side}, in}, init::uniform(-1, 1));
      const Tensor filter =
          g.variable("filter", {{"row_taps", s.taps}, {"col_taps", s.taps}, in, out}, init::uniform(-1, 1));
      const Tensor y = conv2d(x, filter, {.strides = {s.stride, s.stride}});
      const Tensor dy = g.variable("dy", y.shape(), init::uniform(-1, 1));
      const std::string which = what;
      const double flops = 2.0 * static_cast<double>(y.shape().elements() * s.in * s.taps * s.taps);
      add(g, name(which, s), flops,
          which == "forward" ? y : gradients({y}, {which == "to_input" ? x : filter}, {dy})[0]);
    }
  }

  void add_pool(const Sizes& s) {
    Graph g;
    const Dim rows{"rows", s.side}, cols{"cols", s.side};
    const Tensor x = g.variable("x", {{"batch", s.batch}, rows, cols, {"in", s.in}}, init::uniform(-1, 1));
    const Tensor y =
        max_pool(x, {window(rows, s.taps, Padding::kSame, s.stride), window(cols, s.taps, Padding::kSame, s.stride)});
    add(g, name("max_pool", s), static_cast<double>(y.shape().elements()), y);
  }

  // As many multiplications as the convolution of stride 1.
  void add_product(const Sizes& s) {
    Graph g;
    const Dim m{"m", s.batch * s.side * s.side}, k{"k", s.in * s.taps * s.taps}, n{"n", s.out};
    const Tensor a = g.variable("a", {m, k}, init::uniform(-1, 1)), b = g.variable("b", {k, n}, init::uniform(-1, 1));
    add(g, name("product", s), 2.0 * static_cast<double>(m.size * k.size * n.size), einsum({a, b}, {m, n}));
  }

  void run(int rounds) {
    for (int i = 0; i < rounds; ++i)
      for (Bench& bench : all_) bench.run();
    for (Bench& bench : all_) {
      std::sort(bench.seconds.begin(), bench.seconds.end());
      if (bench.seconds.empty()) continue;
      const double median = bench.seconds[bench.seconds.size() / 2], best = bench.seconds[0];
      std::printf("%-56s %10.2f ms %8.2f G/s, best %8.2f G/s\n", bench.name.c_str(), median * 1e3,
                  bench.work / median * 1e-9, bench.work / best * 1e-9);
    }
  }

 private:
  std::string name(const std::string& what, const Sizes& s) const {
    const auto word = [](std::int64_t number) { return std::to_string(number); };
    return "convolutions/" + choice_.name + "/1/" + what + " " + word(s.taps) + "x" + word(s.taps) + ":" +
           word(s.stride) + " " + word(s.in) + "->" + word(s.out) + " " + word(s.batch) + "x" + word(s.side) + "x" +
           word(s.side);
  }

  // The result goes to a variable, so that a run does nothing else.
  void add(Graph& g, const std::string& name, double work, const Tensor& wanted) {
    const Tensor kept = g.variable("kept", wanted.shape(), init::zeros());
    Session session(Mesh(), wire::threads(), choice_, {.workers = workers_});
    Executable step = session.compile(g, Layout(), {.update = {assign(kept, wanted)}});
    all_.push_back({name, work, session, step});
  }

  device::Choice choice_;
  int workers_;
  std::vector<Bench> all_;
};

int word_or(int count, char** words, int at, int otherwise) { return count > at ? std::atoi(words[at]) : otherwise; }

}  // namespace

int main(int count, char** words) {
  const int workers = word_or(count, words, 1, 2);
  const std::vector<Sizes> all = {
      {16, 56, 64, 64, 3}, {16, 56, 64, 128, 3, 2}, {16, 14, 256, 256, 3}, {16, 56, 64, 256, 1}};
  for (const auto& [choice, rounds] : {std::pair{device::cpu(), word_or(count, words, 2, 11)},
                                       std::pair{device::reference(), word_or(count, words, 3, 1)}}) {
    if (rounds == 0) continue;
    Benches benches(choice, workers);
    const bool slow = choice.name == device::reference().name;
    if (!slow) benches.add_product(all[0]);
    for (const Sizes& sizes : all)
      if (!slow || &sizes == all.data()) benches.add_convolution(sizes);
    benches.add_pool({16, 112, 64, 64, 3, 2});
    benches.run(rounds);
  }
}
