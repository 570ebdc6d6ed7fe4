// weft eval: how well a trained model foresees a text, or translates one.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config_options.h"
#include "lines.h"
#include "weft/data.h"
#include "weft/evaluate.h"
#include "weft/train.h"

namespace weft::tools {

namespace {

struct EvalWords {
  std::string model;
  ConfigWords words;
  std::vector<std::string> data;
  std::optional<std::string> per_line, translations;
  std::optional<std::int64_t> batch;
  bool bleu = false, json = false;
};

// The inputs and the targets of the files, line by line; without inputs all is targets. Files of tokens have none.
struct Sides {
  std::vector<std::string> inputs, targets;
};
Sides sides_of(const train::TrainedModel& model, const std::vector<std::string>& files) {
  if (model.config().data.format == "pairs" && files.size() == 2) return {read_lines(files[0]), read_lines(files[1])};
  const bool pairs = model.config().model->has_inputs();
  Sides sides;
  if (data::format_of({.files = files, .format = model.config().data.format}) == "tokens") return sides;
  for (const std::string& path : files)
    for (const std::string& line : read_lines(path)) {
      const std::size_t tab = pairs ? line.find('\t') : std::string::npos;
      if (pairs) sides.inputs.push_back(line.substr(0, tab));
      sides.targets.push_back(tab == std::string::npos ? line : line.substr(tab + 1));
    }
  return sides;
}

void write_per_line(const std::string& path, const train::Task& task, const std::vector<train::Sums>& all) {
  std::ostringstream text;
  text << std::setprecision(9);
  for (const train::Sums& sums : all) {
    const char* between = "";
    for (const double figure : task.example_figures(sums)) text << std::exchange(between, "\t") << figure;
    text << "\n";
  }
  write_text(path, text.str(), "--per-line");
}

void score(const EvalWords& o, train::TrainedModel& model, const std::vector<std::string>& files, const Sides& sides,
           nlohmann::ordered_json& report) {
  const train::Task& task = model.config().model.task();
  train::Sums sums;
  if (o.per_line) {
    const std::vector<train::Sums> each = model.evaluate_each(files);
    for (const train::Sums& one : each)
      for (const auto& [name, sum] : one) sums[name] += sum;
    write_per_line(*o.per_line, task, each);
  } else {
    sums = model.evaluate(files).sums;
  }
  for (const std::string& line : sides.targets) sums["words"] += static_cast<double>(evaluate::words(line));
  for (const train::Metric& metric : task.metrics(sums)) {
    if (metric.is_count) report[metric.name] = std::llround(metric.value);
    else report[metric.name] = metric.value;
  }
}

void translate(const EvalWords& o, train::TrainedModel& model, const Sides& sides, nlohmann::ordered_json& report) {
  std::vector<std::string> outputs;
  std::string text;
  for (const auto& best : model.generate(sides.inputs)) {
    outputs.push_back(best[0].text);
    text += best[0].text + "\n";
  }
  if (o.translations) write_text(*o.translations, text, "--translations");
  const evaluate::Bleu bleu = evaluate::bleu(outputs, {sides.targets});
  report["bleu"] = bleu.score;
  report["signature"] = bleu.signature;
  report["sentences"] = outputs.size();
  report["seconds"] = model.speed().prefill_seconds + model.speed().decode_seconds;
}

// The files, with a copy of standard input in place of "-".
std::vector<std::string> with_standard_input(std::vector<std::string> files, const train::Config& config,
                                             std::optional<StandardInputFile>& input) {
  for (std::string& file : files) {
    if (file != "-") continue;
    if (wire::named(config.mesh.wire).name != wire::threads().name)
      throw UserError({.code = "eval.standard-input-in-job",
                       .what = "--data names standard input, which only one process of a job has",
                       .where = "--data -",
                       .fix = "write the text to a file that every process can read, and name that"});
    if (input)
      throw UserError({.code = "eval.standard-input-twice",
                       .what = "--data names standard input twice",
                       .where = "--data -",
                       .fix = "give one -, and the path of a file for the rest"});
    file = input.emplace(config.data.train.empty() ? "" : config.data.train[0]).path();
  }
  return files;
}

void run_eval(const EvalWords& o) {
  std::vector<std::string> assignments = o.words.assignments();
  if (o.batch) assignments.push_back("decode.batch=" + std::to_string(*o.batch));
  train::TrainedModel model(o.model, assignments, o.words.allow_change);
  const std::vector<std::string> named = o.data.empty() ? model.config().data.dev : o.data;
  if (named.empty())
    throw UserError({.code = "eval.no-data",
                     .what = "there is nothing to evaluate on: the config of '" + model.path() + "' has no data.dev",
                     .where = "command line",
                     .fix = "name the files: --data dev.txt"});
  for (const std::string& path : named)
    if (o.data.empty() && !std::filesystem::exists(path))
      throw UserError({.code = "eval.file-missing",
                       .what = "the run's data.dev names the file '" + path + "', which is not there",
                       .where = model.path(),
                       .fix = "name the files where they are now: --data PATH"});
  if (o.bleu && model.config().model->decoding() != train::Decoding::kTranslation)
    throw UserError({.code = "eval.kind-does-not-translate",
                     .what = "'" + model.path() + "' is a model of kind '" + model.config().model->kind() +
                             "', which translates nothing",
                     .where = "--bleu",
                     .fix = "leave --bleu out"});
  std::optional<StandardInputFile> input;
  const std::vector<std::string> files = with_standard_input(named, model.config(), input);
  nlohmann::ordered_json report = {{"model", model.path()}, {"step", model.step()}, {"data", named}};
  const Sides sides = sides_of(model, files);
  score(o, model, files, sides, report);
  if (o.bleu) translate(o, model, sides, report);
  if (wire::process() != 0) return;
  if (o.json) {
    std::cout << report.dump() << "\n";
    return;
  }
  for (const auto& [name, value] : report.items())
    std::cout << std::left << std::setw(26) << name << (value.is_string() ? value.get<std::string>() : value.dump())
              << "\n";
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("eval", "Perplexity, accuracy and BLEU of a trained model");
  const auto o = std::make_shared<EvalWords>();
  sub->add_option("MODEL", o->model, "A training folder, or a checkpoint in it")->required();
  sub->add_option("--data", o->data,
                  "Files in the format of the config's data; - is standard input; default: its data.dev");
  add_config_options(*sub, o->words);
  sub->add_option(
      "--per-line", o->per_line,
      "Write the figures of every example to this file: log-probability, tokens and right tokens, or the figures "
      "of the model's kind");
  sub->add_flag("--bleu", o->bleu, "Of a translation model: also translate the files and give BLEU");
  sub->add_option("--batch", o->batch, "With --bleu: decode.batch, the rows that are translated together");
  sub->add_option("--translations", o->translations, "With --bleu: write the translations to this file");
  sub->add_flag("--json", o->json, "One JSON object");
  sub->callback([o, &action] { action = [o] { run_eval(*o); }; });
}

}  // namespace weft::tools
