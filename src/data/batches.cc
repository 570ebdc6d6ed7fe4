// Batches: examples in a shuffled order, put into rows. A row depends on the epoch and its first example alone, so these
// two are all that a position needs.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/examples.h"
#include "data/file_bytes.h"
#include "data/shuffle.h"
#include "weft/words.h"

namespace weft::data {

namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kFormats = {"text", "documents", "lines", "tsv", "pairs", "tokens"};

[[noreturn]] void refuse_size(const char* name, std::int64_t value) {
  throw UserError({.what = sentence("a batch's ", name, " is ", value),
                   .where = sentence("data option ", name),
                   .fix = "give a number from 1 to 1000000"});
}

void check(const SourceOptions& options, const std::string& format) {
  constexpr std::int64_t kMost = 1'000'000;
  for (const auto& [name, value] : {std::pair("batch", options.batch), std::pair("length", options.length),
                                    std::pair("inputs_length", std::max<std::int64_t>(options.inputs_length, 1))})
    if (value < 1 || value > kMost) refuse_size(name, value);
  if (options.inputs_length < 0) refuse_size("inputs_length", options.inputs_length);
  if (options.files.empty())
    throw UserError({.what = "the data has no files", .where = "data option files", .fix = "name one file or more"});
  const bool is_two_files = format == "pairs";
  if (is_two_files != !options.targets_file.empty() || (is_two_files && options.files.size() != 1))
    throw UserError(
        {.what = sentence("the format '", format, "' goes with ",
                          is_two_files ? "one file and a targets_file" : "files alone, not a targets_file"),
         .where = "data options files, targets_file",
         .fix = "for two files of lines give format 'pairs', the inputs in files, the targets in targets_file"});
}

// The rows of one feature while they are filled.
class Feature {
 public:
  Feature(std::string name, std::string dim, std::int64_t batch, std::int64_t length, bool packed)
      : name_(std::move(name)), length_(static_cast<std::size_t>(length)) {
    const Shape shape{{"batch", batch}, {dim, length}};
    for (const char* part : {"", "_segments", "_positions"}) {
      if (*part && !packed) break;
      arrays_.push_back({name_ + part, Array(shape, DType::kI32)});
    }
  }

  std::size_t length() const { return length_; }
  bool has_room(std::size_t count) const { return used_ + count <= length_; }
  void begin_row(std::int64_t row) {
    row_ = static_cast<std::size_t>(row);
    used_ = 0;
  }
  void put(std::span<const std::int32_t> ids, std::int32_t segment) {
    std::copy(ids.begin(), ids.end(), at(0));
    if (arrays_.size() > 1) {
      std::fill_n(at(1), ids.size(), segment);
      for (std::size_t i = 0; i < ids.size(); ++i) at(2)[i] = static_cast<std::int32_t>(i);
    }
    used_ += ids.size();
  }
  void give_to(Batch& batch) {
    for (auto& [name, array] : arrays_) batch.emplace(name, std::move(array));
  }

 private:
  std::int32_t* at(std::size_t part) {
    return reinterpret_cast<std::int32_t*>(arrays_[part].second.bytes()) + row_ * length_ + used_;
  }

  std::string name_;
  std::size_t length_, row_ = 0, used_ = 0;
  std::vector<std::pair<std::string, Array>> arrays_;
};

[[noreturn]] void refuse_position(const std::string& position) {
  throw UserError({.what = sentence("'", position.substr(0, 60), "' is no position in data"),
                   .where = "data position",
                   .fix = "give the text that position() gave, as it stands in a checkpoint"});
}

}  // namespace

std::string format_of(const SourceOptions& options) {
  if (options.format.empty()) {
    const std::string ending =
        options.files.empty() ? "" : std::filesystem::path(options.files[0]).extension().string();
    if (!options.targets_file.empty()) return "pairs";
    if (ending == ".tsv") return "tsv";
    for (const char* tokens : {".u16", ".u32", ".npy", ".safetensors"})
      if (ending == tokens) return "tokens";
    return "text";
  }
  if (std::find(kFormats.begin(), kFormats.end(), options.format) != kFormats.end()) return options.format;
  const std::string near = nearest_word(options.format, kFormats);
  throw UserError({.what = sentence("unknown data format '", options.format, "'"),
                   .where = "data option format",
                   .fix = near.empty() ? "choose one of text, documents, lines, tsv, pairs, tokens"
                                       : sentence("did you mean '", near, "'?")});
}

// Where a batch begins.
struct Cursor {
  std::int64_t epoch = 0, example = 0;   // the example's place in the order of its epoch
  std::int64_t batches = 0, tokens = 0;  // made so far
};

struct Batches::State {
  explicit State(const SourceOptions& given)
      : options(given), format(format_of(given)), vocabulary(checked_vocabulary(given, format)) {
    if (options.inputs_length == 0) options.inputs_length = options.length;
    examples = format == "tokens" ? open_tokens(options) : open_text(options, format, vocabulary);
    is_packed = options.pack && !examples->is_stream();
    check_that_one_fits();
  }

  SourceOptions options;
  std::string format;
  Vocabulary vocabulary;
  std::unique_ptr<Examples> examples;
  bool is_packed = false;
  Cursor cursor;  // of the next batch

  static Vocabulary checked_vocabulary(const SourceOptions& options, const std::string& format) {
    check(options, format);
    return Vocabulary::of(options.vocabulary);
  }

  void read(const Cursor& at, Example& to) const {
    const auto epoch = static_cast<std::uint64_t>(at.epoch);
    examples->read(options.shuffle ? Permutation(examples->count(), options.seed, epoch)(at.example) : at.example, to);
  }

  // Cuts what is too long; false if the example is to be left out.
  bool fit(Example& one) const {
    const auto inputs = static_cast<std::size_t>(options.inputs_length);
    const auto targets = static_cast<std::size_t>(options.length);
    const bool is_long = one.inputs.size() > inputs || one.targets.size() > targets;
    if (one.targets.empty() || (is_long && !options.trim)) return false;
    one.inputs.resize(std::min(one.inputs.size(), inputs));
    one.targets.resize(std::min(one.targets.size(), targets));
    return true;
  }

  void check_that_one_fits() const {
    Example one;
    for (std::int64_t i = 0; i < examples->count(); ++i) {
      examples->read(i, one);
      if (fit(one)) return;
    }
    throw UserError(
        {.what = sentence("none of the ", examples->count(), " examples fits into a row of ", options.length),
         .where = options.files[0],
         .fix = "make length and inputs_length larger, or let trim cut the examples"});
  }

  // One row from the cursor on, which moves behind it; false if the epoch has nothing more to put there.
  bool fill_row(std::int64_t row, std::vector<Feature>& features, Cursor& at) const {
    for (Feature& feature : features) feature.begin_row(row);
    std::int32_t segment = 0;
    Example one;
    for (; at.example < examples->count() && (is_packed || segment == 0); ++at.example) {
      read(at, one);
      if (!fit(one)) continue;
      const bool has_room =
          features[0].has_room(one.targets.size()) && (features.size() == 1 || features[1].has_room(one.inputs.size()));
      if (!has_room) break;
      ++segment;
      features[0].put(one.targets, segment);
      if (features.size() > 1) features[1].put(one.inputs, segment);
      at.tokens += static_cast<std::int64_t>(one.targets.size());
    }
    return segment > 0;
  }

  std::optional<Batch> next() {
    std::vector<Feature> features;
    features.emplace_back("targets", "length", options.batch, options.length, is_packed);
    if (examples->has_inputs())
      features.emplace_back("inputs", "inputs_length", options.batch, options.inputs_length, is_packed);
    Cursor at = cursor;
    std::int64_t row = 0;
    while (row < options.batch) {
      if (fill_row(row, features, at)) {
        ++row;
      } else if (options.repeat) {
        ++at.epoch;
        at.example = 0;
      } else {
        break;
      }
    }
    if (row == 0) return std::nullopt;
    ++at.batches;
    cursor = at;
    Batch batch;
    for (Feature& feature : features) feature.give_to(batch);
    return batch;
  }

  // What the batches depend on.
  Json identity() const {
    return {{"format", format},
            {"vocabulary", format == "tokens" ? "" : vocabulary.fingerprint()},
            {"batch", options.batch},
            {"length", options.length},
            {"inputs_length", examples->has_inputs() ? options.inputs_length : 0},
            {"pack", is_packed},
            {"trim", options.trim},
            {"join", options.join},
            {"shuffle", options.shuffle},
            {"seed", options.shuffle ? options.seed : 0},
            {"files", examples->fingerprint()}};
  }

  std::string position() const {
    const Json all = {{"epoch", cursor.epoch},
                      {"example", cursor.example},
                      {"batches", cursor.batches},
                      {"tokens", cursor.tokens},
                      {"data", identity()}};
    return all.dump();
  }

  void seek(const std::string& position) {
    const Json all = Json::parse(position, nullptr, false);
    if (!all.is_object() || !all.contains("data") || !all["data"].is_object()) refuse_position(position);
    const Json mine = identity();
    for (const auto& [key, here] : mine.items()) {
      const Json there = all["data"].contains(key) ? all["data"][key] : Json();
      if (there != here)
        throw UserError({.what = sentence("the position belongs to other data: its ", key, " was ", there.dump(),
                                          ", here it is ", here.dump()),
                         .where = "data position",
                         .fix = "go on with the same files and data options, or begin a new run"});
    }
    Cursor at;
    for (const auto& [key, field] : {std::pair("epoch", &at.epoch), std::pair("example", &at.example),
                                     std::pair("batches", &at.batches), std::pair("tokens", &at.tokens)}) {
      if (!all.contains(key) || !all[key].is_number_integer()) refuse_position(position);
      *field = all[key];
      if (*field < 0) refuse_position(position);
    }
    if (at.example > examples->count()) refuse_position(position);
    cursor = at;
  }
};

Batches::Batches(const SourceOptions& options) : state_(std::make_unique<State>(options)) {}
Batches::~Batches() = default;
Batches::Batches(Batches&&) noexcept = default;
Batches& Batches::operator=(Batches&&) noexcept = default;

std::optional<Batch> Batches::next() { return state_->next(); }
std::string Batches::position() const { return state_->position(); }
void Batches::seek(const std::string& position) { state_->seek(position); }
bool Batches::packed() const { return state_->is_packed; }
bool Batches::has_inputs() const { return state_->examples->has_inputs(); }
std::int64_t Batches::examples() const { return state_->examples->count(); }
std::int64_t Batches::tokens() const { return state_->cursor.tokens; }
std::int64_t Batches::epoch() const { return state_->cursor.epoch; }
const Vocabulary& Batches::vocabulary() const { return state_->vocabulary; }

}  // namespace weft::data
