// weft import: makes a checkpoint from plain .safetensors of other tools.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "name_rules.h"
#include "options.h"
#include "weft/checkpoint.h"
#include "weft/tensor_file.h"
#include "weft/detail/train_parts.h"
#include "weft/detail/words.h"

namespace weft::tools {

namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::int64_t>;

struct ImportWords {
  std::vector<std::string> files, set;
  std::string out;
  std::optional<std::string> config, like, model, dtype, map;
  std::int64_t step = 0;
  bool join_qkv = false, allow_unused = false;
};

// The file and name that hold a variable or a part of it.
struct Source {
  const TensorFile* file = nullptr;
  std::string name;
  Renamed rule;
};

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    if (files.size() == before)
      throw UserError({.code = "import.no-files",
                       .what = "the folder '" + path + "' has no .safetensors",
                       .where = path,
                       .fix = "name .safetensors files, or a folder that has some"});
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

// The weights that the checkpoint must have, with their dims.
std::map<std::string, Shape> wanted(const ImportWords& words) {
  std::map<std::string, Shape> shapes;
  if (words.like.has_value() + words.model.has_value() + words.config.has_value() != 1)
    throw UserError({.code = "import.no-model",
                     .what = "files know no names of dims, and it is not said whose they are",
                     .where = "command line",
                     .fix = "give one of --config, with the config of the model, --like, with a checkpoint of it, or "
                            "--model, with its --set"});
  if (words.like) {
    const Checkpoint like = Checkpoint::open(*words.like);
    for (const auto& [name, variable] : like.variables())
      if (variable.slot_of.empty()) shapes[name] = variable.shape;
  } else if (words.config) {
    shapes = train::weight_shapes(train::completed(train::read_config(*words.config)));
  } else {
    const models::Model model = model_of(
        {.name = *words.model, .more = {}, .mesh = {}, .layout = {}, .memory = {}, .set = words.set, .store = {}});
    for (const Tensor& variable : model.graph.variables()) shapes[variable_name(variable)] = variable.shape();
  }
  return shapes;
}

class Importer {
 public:
  explicit Importer(const ImportWords& words) : words_(words), wanted_(wanted(words)) {
    const NameRules rules = words.map ? NameRules::read(*words.map) : NameRules();
    for (const std::string& path : files_of(words.files))
      files_.push_back(std::make_unique<TensorFile>(TensorFile::open(path)));
    for (const auto& file : files_)
      for (const auto& [name, tensor] : file->tensors()) {
        const Renamed rule = rules(name);
        if (!rule.name) continue;
        if (!sources_.emplace(*rule.name, Source{file.get(), name, rule}).second)
          throw UserError({.code = "import.duplicate-name",
                           .what = "two tensors would be called '" + *rule.name + "', one of them '" + name + "'",
                           .where = file->path(),
                           .fix = "let the rules of --map give every tensor a different name, or leave it out"});
      }
    for (const auto& [name, shape] : wanted_) choose(name, shape);
    if (!words.allow_unused) check_used();
  }

  void write() const {
    CheckpointState state{.step = words_.step};
    if (words_.config) state.texts = train::stored_texts(train::completed(train::read_config(*words_.config)));
    write_checkpoint(words_.out, state, variables_, [&](const std::string& name) { return value(name); });
  }

  std::size_t count() const { return variables_.size(); }

 private:
  void choose(const std::string& name, const Shape& shape) {
    std::vector<std::string> names{name};
    if (words_.join_qkv && !sources_.contains(name) && shape.has("qkv")) names = qkv_parts(name);
    for (const std::string& part : names) {
      const auto found = sources_.find(part);
      if (found == sources_.end()) missing(name, part);
      chosen_[name].push_back(found->second);
      used_.push_back(part);
    }
    const std::optional<DType> stored = chosen_[name][0].file->tensors().at(chosen_[name][0].name).dtype;
    DType dtype = stored.value_or(DType::kF32);  // an unsupported dtype is refused when it is read
    if (words_.dtype && is_float(dtype)) dtype = dtype_of(*words_.dtype);
    variables_[name] = {shape, dtype};
  }

  [[noreturn]] void missing(const std::string& variable, const std::string& name) const {
    std::vector<std::string> known;
    for (const auto& [other, source] : sources_) known.push_back(other);
    const std::string near = nearest_word(name, known);
    throw UserError(
        {.code = "import.missing-tensor",
         .what = "the files have no tensor '" + name + "', which variable '" + variable + "' is to be",
         .where = words_.files[0],
         .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") +
                std::string("give rules for its name with --map; --join-qkv joins …/q/…, …/k/… and …/v/…")});
  }

  void check_used() const {
    std::string unused;
    for (const auto& [name, source] : sources_)
      if (std::find(used_.begin(), used_.end(), name) == used_.end()) unused += (unused.empty() ? "" : ", ") + name;
    if (!unused.empty())
      throw UserError(
          {.code = "import.unused-tensors",
           .what = "no variable takes these tensors of the files: " + unused,
           .where = words_.files[0],
           .fix = "give rules for their names with --map, leave them out with \"to\": null, or say --allow-unused"});
  }

  Array value(const std::string& name) const {
    const CheckpointVariable& variable = variables_.at(name);
    const std::vector<Source>& parts = chosen_.at(name);
    if (parts.size() == 1) return part(parts[0], variable.shape).cast(variable.dtype);
    // Concatenated along qkv.
    const std::size_t axis = variable.shape.position("qkv");
    if (variable.shape[axis].size != static_cast<std::int64_t>(parts.size()))
      misfit(parts[0], variable.shape, "q, k and v cannot be joined to");
    std::vector<Dim> dims = variable.shape.dims();
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= dims[d].size;
    Array whole(variable.shape, variable.dtype);
    const std::size_t run = size_of(variable.dtype) * static_cast<std::size_t>(whole.elements() / outer) / parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Array one = part(parts[i], Shape(dims)).cast(variable.dtype);
      for (std::size_t row = 0; row < static_cast<std::size_t>(outer); ++row)
        std::memcpy(whole.bytes() + (row * parts.size() + i) * run, one.bytes() + row * run, run);
    }
    return whole;
  }

  // One tensor, transposed and reshaped as its rule says, with these dims.
  Array part(const Source& source, const Shape& shape) const {
    const FileTensor& tensor = source.file->tensors().at(source.name);
    std::vector<std::string> dims;
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d) dims.push_back("d" + std::to_string(d));
    Array array = source.file->read(source.name, dims);
    if (source.rule.transpose) {
      if (dims.size() != 2) misfit(source, shape, "no matrix to be transposed can be");
      array = array.transposed({array.shape()[1], array.shape()[0]});
    }
    Numbers sizes, want;
    for (const Dim& dim : array.shape()) sizes.push_back(dim.size);
    for (const Dim& dim : shape) want.push_back(dim.size);
    sizes = reshaped(sizes, source.rule.sizes, source.name);
    if (sizes != want) misfit(source, shape, "it cannot be");
    Array out(shape, array.dtype());
    std::memcpy(out.bytes(), array.bytes(), static_cast<std::size_t>(out.elements()) * size_of(out.dtype()));
    return out;
  }

  [[noreturn]] static void misfit(const Source& source, const Shape& shape, const std::string& why) {
    std::string want;
    for (const Dim& dim : shape) want += (want.empty() ? "" : " ") + dim.name + "=" + std::to_string(dim.size);
    throw UserError({.code = "import.sizes-mismatch",
                     .what = "tensor '" + source.name + "' has the sizes " +
                             sizes_text(source.file->tensors().at(source.name).sizes) + ": " + why + " [" + want + "]",
                     .where = source.file->path(),
                     .fix = "give a rule with \"transpose\" or \"sizes\" in --map, or the right model"});
  }

  const ImportWords& words_;
  std::map<std::string, Shape> wanted_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::map<std::string, Source> sources_;              // by the name that the rules give
  std::map<std::string, std::vector<Source>> chosen_;  // by variable: itself, or q, k and v
  std::map<std::string, CheckpointVariable> variables_;
  std::vector<std::string> used_;
};

void run_import(const ImportWords& words) {
  if (words.dtype && !is_float(dtype_of(*words.dtype)))
    throw UserError({.code = "import.unsupported-dtype",
                     .what = "weights cannot be imported as " + *words.dtype,
                     .where = "--dtype " + *words.dtype,
                     .fix = "choose f32, bf16, f16 or f64"});
  const Importer importer(words);
  importer.write();
  std::cout << importer.count() << " variables are in the checkpoint " << words.out << "\n";
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("import", "Make a checkpoint of plain .safetensors of other tools");
  const auto words = std::make_shared<ImportWords>();
  sub->add_option("files", words->files, ".safetensors files, or folders of them")->required();
  sub->add_option("--out", words->out, "The checkpoint's folder, which must not exist")->required();
  sub->add_option("--config", words->config, "The config of the model: the checkpoint can then be trained and used");
  sub->add_option("--like", words->like, "A checkpoint with the same variables and dims");
  sub->add_option("--model", words->model, "A built-in model with the same variables and dims");
  sub->add_option("--set", words->set, "dim=size[,dim=size…]: the model's sizes; may be repeated")
      ->allow_extra_args(false);
  sub->add_option("--dtype", words->dtype, "f32, bf16, f16 or f64 for all floats; default: as in the files");
  sub->add_option("--map", words->map, "Rules for names and shapes, a JSON file: see docs/checkpoints.md");
  sub->add_option("--step", words->step, "The checkpoint's step; default: 0");
  sub->add_flag("--join-qkv", words->join_qkv, "Make …/qkv/… of …/q/…, …/k/… and …/v/…")->disable_flag_override();
  sub->add_flag("--allow-unused", words->allow_unused, "Ignore tensors that no variable needs")
      ->disable_flag_override();
  sub->callback([words, &action] { action = [words] { run_import(*words); }; });
}

}  // namespace weft::tools
