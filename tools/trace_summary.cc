// weft trace-summary: prints how much time each part of a step takes.
#include "trace_summary.h"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "options.h"

namespace weft::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNumbers = 5;  // all columns before it, except the first, are numbers
constexpr std::size_t kCause = 60;   // characters

UserError no_trace(const std::string& path, const std::string& why) {
  return UserError({.code = "trace.not-a-trace",
                    .what = "'" + path + "' is no trace of Weft: " + why,
                    .where = path,
                    .fix = "give a file that `weft bench lm --trace FILE` wrote, whole"});
}

// Sums events.
class EventTotals {
 public:
  EventTotals(const Json& about, const std::string& path) : path_(path) {
    s_.mesh = about.at("mesh");
    s_.layout = about.at("layout");
    s_.device = about.at("device");
    s_.peaks = about.at("peaks");
    s_.processors = about.at("processors");
    s_.workers = about.at("workers");
    s_.flops_per_second = about.at("flops_per_second");
    s_.bytes_per_second = about.at("bytes_per_second");
    if (s_.processors < 1 || s_.workers < 1) throw no_trace(path_, "it has no processors");
  }

  void take(const Json& event) {
    if (event.at("ph") != "X") return;
    const Json& args = event.at("args");
    const std::string use = args.at("use");
    const double seconds = event.at("dur").get<double>() * 1e-6;
    if (use == "call") {
      steps_.insert(args.at("step").get<std::int64_t>());
      s_.call += seconds;
    } else if (use == "share") {
      Shared& shared = shared_[key_of(event)];
      shared.is_shared = true;
      shared.busy += args.at("busy_us").get<double>() * 1e-6;
    } else if (use == "kernel" || use == "collective") {
      (use == "kernel" ? s_.kernels : s_.collectives) += seconds;
      add(kinds_[std::string(args.at("kind")) + " " + std::string(args.at("phase"))], event, seconds);
      add(instructions_[event.at("name")], event, seconds);
      shared_[key_of(event)].seconds += seconds;
    }
  }

  TraceSummary done() {
    if (steps_.empty()) throw no_trace(path_, "it has no step");
    s_.steps = static_cast<int>(steps_.size());
    const double by = 1.0 / (s_.steps * s_.processors);
    for (const auto& [key, shared] : shared_)  // during a shared instruction a worker either works or waits
      if (shared.is_shared) s_.waiting += shared.seconds - shared.busy / s_.workers;
    for (double* sum : {&s_.waiting, &s_.call, &s_.kernels, &s_.collectives}) *sum *= by;
    s_.kinds = sorted(kinds_, by);
    s_.instructions = sorted(instructions_, by);
    return s_;
  }

 private:
  using Key = std::tuple<int, std::int64_t, std::string>;  // processor, step, instruction
  static Key key_of(const Json& event) { return {event.at("pid"), event.at("args").at("step"), event.at("name")}; }
  struct Shared {
    bool is_shared = false;
    double seconds = 0, busy = 0;
  };

  static void add(TraceSummary::Part& part, const Json& event, double seconds) {
    const Json& args = event.at("args");
    part.seconds += seconds;
    part.count += 1;
    if (args.contains("cause")) part.cause = args.at("cause");
    const bool has_least = args.contains("least_us");
    if (has_least) part.least_seconds += args.at("least_us").get<double>() * 1e-6;
    if (has_least || args.at("use") == "collective") part.roofed_seconds += seconds;
  }

  static std::vector<TraceSummary::Part> sorted(const std::map<std::string, TraceSummary::Part>& parts, double by) {
    std::vector<TraceSummary::Part> all;
    for (const auto& [what, sum] : parts)
      all.push_back(
          {what, sum.cause, sum.seconds * by, sum.least_seconds * by, sum.roofed_seconds * by, sum.count * by});
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return all;
  }

  std::string path_;
  TraceSummary s_;
  std::set<std::int64_t> steps_;
  std::map<std::string, TraceSummary::Part> kinds_, instructions_;
  std::map<Key, Shared> shared_;
};

std::string fixed(double x, int decimals) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(decimals) << x;
  return out.str();
}

std::string percent(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) + " %" : "-"; }

std::string ms(double seconds) { return fixed(seconds * 1e3, 3); }

// Aligned columns; the first to the left, all others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      const bool left = i == 0 || i >= kNumbers;
      line += (i ? "  " : "") + (left ? row[i] + space : space + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::vector<std::string> row_of(const TraceSummary::Part& part, double step) {
  return {part.what, fixed(part.count, 0), ms(part.seconds), percent(part.seconds, step),
          part.least_seconds > 0 ? percent(part.least_seconds, part.roofed_seconds) : "-"};
}

Json json_of(const TraceSummary::Part& part, double step) {
  Json json{{"what", part.what}, {"count", part.count}, {"ms", part.seconds * 1e3}, {"share", part.seconds / step}};
  if (part.least_seconds > 0) json["roof"] = part.least_seconds / part.roofed_seconds;
  if (!part.cause.empty()) json["cause"] = part.cause;
  return json;
}

}  // namespace

std::string TraceSummary::text(std::size_t most) const {
  std::ostringstream out;
  out << (mesh.empty() ? "one processor" : "mesh " + mesh + ", layout \"" + layout + "\"") << ", device " << device
      << ", " << workers << (workers == 1 ? " worker" : " workers") << " each; " << steps
      << " steps, means of a step and processor\n"
      << "roof of a processor, " << peaks << ": " << fixed(flops_per_second * 1e-9, 1) << " GFLOP/s, "
      << fixed(bytes_per_second * 1e-9, 1) << " GB/s\n\n";
  std::vector<std::vector<std::string>> rows = {{"step", "", ms(call), "100.0 %"},
                                                {"kernels", "", ms(kernels), percent(kernels, call)}};
  if (workers > 1) rows.push_back({"  of it waiting for workers", "", ms(waiting), percent(waiting, call)});
  rows.push_back({"collectives", "", ms(collectives), percent(collectives, call)});
  rows.push_back({"overhead", "", ms(overhead()), percent(overhead(), call)});
  out << table(rows) << "\n";
  rows = {{"kind and phase", "count", "ms", "share", "of roof"}};
  for (const Part& part : kinds) rows.push_back(row_of(part, call));
  out << table(rows) << "\n";
  rows = {{"slowest", "count", "ms", "share", "of roof", "cause"}};
  for (std::size_t i = 0; i < std::min(most, instructions.size()); ++i) {
    rows.push_back(row_of(instructions[i], call));
    rows.back().push_back(instructions[i].cause.substr(0, kCause));
  }
  out << table(rows);
  return out.str();
}

std::string TraceSummary::json(std::size_t most) const {
  Json all;
  all["mesh"] = mesh;
  all["layout"] = layout;
  all["device"] = device;
  all["processors"] = processors;
  all["workers"] = workers;
  all["steps"] = steps;
  all["peaks"] = peaks;
  all["flops_per_second"] = flops_per_second;
  all["bytes_per_second"] = bytes_per_second;
  all["ms"] = {{"step", call * 1e3},
               {"kernels", kernels * 1e3},
               {"waiting", waiting * 1e3},
               {"collectives", collectives * 1e3},
               {"overhead", overhead() * 1e3}};
  all["overhead"] = overhead() / call;
  all["kinds"] = Json::array();
  for (const Part& part : kinds) all["kinds"].push_back(json_of(part, call));
  all["slowest"] = Json::array();
  for (std::size_t i = 0; i < std::min(most, instructions.size()); ++i)
    all["slowest"].push_back(json_of(instructions[i], call));
  return all.dump(2);
}

TraceSummary summarize_trace(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw no_trace(path, "it is not JSON");
  const Json* about = json.is_object() && json.contains("otherData") ? &json["otherData"] : nullptr;
  if (!about || !about->contains("weft_trace")) throw no_trace(path, "nothing in it says so");
  if ((*about)["weft_trace"] != 1) throw no_trace(path, "its form is another than 1, that of this version");
  try {
    EventTotals summer(*about, path);
    for (const Json& event : json.at("traceEvents")) summer.take(event);
    return summer.done();
  } catch (const nlohmann::json::exception& error) {
    throw no_trace(path, error.what());
  }
}

namespace {

struct SummaryOptions {
  std::string file;
  std::size_t most = 10;
  bool json = false;
};

void run_summary(const SummaryOptions& o) {
  std::ifstream file(o.file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad())
    throw UserError({.code = "trace.unreadable-file",
                     .what = "the trace '" + o.file + "' cannot be read",
                     .where = o.file,
                     .fix = "give the path of a file that `weft bench lm --trace FILE` wrote"});
  const TraceSummary summary = summarize_trace(text, o.file);
  std::cout << (o.json ? summary.json(o.most) + "\n" : summary.text(o.most));
}

}  // namespace

void add_trace_summary(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("trace-summary", "Print how much time each part of a traced step takes");
  const auto o = std::make_shared<SummaryOptions>();
  sub->add_option("FILE", o->file, "A trace: the file that --trace of weft bench lm or weft train wrote")->required();
  sub->add_option("--most", o->most, "How many of the slowest instructions to show")->capture_default_str();
  sub->add_flag("--json", o->json, "One JSON object, see docs/bench.md")->disable_flag_override();
  sub->callback([o, &action] { action = [o] { run_summary(*o); }; });
}

}  // namespace weft::tools
