// weft generate and weft translate: generate texts with a trained model.
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "config_options.h"
#include "lines.h"
#include "weft/data.h"
#include "weft/train.h"

namespace weft::tools {

namespace {

struct GenerateWords {
  std::string model;
  ConfigWords words;
  std::vector<std::string> prompts;
  std::string file;
  std::optional<std::int64_t> beams, top_k, length, n_best, seed;
  std::optional<double> temperature, top_p;
  bool scores = false, quiet = false, json = false;

  std::vector<std::string> assignments() const {
    std::vector<std::string> all = words.assignments();
    const auto add = [&](const char* key, const auto& value) {
      if (value) all.push_back(std::string("decode.") + key + "=" + std::to_string(*value));
    };
    add("beams", beams);
    add("top_k", top_k);
    add("max_length", length);
    add("n_best", n_best);
    add("seed", seed);
    add("temperature", temperature);
    add("top_p", top_p);
    return all;
  }
};

void print(const GenerateWords& o, const train::TrainedModel::Text& best, const std::string& before) {
  if (o.scores) std::cout << std::fixed << std::setprecision(4) << best.score << "\t";
  std::cout << before << best.text << "\n";
}

// One line per prompt, with ids in the form that bench/decode_reference reads.
void print_json(const train::TrainedModel& model, const std::vector<std::string>& prompts,
                const std::vector<std::vector<train::TrainedModel::Text>>& texts) {
  const data::Vocabulary vocabulary = data::Vocabulary::of(model.config().data.vocabulary);
  const train::Decoding decoding = model.config().model->decoding();
  const bool translates = decoding == train::Decoding::kTranslation;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::int32_t> ids = vocabulary.encode(prompts[i]), none;
    if (decoding != train::Decoding::kContinuation) ids.push_back(data::Vocabulary::kEnd);
    nlohmann::ordered_json line = {{"prompt", translates ? none : ids}, {"inputs", translates ? ids : none}};
    for (const train::TrainedModel::Text& best : texts[i])
      line["hypotheses"].push_back(
          {{"text", best.text}, {"ids", best.ids}, {"score", best.score}, {"ended", best.ended}});
    std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
}

// Prints the text piece by piece, after `before`.
void stream(train::TrainedModel& model, const std::string& prompt, const std::string& before) {
  std::string unsaid = before;
  const auto say = [&](const std::string& piece) {
    if (wire::process() == 0) std::cout << unsaid << piece << std::flush;
    unsaid.clear();
  };
  model.generate({prompt}, [&](std::size_t, const std::string& piece) { say(piece); });
  say("\n");
}

void print_speed(const train::TrainedModel& model) {
  const train::TrainedModel::Speed& s = model.speed();
  std::cerr << s.tokens << " tokens in " << std::fixed << std::setprecision(2) << s.decode_seconds << " s ("
            << std::setprecision(0) << static_cast<double>(s.tokens) / std::max(1e-9, s.decode_seconds)
            << " tokens/s), prompts in " << std::setprecision(2) << s.prefill_seconds << " s\n";
}

// top_k and top_p without sampling: an error if they are options of the command, a warning if they are in the config.
void check_sampling(const GenerateWords& o, const train::Config& config) {
  const decode::Options& d = config.decode;
  if (d.temperature > 0 || (d.top_k == 0 && d.top_p == 1)) return;
  const std::string flag = d.top_k > 0 ? "--top-k" : "--top-p";
  if (o.top_k || o.top_p)
    throw UserError({.code = "generate.option-without-effect",
                     .what = flag + " has no effect: at temperature 0 the likeliest token is always taken",
                     .where = "command line",
                     .fix = "add --temperature 1 to draw tokens, or leave " + flag + " out"});
  if (wire::process() == 0)
    std::cerr << "warning: decode." << (d.top_k > 0 ? "top_k" : "top_p")
              << " has no effect at temperature 0; add --temperature 1 to draw tokens\n";
}

void run_generate(const GenerateWords& o, bool translates) {
  train::TrainedModel model(o.model, o.assignments(), o.words.allow_change);
  check_sampling(o, model.config());
  const train::Decoding decoding = model.config().model->decoding();
  const bool translator = decoding == train::Decoding::kTranslation;
  if (translator != translates && decoding != train::Decoding::kNone)
    throw UserError({.code = "generate.wrong-command",
                     .what = "'" + model.path() + "' is " + (translator ? "a translation" : "a language") + " model",
                     .where = translates ? "weft translate" : "weft generate",
                     .fix = translator ? "use weft translate" : "use weft generate"});
  std::vector<std::string> prompts = o.prompts;
  if (!o.file.empty()) prompts = read_lines(o.file);
  else if (prompts.empty()) prompts = {""};
  const bool goes_on = decoding == train::Decoding::kContinuation;
  // Of one text the tokens are printed as they come. A score stands before its text.
  const bool streams = prompts.size() == 1 && model.config().decode.beams == 1 && !o.json && !o.scores;
  if (streams) {
    stream(model, prompts[0], goes_on ? prompts[0] : "");
  } else {
    const auto texts = model.generate(prompts);
    if (wire::process() != 0) return;
    if (o.json) print_json(model, prompts, texts);
    for (std::size_t i = 0; i < texts.size() && !o.json; ++i)
      for (const train::TrainedModel::Text& best : texts[i]) print(o, best, goes_on ? prompts[i] : "");
    std::cout << std::flush;
  }
  if (wire::process() != 0) return;
  if (!o.quiet) print_speed(model);
}

void add_decode_options(CLI::App& sub, GenerateWords& o) {
  add_config_options(sub, o.words);
  sub.add_option("--beams", o.beams, "decode.beams: more than 1 for beam search");
  sub.add_option("--temperature", o.temperature, "decode.temperature: 0 takes the likeliest token");
  sub.add_option("--top-k", o.top_k, "decode.top_k: draw only from the k likeliest tokens");
  sub.add_option("--top-p", o.top_p, "decode.top_p: draw only from the likeliest tokens with this total probability");
  sub.add_option("--length", o.length, "decode.max_length: the largest number of tokens, including the prompt");
  sub.add_option("--n-best", o.n_best, "decode.n_best: texts for each prompt, with beams");
  sub.add_option("--seed", o.seed, "decode.seed: the seed of the draws");
  sub.add_flag("--scores", o.scores, "Print each text's score before it");
  sub.add_flag("--json", o.json, "Print a JSON object for each prompt, with the texts' tokens and scores");
  sub.add_flag("--quiet", o.quiet, "Do not print the speed");
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("generate", "Continue texts with a trained language model");
  const auto o = std::make_shared<GenerateWords>();
  sub->add_option("MODEL", o->model, "A training folder, or a checkpoint in it")->required();
  sub->add_option("--prompt", o->prompts, "The text to continue; may be repeated; default: empty")
      ->allow_extra_args(false);
  sub->add_option("--prompts", o->file, "A file with a prompt on each line; - is standard input");
  add_decode_options(*sub, *o);
  sub->callback([o, &action] { action = [o] { run_generate(*o, false); }; });
}

void add_translate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("translate", "Translate lines with a trained translation model");
  const auto o = std::make_shared<GenerateWords>();
  o->file = "-";
  sub->add_option("MODEL", o->model, "A training folder, or a checkpoint in it")->required();
  sub->add_option("FILE", o->file, "A text, line by line; default: standard input");
  add_decode_options(*sub, *o);
  sub->callback([o, &action] { action = [o] { run_generate(*o, true); }; });
}

}  // namespace weft::tools
