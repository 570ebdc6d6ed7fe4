// weft export: writes the weights of a checkpoint as plain .safetensors of unsplit tensors, for other tools, or the
// training step of a config as StableHLO (export_stablehlo.h).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "export_stablehlo.h"
#include "name_rules.h"
#include "options.h"
#include "weft/checkpoint.h"
#include "weft/detail/safetensors.h"
#include "weft/detail/written_file.h"
#include "weft/tensor_file.h"

namespace weft::tools {

namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::int64_t>;

struct ExportWords {
  std::string checkpoint, out;
  std::optional<std::string> dtype, map, max_shard;
  bool split_qkv = false, optimizer_state = false;
  StableHloWords stablehlo = {};
};

// A tensor to write: a box of a variable, reshaped and optionally transposed.
struct Entry {
  std::string variable;
  Numbers begin, sizes;  // of the box
  StoredTensor stored;   // as it is written
  bool transpose = false;

  std::uint64_t bytes() const {
    std::uint64_t all = size_of(stored.dtype);
    for (const std::int64_t size : stored.sizes) all *= static_cast<std::uint64_t>(size);
    return all;
  }
};

class Exporter {
 public:
  Exporter(const Checkpoint& checkpoint, const ExportWords& words)
      : checkpoint_(checkpoint), rules_(words.map ? NameRules::read(*words.map) : NameRules()) {
    for (const auto& [name, variable] : checkpoint.variables()) {
      if (!words.optimizer_state && !variable.slot_of.empty()) continue;
      const DType dtype = words.dtype && is_float(variable.dtype) ? dtype_of(*words.dtype) : variable.dtype;
      Numbers sizes;
      for (const Dim& dim : variable.shape) sizes.push_back(dim.size);
      const std::vector<std::string> parts = words.split_qkv ? qkv_parts(name) : std::vector<std::string>{};
      const std::optional<std::size_t> axis = variable.shape.find("qkv");
      if (parts.empty() || !axis || sizes[*axis] != static_cast<std::int64_t>(parts.size())) {
        add(name, name, Numbers(sizes.size(), 0), sizes, sizes, dtype);
        continue;
      }
      Numbers box = sizes, part_sizes = sizes;
      box[*axis] = 1;
      part_sizes.erase(part_sizes.begin() + static_cast<std::ptrdiff_t>(*axis));
      for (std::size_t i = 0; i < parts.size(); ++i) {
        Numbers begin(sizes.size(), 0);
        begin[*axis] = static_cast<std::int64_t>(i);
        add(name, parts[i], begin, box, part_sizes, dtype);
      }
    }
    check_names();
    // Wide dtypes first, then by name.
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(size_of(b.stored.dtype), a.stored.name) < std::pair(size_of(a.stored.dtype), b.stored.name);
    });
  }

  // Writes one file, or a folder with files of at most `most` bytes.
  void write(const std::string& out, std::uint64_t most) const {
    if (fs::path(out).extension() == ".safetensors") {
      write_file(out, entries_);
      return;
    }
    const std::vector<std::vector<Entry>> files = grouped(most);
    std::error_code error;
    fs::create_directories(out, error);
    if (error) cannot_write(out, error.message());
    if (files.size() == 1) {
      write_file((fs::path(out) / "model.safetensors").string(), files[0]);
      return;
    }
    nlohmann::ordered_json index = {{"metadata", {{"total_size", total()}}}, {"weight_map", nlohmann::json::object()}};
    for (std::size_t i = 0; i < files.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, files.size());
      write_file((fs::path(out) / name).string(), files[i]);
      for (const Entry& entry : files[i]) index["weight_map"][entry.stored.name] = name;
    }
    write_beside((fs::path(out) / "model.safetensors.index.json").string(),
                 [&](std::ofstream& file) { file << index.dump(2) << "\n"; });
  }

  std::size_t count() const { return entries_.size(); }

  std::uint64_t total() const {
    std::uint64_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.bytes();
    return bytes;
  }

 private:
  void add(const std::string& variable, const std::string& name, const Numbers& begin, const Numbers& box,
           const Numbers& sizes, DType dtype) {
    const Renamed rule = rules_(name);
    if (!rule.name) return;
    Numbers written = reshaped(sizes, rule.sizes, name);
    if (rule.transpose) {
      if (written.size() != 2)
        throw UserError({.code = "export.not-a-matrix",
                         .what = "tensor '" + name + "' " + sizes_text(written) + " is no matrix to be transposed",
                         .where = "--map",
                         .fix = "give the rule \"sizes\" of two dims"});
      std::swap(written[0], written[1]);
    }
    entries_.push_back({variable, begin, box, {*rule.name, dtype, written}, rule.transpose});
  }

  void check_names() const {
    std::map<std::string, std::string> seen;
    for (const Entry& entry : entries_)
      if (const auto [other, is_new] = seen.emplace(entry.stored.name, entry.variable); !is_new)
        throw UserError({.code = "export.duplicate-name",
                         .what = "variables '" + other->second + "' and '" + entry.variable +
                                 "' would both be called '" + entry.stored.name + "'",
                         .where = "--map",
                         .fix = "let the rules give every tensor a different name"});
  }

  std::vector<std::vector<Entry>> grouped(std::uint64_t most) const {
    std::vector<std::vector<Entry>> files(1);
    std::uint64_t bytes = 0;
    for (const Entry& entry : entries_) {
      if (!files.back().empty() && bytes + entry.bytes() > most) {
        files.emplace_back();
        bytes = 0;
      }
      files.back().push_back(entry);
      bytes += entry.bytes();
    }
    return files;
  }

  [[noreturn]] static void cannot_write(const std::string& path, const std::string& why) {
    throw RunError({.code = "export.cannot-write",
                    .what = "cannot write '" + path + "': " + why,
                    .where = path,
                    .fix = "see that its folder exists, that you may write there and that the disk has room"});
  }

  template <class Body>
  static void write_beside(const std::string& path, const Body& body) {
    detail::WrittenFile file(path);
    if (!file.stream()) cannot_write(path, std::strerror(errno));
    errno = 0;
    body(file.stream());
    if (!file.finish()) cannot_write(path, std::strerror(errno));
  }

  void write_file(const std::string& path, const std::vector<Entry>& entries) const {
    std::vector<StoredTensor> tensors;
    for (const Entry& entry : entries) tensors.push_back(entry.stored);
    const std::string header = safetensors_header(path, tensors, {{"format", "pt"}});
    write_beside(path, [&](std::ofstream& file) {
      file << header;
      for (const Entry& entry : entries) {
        if (entry.transpose) write_transposed(file, entry);
        else write_rows(file, entry);
        if (!file) return;
      }
    });
  }

  // Writes some rows at a time, along the first dim with more than one row.
  void write_rows(std::ofstream& file, const Entry& entry) const {
    constexpr std::int64_t kMost = 1 << 22;  // elements
    std::size_t d = 0;
    while (d + 1 < entry.sizes.size() && entry.sizes[d] == 1) ++d;
    if (entry.sizes.empty()) {
      put(file, part(entry.variable, {}, {}, entry.stored.dtype));
      return;
    }
    std::int64_t row = 1;
    for (std::size_t i = d + 1; i < entry.sizes.size(); ++i) row *= entry.sizes[i];
    const std::int64_t step = std::max<std::int64_t>(1, kMost / row);
    Numbers begin = entry.begin, sizes = entry.sizes;
    for (std::int64_t first = 0; first < entry.sizes[d] && file; first += step) {
      begin[d] = entry.begin[d] + first;
      sizes[d] = std::min(step, entry.sizes[d] - first);
      put(file, part(entry.variable, begin, sizes, entry.stored.dtype));
    }
  }

  void write_transposed(std::ofstream& file, const Entry& entry) const {
    const Array flat = part(entry.variable, entry.begin, entry.sizes, entry.stored.dtype);
    const Dim columns{"columns", entry.stored.sizes[0]}, rows{"rows", entry.stored.sizes[1]};
    Array matrix({rows, columns}, flat.dtype());
    std::memcpy(matrix.bytes(), flat.bytes(), bytes_of(flat));
    put(file, matrix.transposed({columns, rows}));
  }

  // A box of a variable in the dtype of the file, as one row.
  Array part(const std::string& variable, const Numbers& begin, const Numbers& sizes, DType dtype) const {
    std::int64_t elements = 1;
    for (const std::int64_t size : sizes) elements *= size;
    Array flat({{"element", elements}}, checkpoint_.variables().at(variable).dtype);
    checkpoint_.read(variable, begin, sizes, {flat.bytes(), bytes_of(flat)});
    return flat.dtype() == dtype ? flat : flat.cast(dtype);
  }

  static std::size_t bytes_of(const Array& array) {
    return static_cast<std::size_t>(array.elements()) * size_of(array.dtype());
  }

  static void put(std::ofstream& file, const Array& array) {
    file.write(reinterpret_cast<const char*>(array.bytes()), static_cast<std::streamsize>(bytes_of(array)));
  }

  const Checkpoint& checkpoint_;
  NameRules rules_;
  std::vector<Entry> entries_;
};

void run_export(const ExportWords& words) {
  const bool weights = !words.checkpoint.empty() || !words.out.empty(), module = !words.stablehlo.out.empty();
  if (weights == module || words.checkpoint.empty() != words.out.empty())
    throw UserError(
        {.code = "export.what",
         .what = "export writes either the weights of a checkpoint or the step of a config",
         .where = "command line",
         .fix = "write weft export CHECKPOINT --out FILE, or weft export --config my.toml --stablehlo FILE"});
  if (module) return export_stablehlo(words.stablehlo);
  if (words.dtype && !is_float(dtype_of(*words.dtype)))
    throw UserError({.code = "export.unsupported-dtype",
                     .what = "weights cannot be exported as " + *words.dtype,
                     .where = "--dtype " + *words.dtype,
                     .fix = "choose f32, bf16, f16 or f64"});
  if (words.max_shard && fs::path(words.out).extension() == ".safetensors")
    throw UserError({.code = "export.shard-size-of-single-file",
                     .what = "--max-shard has no effect on a single file " + words.out,
                     .where = "command line",
                     .fix = "give --out a folder, or leave out --max-shard"});
  const std::uint64_t most = parse_bytes(words.max_shard.value_or("5GB"), "--max-shard")[0];
  const Checkpoint checkpoint = Checkpoint::open(words.checkpoint);
  const Exporter exporter(checkpoint, words);
  exporter.write(words.out, most);
  std::cout << exporter.count() << " tensors, " << exporter.total() << " bytes, of " << checkpoint.path() << " are in "
            << words.out << "\n";
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("export", "Write a checkpoint's weights as plain .safetensors, or a step as StableHLO");
  const auto words = std::make_shared<ExportWords>();
  sub->add_option("checkpoint", words->checkpoint, "A checkpoint, or a folder of checkpoints: then the latest");
  sub->add_option("--out", words->out, "A file that ends in .safetensors, or a folder");
  sub->add_option("--dtype", words->dtype, "f32, bf16, f16 or f64 for all floats; default: as they are stored");
  sub->add_option("--map", words->map, "Rules for names and shapes, a JSON file: see docs/checkpoints.md");
  sub->add_option("--max-shard", words->max_shard, "The largest size of a file in the folder; default: 5GB");
  sub->add_flag("--split-qkv", words->split_qkv, "Write …/qkv/… as …/q/…, …/k/… and …/v/…")->disable_flag_override();
  sub->add_flag("--optimizer-state", words->optimizer_state, "Also the optimizer's state")->disable_flag_override();
  add_stablehlo_options(*sub, words->stablehlo);
  sub->callback([words, &action] { action = [words] { run_export(*words); }; });
}

}  // namespace weft::tools
