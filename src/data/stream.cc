#include "data/stream.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/file_bytes.h"
#include "data/shuffle.h"
#include "weft/detail/words.h"

namespace weft::data {

namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kFormats = {"text", "documents", "lines", "tsv", "pairs", "tokens"};

[[noreturn]] void refuse_size(const char* name, std::int64_t value) {
  throw UserError({.code = "data.bad-size",
                   .what = sentence("a batch's ", name, " is ", value),
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
    throw UserError({.code = "data.no-files",
                     .what = "the data has no files",
                     .where = "data option files",
                     .fix = "name one file or more"});
  const bool is_two_files = format == "pairs";
  if (is_two_files != !options.targets_file.empty() || (is_two_files && options.files.size() != 1))
    throw UserError(
        {.code = "data.format-and-targets-file",
         .what = sentence("the format '", format, "' goes with ",
                          is_two_files ? "one file and a targets_file" : "files alone, not a targets_file"),
         .where = "data options files, targets_file",
         .fix = "for two files of lines give format 'pairs', the inputs in files, the targets in targets_file"});
}

Masking masking_of(const SourceOptions& options, const Examples& examples, const Vocabulary& vocabulary) {
  const std::int64_t vocab = options.vocab_limit > 0 ? options.vocab_limit : vocabulary.size();
  if (!(options.mask > 0 && options.mask < 1))
    throw UserError({.code = "data.bad-mask",
                     .what = sentence("the share of masked tokens is ", options.mask),
                     .where = "data option mask",
                     .fix = "give a number above 0 and below 1, such as 0.15; 0 to mask none"});
  if (options.mask_id < Vocabulary::kUnknown || options.mask_id >= vocab)
    throw UserError(
        {.code = "data.bad-mask-id",
         .what = sentence("masked tokens are to be read as ", options.mask_id, ", and ids are 2 to ", vocab - 1),
         .where = "data option mask_id",
         .fix = "give the vocabulary's id for masked tokens, or 2, unknown"});
  if (examples.has_inputs())
    throw UserError({.code = "data.mask-of-pairs",
                     .what = "tokens are to be masked in pairs, which have inputs already",
                     .where = "data options mask, join",
                     .fix = "set join, which makes a pair one sequence"});
  return {options.mask, options.mask_id, vocab, options.seed};
}

[[noreturn]] void refuse_position(const std::string& position) {
  throw UserError({.code = "data.bad-position",
                   .what = sentence("'", position.substr(0, 60), "' is no position in data"),
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
  throw UserError({.code = "data.unknown-format",
                   .what = sentence("unknown data format '", options.format, "'"),
                   .where = "data option format",
                   .fix = near.empty() ? "choose one of text, documents, lines, tsv, pairs, tokens"
                                       : sentence("did you mean '", near, "'?")});
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

  bool has_room(std::int64_t count) const { return used_ + static_cast<std::size_t>(count) <= length_; }
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
    leave(static_cast<std::int64_t>(ids.size()));
  }
  void leave(std::int64_t count) { used_ += static_cast<std::size_t>(count); }  // as padding
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

namespace {

Vocabulary checked_vocabulary(const SourceOptions& options, const std::string& format) {
  check(options, format);
  return Vocabulary::of(options.vocabulary);
}

}  // namespace

Stream::Stream(const SourceOptions& options)
    : options_(options),
      format_(format_of(options)),
      vocabulary_(checked_vocabulary(options, format_)),
      rows_end_(options.batch) {
  if (options_.inputs_length == 0) options_.inputs_length = options_.length;
  examples_ = format_ == "tokens" ? open_tokens(options_) : open_text(options_, format_, vocabulary_);
  is_packed_ = options_.pack && !examples_->is_stream();
  if (options_.mask != 0) {
    masking_ = masking_of(options_, *examples_, vocabulary_);
    options_.inputs_length = options_.length;
  }
  check_that_one_fits();
}

std::int64_t Stream::index(const Cursor& at) const {
  const auto epoch = static_cast<std::uint64_t>(at.epoch);
  return options_.shuffle ? Permutation(examples_->count(), options_.seed, epoch)(at.example) : at.example;
}

// The part of an example of this size that goes into a row: cut if it is too long, empty if it is to be left out.
ExampleSize Stream::fitted(const ExampleSize& size) const {
  const bool is_long = size.inputs > options_.inputs_length || size.targets > options_.length;
  if (is_long && !options_.trim) return {};
  return {std::min(size.inputs, options_.inputs_length), std::min(size.targets, options_.length)};
}

void Stream::check_that_one_fits() const {
  Example one;
  for (std::int64_t i = 0; i < examples_->count(); ++i) {
    examples_->read(i, one);
    if (fitted(size_of(one)).targets > 0) return;
  }
  throw UserError(
      {.code = "data.no-example-fits",
       .what = sentence("none of the ", examples_->count(), " examples fits into a row of ", options_.length),
       .where = options_.files[0],
       .fix = "make length and inputs_length larger, or let trim cut the examples"});
}

namespace {

// Cuts ids that are longer than a row and ends them there.
void end_within(std::vector<std::int32_t>& ids, std::int64_t length) {
  if (static_cast<std::int64_t>(ids.size()) <= length) return;
  ids.resize(static_cast<std::size_t>(length));
  ids.back() = Vocabulary::kEnd;
}

}  // namespace

void Stream::read(const Cursor& at, Example& to) const {
  const std::int64_t number = index(at);
  examples_->read(number, to);
  if (options_.ensure_end && options_.trim) {
    end_within(to.targets, options_.length);
    end_within(to.inputs, options_.inputs_length);
  }
  if (masking_) masking_->apply(to, at.epoch, number);
}

// Fills one row from the cursor and advances the cursor; false if the epoch has no more examples.
bool Stream::fill_row(std::int64_t row, std::vector<Feature>& features, Cursor& at) const {
  const bool is_wanted = row >= rows_begin_ && row < rows_end_;
  for (Feature& feature : features) feature.begin_row(row);
  std::int32_t segment = 0;
  Example one;
  for (; at.example < examples_->count() && (is_packed_ || segment == 0); ++at.example) {
    if (is_wanted) read(at, one);
    ExampleSize size = fitted(is_wanted ? size_of(one) : examples_->size(index(at)));
    if (size.targets == 0) continue;
    if (masking_) size.inputs = size.targets;
    const bool has_room =
        features[0].has_room(size.targets) && (features.size() == 1 || features[1].has_room(size.inputs));
    if (!has_room) break;
    ++segment;
    for (Feature& feature : features) {
      const bool is_targets = &feature == &features[0];
      const std::int64_t count = is_targets ? size.targets : size.inputs;
      const std::vector<std::int32_t>& ids = is_targets ? one.targets : one.inputs;
      if (is_wanted) feature.put(std::span(ids).first(static_cast<std::size_t>(count)), segment);
      else feature.leave(count);
    }
    at.tokens += size.targets;
  }
  return segment > 0;
}

std::optional<Batch> Stream::next() {
  std::vector<Feature> features;
  features.emplace_back("targets", "length", options_.batch, options_.length, is_packed_);
  if (examples_->has_inputs())
    features.emplace_back("inputs", "inputs_length", options_.batch, options_.inputs_length, is_packed_);
  if (masking_) features.emplace_back("inputs", "length", options_.batch, options_.length, is_packed_);
  Cursor at = cursor_;
  std::int64_t row = 0;
  while (row < options_.batch) {
    if (fill_row(row, features, at)) {
      ++row;
    } else if (options_.repeat) {
      ++at.epoch;
      at.example = 0;
    } else {
      break;
    }
  }
  if (row == 0) return std::nullopt;
  ++at.batches;
  cursor_ = at;
  Batch batch;
  for (Feature& feature : features) feature.give_to(batch);
  return batch;
}

// The data and options that the batches depend on.
nlohmann::ordered_json Stream::identity() const {
  Json all = {{"format", format_},
              {"vocabulary", format_ == "tokens" ? "" : vocabulary_.fingerprint()},
              {"batch", options_.batch},
              {"length", options_.length},
              {"inputs_length", examples_->has_inputs() ? options_.inputs_length : 0},
              {"pack", is_packed_},
              {"trim", options_.trim},
              {"join", options_.join},
              {"shuffle", options_.shuffle},
              {"seed", options_.shuffle ? options_.seed : 0},
              {"files", examples_->fingerprint()}};
  if (options_.ensure_end) all["ensure_end"] = true;
  if (masking_) {
    all["mask"] = options_.mask;
    all["mask_id"] = options_.mask_id;
    all["seed"] = options_.seed;
  }
  return all;
}

std::string Stream::position() const {
  const Json all = {{"epoch", cursor_.epoch},
                    {"example", cursor_.example},
                    {"batches", cursor_.batches},
                    {"tokens", cursor_.tokens},
                    {"data", identity()}};
  return all.dump();
}

void Stream::seek(const std::string& position) {
  const Json all = Json::parse(position, nullptr, false);
  if (!all.is_object() || !all.contains("data") || !all["data"].is_object()) refuse_position(position);
  const Json mine = identity();
  const auto printed = [](const Json& value) { return value.is_null() ? std::string("not set") : value.dump(); };
  Json either = mine;
  either.update(all["data"]);
  for (const auto& [key, unused] : either.items()) {
    const Json there = all["data"].value(key, Json()), here = mine.value(key, Json());
    if (there != here)
      throw UserError({.code = "data.position-of-other-data",
                       .what = sentence("the position belongs to other data: its ", key, " was ", printed(there),
                                        ", here it is ", printed(here)),
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
  if (at.example > examples_->count()) refuse_position(position);
  cursor_ = at;
}

void Stream::only_rows(std::int64_t begin, std::int64_t end) {
  if (begin < 0 || begin > end || end > options_.batch)
    throw UserError({.code = "data.bad-rows",
                     .what = sentence("a batch of ", options_.batch, " has no rows ", begin, " to ", end),
                     .where = "data rows",
                     .fix = sentence("give a begin and an end from 0 to ", options_.batch)});
  rows_begin_ = begin;
  rows_end_ = end;
}

}  // namespace weft::data
