// weft generate and weft translate: generate texts with a trained model.
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "config_options.h"
#include "lines.h"
#include "weft/data.h"
#include "weft/detail/progress.h"
#include "weft/train.h"

namespace weft::tools {

namespace {

struct GenerateWords {
  std::string model;
  ConfigWords words;
  std::vector<std::string> prompts;
  std::string file, prefix;
  std::vector<std::string> stops;
  std::optional<std::int64_t> beams, top_k, length, n_best, seed, min_tokens, no_repeat_ngram, batch;
  std::optional<double> temperature, top_p, repetition_penalty;
  bool scores = false, quiet = false, json = false, dry_run = false;

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
    add("batch", batch);
    add("temperature", temperature);
    add("top_p", top_p);
    add("min_tokens", min_tokens);
    add("repetition_penalty", repetition_penalty);
    add("no_repeat_ngram", no_repeat_ngram);
    if (!stops.empty()) all.push_back("decode.stop=" + list_of(stops));
    return all;
  }

 private:
  static void check_utf8(const std::string& text) {
    try {
      (void)nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      throw UserError({.code = "generate.stop-not-utf8",
                       .what = "a stop text is not UTF-8",
                       .where = "--stop",
                       .fix = "give a text in UTF-8: no text that is made contains half a character"});
    }
  }
  // As TOML. A comma would end an assignment.
  static std::string list_of(const std::vector<std::string>& texts) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string list;
    for (const std::string& text : texts) {
      check_utf8(text);
      list += list.empty() ? "\"" : ", \"";
      for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < ' ' || c == ',' || c == '"' || c == '\\' || byte == 0x7F)
          list += std::string("\\u00") + kDigits[byte >> 4] + kDigits[byte & 15];
        else list += c;
      }
      list += '"';
    }
    return "[" + list + "]";
  }
};

void print(const GenerateWords& o, const train::TrainedModel::Text& best, const std::string& before) {
  if (o.scores) std::cout << std::fixed << std::setprecision(4) << best.score << "\t";
  std::cout << before << best.text << "\n";
}

// A line for a prompt, with ids in the form that bench/decode_reference reads.
void print_json(const train::TrainedModel& model, const data::Vocabulary& vocabulary, const std::string& prompt,
                const std::vector<train::TrainedModel::Text>& texts) {
  const train::Decoding decoding = model.config().model->decoding();
  const bool translates = decoding == train::Decoding::kTranslation;
  std::vector<std::int32_t> ids = vocabulary.encode(prompt), none;
  if (decoding != train::Decoding::kContinuation) ids.push_back(data::Vocabulary::kEnd);
  nlohmann::ordered_json line = {{"prompt", translates ? none : ids}, {"inputs", translates ? ids : none}};
  for (const train::TrainedModel::Text& best : texts) {
    nlohmann::ordered_json one = {{"text", best.text},
                                  {"ids", best.ids},
                                  {"score", best.score},
                                  {"ended", best.ended},
                                  {"log_probabilities", best.log_probabilities}};
    if (best.end_token >= 0) one["end_token"] = best.end_token;
    if (!best.stop_text.empty()) one["stop"] = best.stop_text;
    line["hypotheses"].push_back(std::move(one));
  }
  std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

// Ends the generation of texts that nobody reads: the reader has closed the pipe, and its signal is ignored.
struct ReaderGone {};

void flush() {
  if (!flush_output()) throw ReaderGone();
}

// Prints the texts of each prompt as soon as all prompts before it are done.
void print_in_order(train::TrainedModel& model, const GenerateWords& o, const std::vector<std::string>& prompts) {
  const data::Vocabulary vocabulary = data::Vocabulary::of(model.config().data.vocabulary);
  const bool goes_on = model.config().model->decoding() == train::Decoding::kContinuation;
  model.generate(prompts, {}, [&](std::size_t i, const std::vector<train::TrainedModel::Text>& texts) {
    if (wire::process() != 0) return;
    if (o.json) print_json(model, vocabulary, prompts[i], texts);
    else
      for (const train::TrainedModel::Text& best : texts) print(o, best, goes_on ? prompts[i] : "");
    flush();
  });
}

void print_plan(const train::TrainedModel::Plan& plan, const train::Config& config) {
  const decode::DecoderMemory& m = plan.memory;
  std::cout << "batch      " << plan.batch << (plan.batch == 1 ? " row of " : " rows of ") << config.decode.max_length
            << " positions, " << config.decode.beams << (config.decode.beams == 1 ? " beam" : " beams")
            << "; the longest prompt has " << plan.longest << " tokens\n"
            << "memory     " << bytes_text(m.sum()) << " on each processor";
  if (plan.limit > 0) std::cout << ", of " << bytes_text(plan.limit);
  std::cout << "\n  weights  " << bytes_text(m.weights) << "\n  caches   " << bytes_text(m.caches) << "\n  arena    "
            << bytes_text(std::max(m.step_arena, m.prompt_arena)) << " (a step " << bytes_text(m.step_arena)
            << ", reading prompts " << bytes_text(m.prompt_arena) << ")\n  threads  " << bytes_text(m.scratch) << "\n";
}

// Prints the text piece by piece, after `before`.
void stream(train::TrainedModel& model, const std::string& prompt, const std::string& before) {
  std::string unsaid = before;
  const auto say = [&](const std::string& piece) {
    if (wire::process() == 0) {
      std::cout << unsaid << piece;
      flush();
    }
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
  if (!o.prefix.empty() && !goes_on)
    throw UserError({.code = "generate.prefix-not-continued",
                     .what = "'" + model.path() + "' answers its prompts one by one, and continues no shared text",
                     .where = "--prefix",
                     .fix = "leave --prefix out, and put the text into the prompts"});
  model.set_prefix(o.prefix);
  if (o.dry_run) {
    const train::TrainedModel::Plan plan = model.plan(prompts);
    if (wire::process() == 0) print_plan(plan, model.config());
    return;
  }
  try {
    if (streams) stream(model, prompts[0], goes_on ? prompts[0] : "");
    else print_in_order(model, o, prompts);
  } catch (const ReaderGone&) {
    return;
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
  sub.add_option("--stop", o.stops, "decode.stop: end a text before this text; may be repeated")
      ->allow_extra_args(false);
  sub.add_option("--min-tokens", o.min_tokens, "decode.min_tokens: no text ends before it has this many tokens");
  sub.add_option("--repetition-penalty", o.repetition_penalty,
                 "decode.repetition_penalty: above 1, tokens of the prompt and the text become less likely");
  sub.add_option("--no-repeat-ngram", o.no_repeat_ngram,
                 "decode.no_repeat_ngram: no run of so many tokens occurs twice");
  sub.add_option("--seed", o.seed, "decode.seed: the seed of the draws");
  sub.add_option("--batch", o.batch, "decode.batch: rows that are decoded together; 0: as many as pay and fit");
  sub.add_flag("--dry-run", o.dry_run, "Print the batch and the memory of each processor, and stop");
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
  sub->add_option("--prefix", o->prefix, "A text before all prompts, which is read once and not printed");
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
