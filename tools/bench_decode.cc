// weft bench decode: decodes with random weights and times the steps.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "config_options.h"
#include "weft/detail/progress.h"
#include "weft/detail/train_parts.h"

namespace weft::tools {

namespace {

struct DecodeBenchOptions {
  std::vector<std::string> files;
  ConfigWords words;
  std::int64_t batch = 32, beams = 1, max_length = 128, tokens = 0, rows = 0;
  std::string prompt_lengths = "32";
  int repeats = 5;
  bool json = false;
};

// The times of one run over all rows.
struct DecodeTimes {
  std::int64_t tokens = 0, steps = 0, cache_bytes = 0;
  double prefill = 0, decode = 0;

  double seconds() const { return prefill + decode; }
};

void check_least(std::int64_t number, std::int64_t least, const std::string& option) {
  if (number >= least) return;
  throw UserError({.code = "bench-decode.bad-number",
                   .what = option + " of bench decode cannot be " + std::to_string(number),
                   .where = "command line",
                   .fix = "give a number from " + std::to_string(least) + " on"});
}

// Rows of lengths from the shortest to the longest, evenly spread, in a mixed order. Their tokens do not matter.
std::vector<std::vector<std::int32_t>> made_rows(std::int64_t rows, int shortest, int longest) {
  constexpr std::int64_t kStride = 7919;  // a prime: visits all lengths before it repeats one
  std::vector<std::vector<std::int32_t>> all;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(shortest + r * kStride % (longest - shortest + 1)));
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = 3 + static_cast<std::int32_t>((7 * i + 13 * static_cast<std::size_t>(r)) % 97);
    all.push_back(std::move(ids));
  }
  return all;
}

train::Config config_of(const DecodeBenchOptions& o) {
  train::Config config = read_configs(o.files, o.words);
  config.decode.beams = o.beams;
  config.decode.max_length = o.max_length;
  config.decode.max_tokens = o.tokens;
  config.decode.n_best = 1;
  config.decode.never_end = true;
  config = train::completed(config);
  if (config.model->decoding() == train::Decoding::kNone)
    throw UserError({.code = "bench-decode.no-decoder",
                     .what = "the model of '" + o.files[0] + "' does not decode",
                     .where = "--config " + o.files[0],
                     .fix = "give a config of kind lm or encoder_decoder"});
  return config;
}

std::string decode_json(const DecodeBenchOptions& o, const train::Config& config, std::int64_t rows,
                        const DecodeTimes& t) {
  const auto digits = [](double x) { return std::round(x * 1e4) / 1e4; };
  nlohmann::ordered_json all;
  all["system"] = "weft";
  all["config"] = o.files[0];
  all["mesh"] = config.mesh.mesh;
  all["layout"] = config.mesh.layout;
  all["device"] = config.mesh.device;
  all["batch"] = o.batch;
  all["beams"] = o.beams;
  all["max_length"] = o.max_length;
  all["prompt_lengths"] = o.prompt_lengths;
  all["rows"] = rows;
  all["tokens"] = t.tokens;
  all["steps"] = t.steps;
  all["tokens_per_s"] = digits(static_cast<double>(t.tokens) / t.seconds());
  all["ms_per_step"] = digits(t.decode / static_cast<double>(std::max<std::int64_t>(1, t.steps)) * 1e3);
  all["prefill_s"] = digits(t.prefill);
  all["decode_s"] = digits(t.decode);
  all["cache_bytes"] = t.cache_bytes;
  all["repeats"] = o.repeats;
  return all.dump() + "\n";
}

std::string decode_table(const DecodeBenchOptions& o, std::int64_t rows, const DecodeTimes& t) {
  std::ostringstream out;
  out << "decode " << o.files[0] << ", batch " << o.batch << ", " << o.beams << (o.beams == 1 ? " beam" : " beams")
      << ", max_length " << o.max_length << ", " << rows << " rows with prompts of " << o.prompt_lengths << " tokens\n"
      << "  tokens    " << t.tokens << ", " << std::fixed << std::setprecision(0)
      << static_cast<double>(t.tokens) / t.seconds() << " a second\n"
      << "  steps     " << t.steps << ", "
      << seconds_text(t.decode / static_cast<double>(std::max<std::int64_t>(1, t.steps))) << " each\n"
      << "  prompts   " << seconds_text(t.prefill) << "\n"
      << "  caches    " << bytes_text(t.cache_bytes) << "\n";
  return out.str();
}

void run_decode(const DecodeBenchOptions& o) {
  check_least(o.batch, 1, "--batch");
  check_least(o.rows, 0, "--rows");
  check_least(o.repeats, 1, "--repeats");
  const std::vector<int> lengths = parse_counts(o.prompt_lengths, "--prompt-lengths");
  const auto [shortest, longest] = std::ranges::minmax(lengths);
  const std::int64_t rows = o.rows > 0 ? o.rows : o.batch;
  const train::Config config = config_of(o);
  Session session(Mesh::parse(config.mesh.mesh), wire::named(config.mesh.wire), {config.mesh.device},
                  {.workers = static_cast<int>(config.mesh.workers), .store = train::store_of(config)});
  const auto decoder = config.model->decoder(session, config, o.batch, shortest, longest);
  const auto all = made_rows(rows, shortest, longest);
  std::vector<DecodeTimes> runs;
  decode::Speed before;
  for (int i = 0; i <= o.repeats; ++i) {
    decoder->run(all);
    const decode::Speed now = decoder->speed();
    if (i > 0)  // the first run warms up
      runs.push_back({now.tokens - before.tokens, now.steps - before.steps, now.cache_bytes,
                      now.prefill_seconds - before.prefill_seconds, now.decode_seconds - before.decode_seconds});
    before = now;
  }
  std::ranges::sort(runs, {}, &DecodeTimes::seconds);
  const DecodeTimes& median = runs[runs.size() / 2];
  if (wire::process() != 0) return;  // the first process prints
  std::cout << (o.json ? decode_json(o, config, rows, median) : decode_table(o, rows, median));
}

}  // namespace

void add_bench_decode(CLI::App& bench, Action& action) {
  CLI::App* sub = bench.add_subcommand("decode", "Decode with the model of a config, random weights, and time it");
  const auto o = std::make_shared<DecodeBenchOptions>();
  sub->add_option("--config", o->files, "A config as weft train takes it; more: their settings override it")
      ->required();
  add_config_options(*sub, o->words);
  sub->add_option("--batch", o->batch, "Rows of a step")->capture_default_str();
  sub->add_option("--beams", o->beams, "Beams of a row; 1: greedy")->capture_default_str();
  sub->add_option("--max-length", o->max_length, "Positions of the caches")->capture_default_str();
  sub->add_option("--prompt-lengths", o->prompt_lengths,
                  "Tokens of a prompt or of an input: a number, or the least and the most: 16,256")
      ->capture_default_str();
  sub->add_option("--tokens", o->tokens, "Tokens to generate for each row; default: as many as fit in --max-length");
  sub->add_option("--rows", o->rows, "Rows in all; default: one batch");
  sub->add_option("--repeats", o->repeats, "Runs over all rows; the median counts")->capture_default_str();
  sub->add_flag("--json", o->json, "One object on one line, see docs/bench.md")->disable_flag_override();
  sub->callback([o, &action] { action = [o] { run_decode(*o); }; });
}

}  // namespace weft::tools
