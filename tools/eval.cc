// weft eval: how well a trained model foresees a text, or translates one.
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config_options.h"
#include "lines.h"
#include "weft/train.h"

namespace weft::tools {

namespace {

struct EvalWords {
  std::string model;
  ConfigWords words;
  std::vector<std::string> data;
  std::optional<std::string> per_line, translations;
  bool bleu = false, json = false;
};

std::int64_t words_in(const train::TrainedModel& model, const std::vector<std::string>& files) {
  const bool pairs = model.config().model.kind == models::Kind::kEncoderDecoder;
  std::int64_t words = 0;
  for (const std::string& path : files)
    for (const std::string& line : read_lines(path)) words += evaluate::words(pairs ? target_of(line) : line);
  return words;
}

void write_per_line(const std::string& path, const std::vector<evaluate::Scores>& all) {
  std::ostringstream text;
  text << std::setprecision(9);
  for (const evaluate::Scores& s : all)
    text << -s.negative_log_likelihood << "\t" << s.tokens << "\t" << s.correct << "\n";
  write_text(path, text.str(), "--per-line");
}

void score(const EvalWords& o, train::TrainedModel& model, const std::vector<std::string>& files,
           nlohmann::ordered_json& report) {
  evaluate::Scores scores;
  if (o.per_line) {
    const std::vector<evaluate::Scores> each = model.score_each(files);
    for (const evaluate::Scores& s : each) {
      scores.negative_log_likelihood += s.negative_log_likelihood;
      scores.tokens += s.tokens;
      scores.correct += s.correct;
      scores.sequences += s.sequences;
      scores.whole += s.whole;
    }
    write_per_line(*o.per_line, each);
  } else {
    scores = model.score(files);
  }
  const std::int64_t words = words_in(model, files);
  report["tokens"] = scores.tokens;
  report["log_perplexity"] = scores.log_perplexity();
  report["words"] = words;
  report["log_perplexity_per_word"] = scores.log_perplexity_per_word(words);
  report["token_accuracy"] = scores.token_accuracy();
  report["sequence_accuracy"] = scores.sequence_accuracy();
}

void translate(const EvalWords& o, train::TrainedModel& model, const std::vector<std::string>& files,
               nlohmann::ordered_json& report) {
  std::vector<std::string> inputs, references, outputs;
  for (const std::string& path : files)
    for (const std::string& line : read_lines(path)) {
      inputs.push_back(source_of(line, path));
      references.push_back(target_of(line));
    }
  std::string text;
  for (const auto& best : model.generate(inputs)) {
    outputs.push_back(best[0].text);
    text += best[0].text + "\n";
  }
  if (o.translations) write_text(*o.translations, text, "--translations");
  const evaluate::Bleu bleu = evaluate::bleu(outputs, {references});
  report["bleu"] = bleu.score;
  report["signature"] = bleu.signature;
  report["sentences"] = outputs.size();
  report["seconds"] = model.speed().prefill_seconds + model.speed().decode_seconds;
}

void run_eval(const EvalWords& o) {
  train::TrainedModel model(o.model, o.words.assignments());
  const std::vector<std::string>& files = o.data.empty() ? model.config().data.dev : o.data;
  if (files.empty())
    throw UserError({.what = "there is nothing to evaluate on: the config of '" + model.path() + "' has no data.dev",
                     .where = "command line",
                     .fix = "name the files: --data dev.txt"});
  nlohmann::ordered_json report = {{"model", model.path()}, {"step", model.step()}, {"data", files}};
  score(o, model, files, report);
  if (o.bleu) translate(o, model, files, report);
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
  sub->add_option("--data", o->data, "Files in the format of the config's data; default: its data.dev");
  add_config_options(*sub, o->words);
  sub->add_option("--per-line", o->per_line,
                  "Write log-probability, tokens and right tokens of every example to this file");
  sub->add_flag("--bleu", o->bleu, "Of a translation model: also translate the files and give BLEU");
  sub->add_option("--translations", o->translations, "With --bleu: write the translations to this file");
  sub->add_flag("--json", o->json, "One JSON object");
  sub->callback([o, &action] { action = [o] { run_eval(*o); }; });
}

}  // namespace weft::tools
