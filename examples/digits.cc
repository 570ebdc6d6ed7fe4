// Handwritten digits on a mesh of threads: a two-layer network, batch split over `data`, hidden units over `model`.
//   digits ["data:2 model:2" ["batch:data hidden:model"]]
#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <random>
#include <sstream>

#include "weft/weft.h"
using namespace weft;

struct Digits {
  std::vector<std::vector<float>> images;
  std::vector<std::int32_t> labels;

  explicit Digits(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::vector<float> row;
      std::istringstream words(line);
      for (std::string word; std::getline(words, word, ',');) row.push_back(std::stof(word) / 16);
      labels.push_back(static_cast<std::int32_t>(row.back() * 16));
      row.pop_back();
      images.push_back(std::move(row));
    }
  }
};

// One graph for a batch of this size; graphs of one session share their variables by name.
struct Network {
  Dim batch, pixel{"pixel", 64}, hidden{"hidden", 128}, digit{"digit", 10};
  Graph g;
  Tensor image, label, loss, correct;

  explicit Network(int size) : batch{"batch", size} {
    image = g.input("image", {batch, pixel});
    label = g.input("label", {batch}, DType::kI32);
    const Tensor w1 = g.variable("w1", {pixel, hidden}, init::fan_in(pixel));
    const Tensor w2 = g.variable("w2", {hidden, digit}, init::fan_in(hidden));
    const Tensor h = relu(einsum({image, w1}, {batch, hidden}));
    const Tensor logits = einsum({h, w2}, {batch, digit});
    loss = mean(cross_entropy(logits, label, digit));
    correct = mean(cast(equal(argmax(logits, digit), label), DType::kF32));
  }

  Feeds feeds(const Digits& data, const std::vector<int>& rows, std::size_t first) const {
    Array images({batch, pixel}, DType::kF32), labels({batch}, DType::kI32);
    for (std::int64_t b = 0; b < batch.size; ++b) {
      const auto row = static_cast<std::size_t>(rows[first + static_cast<std::size_t>(b)]);
      for (std::int64_t p = 0; p < 64; ++p) images.set(b * 64 + p, data.images[row][static_cast<std::size_t>(p)]);
      labels.set(b, data.labels[row]);
    }
    return {{image, images}, {label, labels}};
  }
};

int main(int argc, char** argv) try {
  const Mesh mesh = Mesh::parse(argc > 1 ? argv[1] : "data:2 model:2");
  const Layout layout = Layout::parse(argc > 2 ? argv[2] : "batch:data hidden:model");
  const Digits data(WEFT_EXAMPLE_DATA "/digits.csv");
  std::vector<int> rows(data.images.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(1));

  constexpr std::size_t kTrain = 1437, kBatch = 60, kEpochs = 30;
  const Network train(kBatch), test(360);
  const optim::Adam adam(train.loss, train.g.variables());
  Session session(mesh);
  Executable step = session.compile(train.g, layout, {.fetch = {train.loss}, .update = adam.updates()});
  Executable check = session.compile(test.g, layout, {.fetch = {test.loss, test.correct}});
  std::cout << step.report() << "\nepoch                        train loss   test loss   test accuracy\n" << std::fixed;

  std::int64_t t = 0;
  for (std::size_t epoch = 1; epoch <= kEpochs; ++epoch) {
    double sum = 0;
    const std::size_t steps = kTrain / kBatch;
    for (std::size_t i = 0; i < steps; ++i) {
      Feeds feeds = train.feeds(data, rows, i * kBatch);
      for (auto& feed : adam.feeds(++t, 0.003)) feeds.push_back(feed);
      sum += step.run(feeds).scalar(train.loss);
      std::cout << "\r" << std::setw(5) << epoch << " [" << std::string(i + 1, '#') << std::string(steps - i - 1, '.')
                << "]" << std::flush;
    }
    const Values values = check.run(test.feeds(data, rows, kTrain));
    std::cout << std::setprecision(4) << std::setw(8) << sum / static_cast<double>(steps) << std::setw(12)
              << values.scalar(test.loss) << std::setprecision(1) << std::setw(14) << 100 * values.scalar(test.correct)
              << " %" << (epoch % 5 == 0 ? "\n" : "") << std::flush;
  }
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
