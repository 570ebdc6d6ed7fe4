// A checkpoint made of whole variables, one at a time, without a session.
#include <algorithm>
#include <filesystem>

#include "train/checkpoint_files.h"
#include "train/checkpoint_index.h"
#include "weft/checkpoint.h"
#include "weft/detail/safetensors.h"
#include "weft/error.h"
#include "weft/tensor_file.h"

namespace weft {

namespace {

using checkpoint::sentence;

// Variables of wide dtypes first.
std::vector<StoredTensor> in_order(const std::map<std::string, CheckpointVariable>& variables) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, about] : variables) tensors.push_back({name, about.dtype, checkpoint::sizes_of(about.shape)});
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const StoredTensor& a, const StoredTensor& b) { return size_of(a.dtype) > size_of(b.dtype); });
  return tensors;
}

void write_into(const std::string& folder, const CheckpointState& state,
                const std::map<std::string, CheckpointVariable>& variables,
                const std::function<Array(const std::string& variable)>& value) {
  checkpoint::Index index{.step = state.step, .mesh = {}, .variables = {}, .files = {}, .texts = {}};
  const std::string name = checkpoint::shard_name(ProcessorId(0)), path = checkpoint::path_in(folder, name);
  const std::vector<StoredTensor> tensors = in_order(variables);
  const std::string header = safetensors_header(path, tensors);
  checkpoint::NewFile file(path);
  file.write(header);
  std::uint64_t bytes = header.size();
  for (const StoredTensor& tensor : tensors) {
    const Array array = value(tensor.name);
    const CheckpointVariable& about = variables.at(tensor.name);
    internal_check(array.shape() == about.shape && array.dtype() == about.dtype, "the value of another variable");
    const std::span data(array.bytes(), static_cast<std::size_t>(array.elements()) * size_of(array.dtype()));
    file.write(data);
    bytes += data.size();
    index.variables[tensor.name] = {
        about, {{name, std::vector<std::int64_t>(tensor.sizes.size(), 0), tensor.sizes, checkpoint::crc32c(0, data)}}};
  }
  file.close();
  index.files[name] = bytes;
  for (const auto& [text_name, text] : state.texts) {
    checkpoint::write_new(checkpoint::path_in(folder, text_name), text);
    index.texts[text_name] = {text.size(), checkpoint::crc32c(text)};
  }
  checkpoint::write_new(checkpoint::path_in(folder, "index.json"), checkpoint::to_text(index));
  checkpoint::sync_folder(folder);
}

}  // namespace

void write_checkpoint(const std::string& path, const CheckpointState& state,
                      const std::map<std::string, CheckpointVariable>& variables,
                      const std::function<Array(const std::string& variable)>& value) {
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  if (std::filesystem::exists(whole))
    throw UserError({.code = "checkpoint.path-exists",
                     .what = sentence("there is something at '", path, "' already"),
                     .where = path,
                     .fix = "remove it, or write the checkpoint to another folder"});
  checkpoint::check_state(state, path);
  const std::string parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  const std::string partial = checkpoint::path_in(parent, "." + whole.filename().string() + ".partial");
  checkpoint::make_folders(parent);
  checkpoint::remove_all(partial);
  checkpoint::make_folder(partial);
  try {
    write_into(partial, state, variables, value);
    checkpoint::rename_path(partial, whole.string());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored);
    throw;
  }
  checkpoint::sync_folder(parent);
}

}  // namespace weft
