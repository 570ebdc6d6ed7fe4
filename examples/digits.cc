// Handwritten digits on a mesh of threads or ranks: a two-layer network, batch split over `data`, hidden units over
// `model`.
//   digits ["data:2 model:2" ["batch:data hidden:model"]]
//   mpirun -n 4 digits ["data:2 model:2" ["batch:data hidden:model"]]
#include "digits_data.h"

#include <iomanip>
#include <iostream>

#include "arguments.h"

using namespace weft;

// One graph for a batch of this size; graphs of one session share their variables by name.
struct Network {
  Dim batch, pixel{"pixel", 64}, hidden{"hidden", 128}, digit{"digit", 10};
  Graph g;
  Tensor image, label, loss, correct;

  explicit Network(std::int64_t size) : batch{"batch", size} {
    image = g.input("image", {batch, pixel});
    label = g.input("label", {batch}, DType::kI32);
    const Tensor w1 = g.variable("w1", {pixel, hidden}, init::fan_in(pixel));
    const Tensor w2 = g.variable("w2", {hidden, digit}, init::fan_in(hidden));
    const Tensor h = relu(einsum({image, w1}, {batch, hidden}));
    const Tensor logits = einsum({h, w2}, {batch, digit});
    loss = mean(cross_entropy(logits, label, digit));
    correct = mean(cast(equal(argmax(logits, digit), label), DType::kF32));
  }

  Feeds feeds(const Digits& data, std::size_t first) const {
    return {{image, data.images(batch, pixel, first)}, {label, data.labels(batch, first)}};
  }
};

int main(int argc, char** argv) try {
  const auto [wire, mesh, layout] = Arguments(argc, argv, "data:2 model:2", "batch:data hidden:model");
  const Digits data(WEFT_EXAMPLE_DATA "/digits.csv");

  const Network train(60), test(Digits::kTest);
  const optim::Adam adam(train.loss, train.g.variables());
  Session session(mesh, wire);
  Executable step = session.compile(train.g, layout, {.fetch = {train.loss}, .update = adam.updates()});
  Executable check = session.compile(test.g, layout, {.fetch = {test.loss, test.correct}});
  std::cout << step.report() << "\nepoch" << std::string(26, ' ') << "train loss   test loss   test accuracy\n"
            << std::fixed;

  std::int64_t t = 0;
  for (int epoch = 1; epoch <= 30; ++epoch) {
    double sum = 0;
    const std::size_t steps = Digits::kTrain / 60;
    for (std::size_t i = 0; i < steps; ++i) {
      Feeds feeds = train.feeds(data, i * 60);
      for (const auto& feed : adam.feeds(++t, 0.003)) feeds.push_back(feed);
      sum += step.run(feeds).scalar(train.loss);
      std::cout << "\r" << std::setw(5) << epoch << " [" << std::string(i + 1, '#') << std::string(steps - i - 1, '.')
                << "]" << std::flush;
    }
    const Values values = check.run(test.feeds(data, Digits::kTrain));
    std::cout << std::setprecision(4) << std::setw(11) << sum / static_cast<double>(steps) << std::setw(12)
              << values.scalar(test.loss) << std::setprecision(1) << std::setw(14) << 100 * values.scalar(test.correct)
              << " %\n";
  }
} catch (const Error& error) {
  wire::report(error);
  return 2;
}
