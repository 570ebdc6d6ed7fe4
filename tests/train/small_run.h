// A training run of a second or less, in a folder of its own.
#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "weft/detail/train_parts.h"

namespace weft::train {

struct SmallRun {
  std::string folder;
  Config config;

  explicit SmallRun(const std::string& name, const std::string& more = "")
      : folder(::testing::TempDir() + "/weft_train_" + name + "_" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ofstream(text_path()) << text_of_words();
    config = parse_config(settings());
    if (!more.empty()) set(config, more);
    write_config();
  }
  ~SmallRun() { std::filesystem::remove_all(folder); }

  std::string text_path() const { return folder + "/words.txt"; }
  std::string config_path() const { return folder + "/config.toml"; }
  void write_config() const { std::ofstream(config_path()) << text(config); }

  // The same run under other settings, with checkpoints in the sub-folder.
  Config with(const std::string& assignments, const std::string& sub = "out") const {
    Config c = config;
    c.run.out = folder + "/" + sub;
    if (!assignments.empty()) set(c, assignments);
    return c;
  }

 private:
  std::string settings() const {
    return "name = \"small\"\n[model]\nd_model = 16\nheads = 4\nd_kv = 4\nd_ff = 32\nlayers = 2\nvocab_divisor = 8\n"
           "dropout = 0.1\nnorm = \"rms\"\nmax_length = 16\n[data]\nformat = \"text\"\ntrain = [\"" +
           text_path() +
           "\"]\n[batch]\nsequences = 8\nlength = 16\n[optimizer]\nname = \"adam\"\nschedule = \"constant 0.01\"\n"
           "[run]\nsteps = 12\nlog_every = 1\nseed = 3\nout = \"" +
           folder + "/out\"\n";
  }

  // Sentences of a few words, so that there is something to learn.
  static std::string text_of_words() {
    const std::vector<std::string> words = {"the", "mesh", "splits", "a", "tensor", "over", "axes", "by", "name"};
    std::mt19937 draw(7);
    std::string text;
    while (text.size() < 6000) text += words[draw() % words.size()] + (draw() % 8 == 0 ? ".\n" : " ");
    return text;
  }
};

inline const TrainOptions kQuiet{.progress = false};

}  // namespace weft::train
