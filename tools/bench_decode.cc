// weft bench decode: decodes with random weights, and times it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <nlohmann/json.hpp>

#include "config_options.h"
#include "decode_roofs.h"
#include "decode_rows.h"
#include "lm_config.h"
#include "weft/detail/progress.h"
#include "weft/detail/session_access.h"
#include "weft/detail/train_parts.h"

namespace weft::tools {

namespace {

constexpr std::int64_t kDefaultLength = 128, kDefaultTokens = 512;  // of configs of runs; of those of bench lm

struct DecodeBenchOptions {
  std::vector<std::string> files;
  ConfigWords words;
  std::int64_t batch = 32, beams = 1, rows = 0;
  std::optional<std::int64_t> max_length;
  std::string prompt_lengths = "32", tokens, work;
  int repeats = 5;
  bool roofs = false, json = false;

  // Of a language model of bench lm. Its caches hold the prompts and kDefaultTokens, unless other tokens are asked for.
  std::optional<std::string> benchmark() const { return lm_config(files[0], max_length.value_or(0)); }
};

// The times of one run over all rows.
struct DecodeTimes {
  std::int64_t tokens = 0, steps = 0;
  double prefill = 0, decode = 0;
  double seconds = 0;  // from call to return
};

struct DecodeReport {
  train::Config config;
  std::vector<DecodeRow> rows;
  DecodeTimes times;                 // of the run with the median time
  double least_seconds_of_step = 0;  // of all runs
  std::int64_t prompt_tokens = 0, cache_bytes = 0, peak_bytes = 0;
  DecodeWork work;
  std::optional<DecodeRoofs> roofs;

  double steps() const { return static_cast<double>(std::max<std::int64_t>(1, times.steps)); }
  double weight_rate() const { return static_cast<double>(work.step_bytes) * steps() / times.decode; }
  // Bytes that a step must read, on the mean: weights, and of a language model the keys and values of all positions so far.
  double step_reads(std::int64_t batch) const;
};

double DecodeReport::step_reads(std::int64_t batch) const {
  const auto weights = static_cast<double>(work.step_bytes);
  if (config.model->decoding() == train::Decoding::kTranslation) return weights;
  const std::int64_t length = config.decode.max_length;
  std::int64_t positions = 0;  // that all steps of all rows see
  for (const DecodeRow& row : rows) {
    const std::int64_t end = row.write > 0 ? row.read + row.write : length;
    positions += (end * (end + 1) - row.read * (row.read + 1)) / 2;
  }
  const double of_position = static_cast<double>(cache_bytes) / static_cast<double>(batch * length);  // of all beams
  return weights + of_position * static_cast<double>(positions) / steps();
}

void check_least(std::int64_t number, std::int64_t least, const std::string& option) {
  if (number >= least) return;
  throw UserError({.code = "bench-decode.bad-number",
                   .what = option + " of bench decode cannot be " + std::to_string(number),
                   .where = "command line",
                   .fix = "give a number from " + std::to_string(least) + " on"});
}

// Tokens of the lengths that rows read. Which tokens they are does not matter.
std::vector<std::vector<std::int32_t>> made_rows(const std::vector<DecodeRow>& rows) {
  std::vector<std::vector<std::int32_t>> all;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows[r].read));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 3 + static_cast<std::int32_t>((7 * i + 13 * r) % 97);
    all.push_back(std::move(ids));
  }
  return all;
}

std::vector<DecodeRow> rows_of(const DecodeBenchOptions& o) {
  const bool fills = o.tokens.empty() && o.benchmark() && !o.max_length;
  const std::string tokens = fills ? std::to_string(kDefaultTokens) : o.tokens;
  if (o.work.empty()) return spread_decode_rows(o.rows > 0 ? o.rows : o.batch, o.prompt_lengths, tokens);
  std::vector<DecodeRow> rows = read_decode_rows(o.work);
  if (o.rows > 0 && o.rows < std::ssize(rows)) rows.resize(static_cast<std::size_t>(o.rows));
  return rows;
}

// The positions that rows need in the caches: a language model's caches hold the prompts too.
std::int64_t length_of(const DecodeBenchOptions& o, const std::vector<DecodeRow>& rows, bool translates) {
  std::int64_t longest = 0;
  for (const DecodeRow& row : rows) longest = std::max(longest, (translates ? 0 : row.read) + row.write);
  const std::int64_t length = o.max_length.value_or(!o.work.empty() || o.benchmark() ? longest : kDefaultLength);
  if (longest > length && rows[0].write > 0)
    throw UserError(
        {.code = "bench-decode.no-room",
         .what = "a row needs " + std::to_string(longest) + " positions; --max-length is " + std::to_string(length),
         .where = "command line",
         .fix = "give --max-length " + std::to_string(longest) + ", or fewer tokens"});
  return length;
}

train::Config config_of(const DecodeBenchOptions& o, const std::vector<DecodeRow>& rows) {
  train::Config config = read_configs(o.files, o.words, o.benchmark());
  config.decode.beams = o.beams;
  config.decode.n_best = 1;
  config.decode.never_end = true;
  config.decode.max_tokens = 0;
  for (const DecodeRow& row : rows) config.decode.row_tokens.push_back(row.write);
  config = train::completed(config);
  if (config.model->decoding() == train::Decoding::kNone)
    throw UserError({.code = "bench-decode.no-decoder",
                     .what = "the model of '" + o.files[0] + "' does not decode",
                     .where = "--config " + o.files[0],
                     .fix = "give a config of kind lm or encoder_decoder"});
  config.decode.max_length = length_of(o, rows, config.model->decoding() == train::Decoding::kTranslation);
  return config;
}

const char* decode_weights_name(decode::Weights weights) {
  switch (weights) {
    case decode::Weights::kBF16: return "bf16";
    case decode::Weights::kI8: return "int8";
    default: return "f32";
  }
}

std::string decode_json(const DecodeBenchOptions& o, const DecodeReport& r) {
  const auto digits = [](double x, double unit = 1e4) { return std::round(x * unit) / unit; };
  const DecodeTimes& t = r.times;
  nlohmann::ordered_json all;
  all["system"] = "weft";
  all["config"] = o.files[0];
  all["mesh"] = r.config.mesh.mesh;
  all["layout"] = r.config.mesh.layout;
  all["device"] = r.config.mesh.device;
  all["weights"] = decode_weights_name(r.config.decode.weights);
  all["batch"] = o.batch;
  all["beams"] = o.beams;
  all["max_length"] = r.config.decode.max_length;
  all["rows"] = r.rows.size();
  all["prompt_tokens"] = r.prompt_tokens;
  all["tokens"] = t.tokens;
  all["steps"] = t.steps;
  all["seconds"] = digits(t.seconds, 1e5);
  all["tokens_per_s"] = digits(static_cast<double>(t.tokens) / t.seconds, 1e2);
  all["prefill_s"] = digits(t.prefill, 1e5);
  all["decode_s"] = digits(t.decode, 1e5);
  all["ms_per_step"] = digits(t.decode / r.steps() * 1e3);
  all["ms_token"] = all["ms_per_step"].get<double>();  // of every row
  all["ms_token_min"] = digits(r.least_seconds_of_step * 1e3);
  all["step_tokens_per_s"] = digits(static_cast<double>(t.tokens) / t.decode, 1e2);
  all["tok_s"] = all["step_tokens_per_s"].get<double>();
  if (t.prefill > 0) all["prompt_tokens_per_s"] = digits(static_cast<double>(r.prompt_tokens) / t.prefill, 1e2);
  all["cache_bytes"] = r.cache_bytes;
  all["weight_bytes"] = r.work.step_bytes;
  all["weight_gb_per_s"] = digits(r.weight_rate() * 1e-9, 1e3);
  const double step_reads = r.step_reads(o.batch);
  all["step_read_bytes"] = std::llround(step_reads);
  if (r.work.prompt_flops > 0 && t.prefill > 0)
    all["prompt_gflops"] = digits(r.work.prompt_flops / t.prefill * 1e-9, 1e2);
  if (r.roofs) {
    all["read_gb_per_s"] = digits(r.roofs->read_bytes_per_second * 1e-9, 1e3);
    all["read_share"] = digits(step_reads * r.steps() / t.decode / r.roofs->read_bytes_per_second);
    all["product_gflops"] = digits(r.roofs->product_flops * 1e-9, 1e2);
    all["peak_gflops"] = digits(r.roofs->peak_flops * 1e-9, 1e2);
    if (r.work.prompt_flops > 0 && t.prefill > 0) {
      all["product_share"] = digits(r.work.prompt_flops / t.prefill / r.roofs->product_flops);
      all["peak_share"] = digits(r.work.prompt_flops / t.prefill / r.roofs->peak_flops);
    }
  }
  all["peak_rss_mb"] = digits(static_cast<double>(r.peak_bytes) / (1 << 20), 10);
  all["repeats"] = o.repeats;
  return all.dump() + "\n";
}

std::string decode_table(const DecodeBenchOptions& o, const DecodeReport& r) {
  const DecodeTimes& t = r.times;
  std::ostringstream out;
  out << "decode " << o.files[0] << ", batch " << o.batch << ", " << o.beams << (o.beams == 1 ? " beam" : " beams")
      << ", max_length " << r.config.decode.max_length << ", " << r.rows.size() << " rows\n"
      << std::fixed << std::setprecision(0)  //
      << "  time      " << seconds_text(t.seconds) << "\n"
      << "  tokens    " << t.tokens << ", " << static_cast<double>(t.tokens) / t.seconds << " a second\n"
      << "  steps     " << t.steps << ", " << seconds_text(t.decode / r.steps()) << " each\n"
      << "  prompts   " << r.prompt_tokens << " tokens, " << seconds_text(t.prefill) << "\n"
      << "  caches    " << bytes_text(r.cache_bytes) << "\n"
      << "  weights   " << bytes_text(r.work.step_bytes) << " a step";
  if (r.roofs) {
    const double step_reads = r.step_reads(o.batch);
    out << ", with keys and values " << bytes_text(std::llround(step_reads)) << ": "
        << 100 * step_reads * r.steps() / t.decode / r.roofs->read_bytes_per_second << " % of the roof of "
        << r.roofs->read_bytes_per_second * 1e-9 << " GB/s";
    if (r.work.prompt_flops > 0 && t.prefill > 0)
      out << "\n  products  of prompts " << 100 * r.work.prompt_flops / t.prefill / r.roofs->product_flops
          << " % of a large product's " << r.roofs->product_flops * 1e-9 << " GFLOP/s";
  }
  out << "\n";
  return out.str();
}

DecodeTimes timed_run(train::TextDecoder& decoder, const std::vector<std::vector<std::int32_t>>& rows) {
  const decode::Speed before = decoder.speed();
  const auto begin = std::chrono::steady_clock::now();
  decoder.run(rows);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const decode::Speed now = decoder.speed();
  return {now.tokens - before.tokens, now.steps - before.steps, now.prefill_seconds - before.prefill_seconds,
          now.decode_seconds - before.decode_seconds, seconds};
}

void run_decode(const DecodeBenchOptions& o) {
  check_least(o.batch, 1, "--batch");
  check_least(o.rows, 0, "--rows");
  check_least(o.repeats, 1, "--repeats");
  DecodeReport report;
  report.rows = rows_of(o);
  const train::Config& config = report.config = config_of(o, report.rows);
  std::vector<std::int64_t> reads;
  for (const DecodeRow& row : report.rows) reads.push_back(row.read);
  const auto [shortest, longest] = std::ranges::minmax(reads);
  report.prompt_tokens = std::accumulate(reads.begin(), reads.end(), std::int64_t{0});
  report.work = decode_work(config, reads);
  Session session(Mesh::parse(config.mesh.mesh), wire::named(config.mesh.wire),
                  {config.mesh.device, config.mesh.plugin, {}, config.mesh.nondeterministic},
                  {.workers = static_cast<int>(config.mesh.workers), .store = train::store_of(config)});
  const auto decoder = config.model->decoder(session, config, o.batch, shortest, longest);
  const auto all = made_rows(report.rows);
  timed_run(*decoder, all);  // warms up
  std::vector<DecodeTimes> runs;
  for (int i = 0; i < o.repeats; ++i) runs.push_back(timed_run(*decoder, all));
  const auto seconds_of_step = [](const DecodeTimes& t) {
    return t.decode / static_cast<double>(std::max<std::int64_t>(1, t.steps));
  };
  report.least_seconds_of_step = seconds_of_step(*std::ranges::min_element(runs, {}, seconds_of_step));
  std::ranges::sort(runs, {}, &DecodeTimes::seconds);
  report.times = runs[runs.size() / 2];
  report.cache_bytes = decoder->speed().cache_bytes;
  report.peak_bytes = detail::peak_resident_bytes(session);
  if (wire::process() != 0) return;  // the first process prints
  if (o.roofs) report.roofs = measure_decode_roofs(config, report.work.step_bytes);
  std::cout << (o.json ? decode_json(o, report) : decode_table(o, report));
}

}  // namespace

void add_bench_decode(CLI::App& bench, Action& action) {
  CLI::App* sub = bench.add_subcommand("decode", "Decode with the model of a config, random weights, and time it");
  const auto o = std::make_shared<DecodeBenchOptions>();
  sub->add_option("--config", o->files,
                  "A config as weft train takes it, or one of weft bench lm; more: their settings override it")
      ->required();
  add_config_options(*sub, o->words);
  sub->add_option("--batch", o->batch, "Rows of a step")->capture_default_str();
  sub->add_option("--beams", o->beams, "Beams of a row; 1: greedy")->capture_default_str();
  sub->add_option("--max-length", o->max_length, "Positions of the caches; default: 128, or what --work needs");
  sub->add_option("--prompt-lengths", o->prompt_lengths,
                  "Tokens of a prompt or of an input: a number, or the least and the most: 16,256")
      ->capture_default_str();
  sub->add_option("--tokens", o->tokens,
                  "Tokens to generate for each row: a number, or the least and the most; default: as many as fit in "
                  "--max-length, of configs of weft bench lm 512");
  sub->add_option("--work", o->work,
                  "A file with a line for each row, the tokens to read and to generate: 14 16; - is standard input");
  sub->add_option("--rows", o->rows, "Rows in all; default: one batch, or all rows of --work");
  sub->add_option("--repeats", o->repeats, "Runs over all rows; the median counts")->capture_default_str();
  sub->add_flag("--roofs", o->roofs, "Measure what this machine reads and computes at best, and compare")
      ->disable_flag_override();
  sub->add_flag("--json", o->json, "One object on one line, see docs/bench.md")->disable_flag_override();
  sub->callback([o, &action] { action = [o] { run_decode(*o); }; });
}

}  // namespace weft::tools
