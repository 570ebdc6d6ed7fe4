#include "train/checkpoint_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "train/checkpoint_files.h"
#include "weft/error.h"

namespace weft::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "weft checkpoint";
constexpr int kVersion = 1;
constexpr const char* kChecksum = "\"checksum\"";
constexpr const char* kTakeAnother = "take another checkpoint, or a copy of this checkpoint";

[[noreturn]] void refuse(ErrorCode code, const std::string& path, const std::string& what) {
  throw UserError({.code = code, .what = what, .where = path, .fix = kTakeAnother});
}

// Reads JSON of which each part must be what the format says.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const { checkpoint::refuse(code, path_, what); }

  Json parse(std::string_view text) const {
    constexpr int kDeepest = 8;
    std::vector<std::set<std::string>> keys;
    try {
      return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth > kDeepest) refuse("checkpoint-index.too-deep", "the index is nested deeper than its format");
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
          refuse("checkpoint-index.duplicate-key",
                 sentence("the index names '", parsed.get<std::string>(), "' twice in one place"));
        return true;
      });
    } catch (const Json::exception& error) {
      std::string why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
      if (const std::size_t end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
      refuse("checkpoint-index.not-json", sentence("the index is not JSON: ", why));
    }
  }

  // An object with these keys, of which those after `required` may be absent.
  void check_keys(const Json& json, const std::string& of, const std::vector<std::string>& keys,
                  std::size_t required) const {
    if (!json.is_object()) refuse("checkpoint-index.not-an-object", sentence(of, " is no object"));
    for (const auto& [key, value] : json.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        refuse("checkpoint-index.unknown-key", sentence(of, " has an unknown key '", key.substr(0, 40), "'"));
    for (std::size_t i = 0; i < required; ++i)
      if (!json.contains(keys[i])) refuse("checkpoint-index.missing-key", sentence(of, " lacks its '", keys[i], "'"));
  }

  std::int64_t number(const Json& json, const std::string& of) const {
    const bool is_negative = json.is_number_integer() && !json.is_number_unsigned();
    if (!json.is_number_integer() || is_negative || json.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
      refuse("checkpoint-index.not-a-count", sentence(of, " is no number from 0 on"));
    return json.get<std::int64_t>();
  }

  std::string text(const Json& json, const std::string& of) const {
    if (!json.is_string()) refuse("checkpoint-index.not-a-text", sentence(of, " is no text"));
    return json.get<std::string>();
  }

  std::vector<std::int64_t> numbers(const Json& json, const std::string& of) const {
    if (!json.is_array()) refuse("checkpoint-index.not-a-list", sentence(of, " is no list"));
    std::vector<std::int64_t> all;
    for (const Json& each : json) all.push_back(number(each, of));
    return all;
  }

  std::uint32_t checksum(const Json& json, const std::string& of) const {
    const std::string digits = text(json, of);
    if (digits.size() != 8 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
      refuse("checkpoint-index.not-a-checksum", sentence(of, " is no checksum of 8 digits"));
    return static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16));
  }

  Piece piece(const Json& json, const std::string& of) const {
    check_keys(json, of, {"file", "begin", "sizes", "crc32c"}, 4);
    return {.file = text(json["file"], of + ", file,"),
            .begin = numbers(json["begin"], of + ", begin,"),
            .sizes = numbers(json["sizes"], of + ", sizes,"),
            .crc = checksum(json["crc32c"], of + ", crc32c,")};
  }

  IndexVariable variable(const Json& json, const std::string& of) const {
    check_keys(json, of, {"dtype", "dims", "sizes", "pieces", "slot_of"}, 4);
    IndexVariable out;
    if (json.contains("slot_of")) out.variable.slot_of = text(json["slot_of"], of + ", slot_of,");
    const std::vector<std::int64_t> sizes = numbers(json["sizes"], of + ", sizes,");
    if (!json["dims"].is_array() || json["dims"].size() != sizes.size())
      refuse("checkpoint-index.dim-count-mismatch",
             sentence(of, " has not a dim for each of its ", sizes.size(), " sizes"));
    std::vector<Dim> dims;
    for (std::size_t d = 0; d < sizes.size(); ++d) dims.push_back({text(json["dims"][d], of + ", dims,"), sizes[d]});
    try {
      out.variable.dtype = dtype_of(text(json["dtype"], of + ", dtype,"));
      out.variable.shape = Shape(dims);
    } catch (const UserError& error) {
      refuse("checkpoint-index.bad-shape", sentence(of, ": ", error.text().what));
    }
    if (!json["pieces"].is_array()) refuse("checkpoint-index.pieces-not-a-list", sentence(of, ", pieces, is no list"));
    for (const Json& each : json["pieces"]) out.pieces.push_back(piece(each, of + ", a piece"));
    return out;
  }

 private:
  const std::string& path_;
};

// Holds a variable's pieces to the invariant of IndexVariable.
class Tiling {
 public:
  Tiling(const Reader& reader, const std::string& name, const IndexVariable& index)
      : reader_(reader), name_(name), index_(index), whole_(sizes_of(index.variable.shape)) {}

  void check_each() const {
    for (const Piece& piece : index_.pieces) {
      bool fits = piece.begin.size() == whole_.size() && piece.sizes.size() == whole_.size();
      for (std::size_t d = 0; fits && d < whole_.size(); ++d)
        fits = piece.sizes[d] > 0 && piece.begin[d] <= whole_[d] && piece.sizes[d] <= whole_[d] - piece.begin[d];
      if (!fits)
        reader_.refuse("checkpoint-index.piece-out-of-range",
                       sentence("variable '", name_, "' ", index_.variable.shape, " has no place for the piece ",
                                list_text(piece.sizes), " at ", list_text(piece.begin)));
    }
  }

  void check_all() const {
    if (index_.pieces.empty())
      reader_.refuse("checkpoint-index.no-pieces", sentence("variable '", name_, "' has no pieces"));
    const std::vector<std::int64_t>& box = index_.pieces[0].sizes;
    std::set<std::vector<std::int64_t>> begins;
    std::set<std::string> files;
    for (const Piece& piece : index_.pieces) {
      bool fits = piece.sizes == box;
      for (std::size_t d = 0; fits && d < box.size(); ++d) fits = piece.begin[d] % box[d] == 0;
      if (!fits || !begins.insert(piece.begin).second)
        reader_.refuse("checkpoint-index.misplaced-piece",
                       sentence("variable '", name_, "': the piece ", list_text(piece.sizes), " at ",
                                list_text(piece.begin), " overlaps others or leaves gaps"));
      if (!files.insert(piece.file).second)
        reader_.refuse("checkpoint-index.two-pieces-in-file",
                       sentence("variable '", name_, "' has two pieces in ", piece.file));
    }
    std::vector<std::int64_t> at(box.size(), 0);  // over the grid, until one is not there
    for (std::size_t d = 0;; d = 0) {
      if (!begins.contains(at))
        reader_.refuse("checkpoint-index.missing-piece",
                       sentence("variable '", name_, "' lacks the piece ", list_text(box), " at ", list_text(at)));
      while (d < at.size() && (at[d] += box[d]) >= whole_[d]) at[d++] = 0;
      if (d == at.size()) return;
    }
  }

 private:
  const Reader& reader_;
  const std::string& name_;
  const IndexVariable& index_;
  std::vector<std::int64_t> whole_;
};

}  // namespace

Index parse_unchecked(const std::string& path, std::string_view text, bool is_whole) {
  const Reader reader(path);
  const Json json = reader.parse(text);
  reader.check_keys(json, "the index", {"format", "version", "step", "mesh", "variables", "files", "texts", "checksum"},
                    8);
  if (reader.text(json["format"], "format") != kFormat)
    reader.refuse("checkpoint-index.other-format", "the index is of no checkpoint of ours");
  if (const std::int64_t version = reader.number(json["version"], "version"); version != kVersion)
    reader.refuse("checkpoint-index.unknown-version",
                  sentence("the checkpoint has version ", version, ", but this program reads ", kVersion));
  Index index{.step = reader.number(json["step"], "step"),
              .mesh = reader.text(json["mesh"], "mesh"),
              .variables = {},
              .files = {},
              .texts = {}};
  for (const char* key : {"variables", "files", "texts"})
    if (!json[key].is_object())
      reader.refuse("checkpoint-index.section-not-an-object", sentence("'", key, "' is no object"));
  for (const auto& [name, bytes] : json["files"].items()) {
    if (!is_plain_name(name))
      reader.refuse("checkpoint-index.bad-file-name", sentence("'", name, "' is no name of a file in the checkpoint"));
    index.files[name] = static_cast<std::uint64_t>(reader.number(bytes, sentence("file '", name, "'")));
  }
  for (const auto& [name, about] : json["texts"].items()) {
    if (!is_text_name(name))
      reader.refuse("checkpoint-index.bad-text-name", sentence("'", name, "' is no name of a text in the checkpoint"));
    const std::string of = sentence("text '", name, "'");
    reader.check_keys(about, of, {"bytes", "crc32c"}, 2);
    index.texts[name] = {static_cast<std::uint64_t>(reader.number(about["bytes"], of)),
                         reader.checksum(about["crc32c"], of)};
  }
  for (const auto& [name, about] : json["variables"].items()) {
    const IndexVariable& variable = index.variables[name] = reader.variable(about, sentence("variable '", name, "'"));
    for (const Piece& piece : variable.pieces)
      if (!index.files.contains(piece.file))
        reader.refuse("checkpoint-index.unlisted-file",
                      sentence("variable '", name, "' lies in '", piece.file, "', which is not among the files"));
    const Tiling tiling(reader, name, variable);
    tiling.check_each();
    if (is_whole) tiling.check_all();
  }
  return index;
}

Index parse_index(const std::string& path, std::string_view text, bool is_whole) {
  Index index = parse_unchecked(path, text, is_whole);
  const std::size_t end = text.rfind(kChecksum);  // of what stands before it
  const std::string want = sentence(kChecksum, ":\"", hex(crc32c(text.substr(0, end))), "\"}\n");
  if (end == std::string_view::npos || text.substr(end) != want)
    refuse("checkpoint-index.wrong-checksum", path, "the index is not as it was written: its checksum is another");
  return index;
}

std::string to_text(const Index& index) {
  const auto dump = [](const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string out = sentence("{\"format\":\"", kFormat, "\",\"version\":", kVersion, ",\"step\":", index.step,
                             ",\"mesh\":", dump(index.mesh), ",\n\"variables\":{");
  const char* comma = "\n";
  for (const auto& [name, of] : index.variables) {
    nlohmann::ordered_json about = {{"dtype", name_of(of.variable.dtype)},
                                    {"dims", of.variable.shape.names()},
                                    {"sizes", sizes_of(of.variable.shape)}};
    if (!of.variable.slot_of.empty()) about["slot_of"] = of.variable.slot_of;
    about["pieces"] = nlohmann::ordered_json::array();
    for (const Piece& p : of.pieces)
      about["pieces"].push_back({{"file", p.file}, {"begin", p.begin}, {"sizes", p.sizes}, {"crc32c", hex(p.crc)}});
    out += sentence(std::exchange(comma, ",\n"), dump(name), ":", dump(about));
  }
  nlohmann::ordered_json texts = nlohmann::ordered_json::object();
  for (const auto& [name, about] : index.texts) texts[name] = {{"bytes", about.bytes}, {"crc32c", hex(about.crc)}};
  out += sentence("},\n\"files\":", dump(index.files), ",\n\"texts\":", dump(texts), ",\n");
  return out + sentence(kChecksum, ":\"", hex(crc32c(out)), "\"}\n");
}

void merge(Index& index, const Index& more) {
  index.files.insert(more.files.begin(), more.files.end());
  for (const auto& [name, variable] : more.variables) {
    const auto found = index.variables.find(name);
    internal_check(found != index.variables.end() && found->second.variable.shape == variable.variable.shape,
                   "processes save unlike variables");
    found->second.pieces.insert(found->second.pieces.end(), variable.pieces.begin(), variable.pieces.end());
  }
}

bool is_plain_name(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) < 32 || c == '/' || c == '\\'; };
  return !name.empty() && name.size() <= kLongest && name[0] != '.' && std::none_of(name.begin(), name.end(), is_odd);
}

bool is_text_name(const std::string& name) {
  return is_plain_name(name) && name != "index.json" && !name.starts_with("shard-");
}

void check_state(const CheckpointState& state, const std::string& where) {
  if (state.step < 0)
    throw UserError({.code = "checkpoint.negative-step",
                     .what = sentence("a checkpoint of step ", state.step, " cannot be saved"),
                     .where = where,
                     .fix = "count steps from 0"});
  for (const auto& [name, text] : state.texts)
    if (!is_text_name(name))
      throw UserError({.code = "checkpoint.bad-text-name",
                       .what = sentence("a checkpoint cannot have a text called '", name, "'"),
                       .where = where,
                       .fix = "choose the name of a file, without folders, that begins neither with '.' nor with "
                              "\"shard-\" and is not index.json"});
}

std::string shard_name(ProcessorId processor) { return sentence("shard-", processor, ".safetensors"); }

std::string hex(std::uint32_t number) {
  std::string out(8, '0');
  for (std::size_t i = 8; i-- > 0; number >>= 4) out[i] = "0123456789abcdef"[number & 15];
  return out;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  std::string out;
  for (const std::int64_t number : numbers) out += sentence(out.empty() ? "" : " ", number);
  return "[" + out + "]";
}

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.size);
  return sizes;
}

}  // namespace weft::checkpoint
