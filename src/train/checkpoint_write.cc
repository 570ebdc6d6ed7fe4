// Checkpoints: the writer.
//
// The calling thread copies shards and talks to the other processes. The writing thread writes this process's files.
// In the process of processor 0 it then waits until the other processes have written a note for each of their files.
// Then it writes the index and renames the folder. It never uses the wire.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "train/checkpoint_files.h"
#include "train/checkpoint_index.h"
#include "weft/detail/checkpoint_hook.h"
#include "weft/detail/safetensors.h"
#include "weft/detail/session_access.h"
#include "weft/error.h"
#include "weft/tensor_file.h"

namespace weft {

namespace {

using checkpoint::sentence;
constexpr std::size_t kChunk = 1 << 20;

// What the thread of another process leaves when its processor's file is durable, or cannot be: its pieces, or the reason.
std::string note_name(ProcessorId processor) { return sentence("shard-", processor, ".json"); }
std::string failure_name(ProcessorId processor) { return sentence("shard-", processor, ".failed"); }

template <class T>
bool all_finite(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + at, sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(x)) return false;
    } else if (!std::isfinite(static_cast<float>(x))) {
      return false;
    }
  }
  return true;
}
bool is_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF32: return all_finite<float>(bytes);
    case DType::kF64: return all_finite<double>(bytes);
    case DType::kBF16: return all_finite<BF16>(bytes);
    case DType::kF16: return all_finite<F16>(bytes);
    default: return true;
  }
}

template <class Operation>
std::exception_ptr caught(const Operation& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string reason_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.text().what;
  } catch (const std::exception& other) {
    return other.what();
  }
}

// One processor's file: the shards it speaks for, in the order of the file, and a copy of their bytes.
struct ShardFile {
  ProcessorId processor = {};
  std::vector<detail::VariableShard> shards;
  std::vector<std::byte> bytes;  // keeps its memory from save to save
};

CheckpointVariable variable_of(const detail::VariableShard& shard) {
  return {shard.whole, shard.stored, shard.slot_of};
}

std::size_t stored_bytes(const detail::VariableShard& shard) {
  return static_cast<std::size_t>(shard.elements()) * size_of(shard.stored);
}

// Values of the shard's dtype as the checkpoint holds them: rounded, if that is narrower. `room` keeps what was cast.
std::span<const std::byte> as_stored(const detail::VariableShard& shard, std::span<const std::byte> values,
                                     Array& room) {
  if (shard.dtype == shard.stored) return values;
  const auto count = static_cast<std::int64_t>(values.size() / size_of(shard.dtype));
  Array held({{"elements", count}}, shard.dtype);
  std::memcpy(held.bytes(), values.data(), values.size());
  room = held.cast(shard.stored);
  return {room.bytes(), static_cast<std::size_t>(count) * size_of(shard.stored)};
}

void check(const CheckpointOptions& options) {
  if (options.folder.empty() || options.keep < 0)
    throw UserError(
        {.code = "checkpoint.bad-options",
         .what = sentence("checkpoints cannot be saved to folder '", options.folder, "', keeping ", options.keep),
         .where = "Checkpoints",
         .fix = "name a folder, and keep 1 or more, or 0 for all"});
}

}  // namespace

struct Checkpoints::Writer {
  Session session;
  CheckpointOptions options;
  bool leads = false;  // holds processor 0
  std::unique_ptr<checkpoint::FolderLock> lock;
  std::vector<ShardFile> files;

  std::function<void(const std::string& phase)> hook = {};  // of detail::on_phase

  // Of the save at hand.
  bool is_busy = false;
  CheckpointState state;
  checkpoint::Index index;  // of this process, then of all
  std::thread thread;
  std::promise<std::exception_ptr> written;
  std::exception_ptr commit_error;
  std::exception_ptr first_error;  // of this process; written before has_failed is set
  std::atomic<bool> has_failed = false;
  std::atomic<bool> is_abandoned = false;

  Writer(const Session& own, const CheckpointOptions& chosen) : session(own), options(chosen) {}

  std::string partial() const { return checkpoint::path_in(options.folder, checkpoint::unfinished_name(state.step)); }

  void at(const char* phase) const {
    if (hook) hook(phase);
  }

  void open();
  void prepare();
  void copy_shards();
  void begin(const CheckpointState& next);
  void work();
  void write_files();
  void write_file(const ShardFile& file);
  void leave_notes(const std::exception_ptr& error) const;
  void commit();
  void collect_notes();
  void publish();
  void prune() const;
  void finish();
};

void Checkpoints::Writer::open() {
  leads = detail::processors(session)[0] == ProcessorId(0);
  std::exception_ptr error = caught([&] {
    check(options);
    if (!leads) return;
    checkpoint::make_folders(options.folder);
    lock = std::make_unique<checkpoint::FolderLock>(options.folder);
    for (const std::string& path : checkpoint::contents_of(options.folder).leftovers) checkpoint::remove_all(path);
  });
  detail::agree(session, error, "to open the folder of checkpoints");
  error = caught([&] {
    if (!std::filesystem::exists(checkpoint::path_in(options.folder, ".lock")))
      throw UserError({.code = "checkpoint.folder-not-shared",
                       .what = sentence("processor ", detail::processors(session)[0], " does not see the folder '",
                                        options.folder, "' that processor 0 has opened"),
                       .where = "Checkpoints",
                       .fix = "save to a folder that all hosts share, by its absolute path"});
  });
  detail::agree(session, error, "to find the folder of checkpoints");
  prepare();
}

// Gives every file its shards and memory. Wide stored dtypes first, then names, as write_safetensors has them.
void Checkpoints::Writer::prepare() {
  files.resize(detail::processors(session).size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].processor = detail::processors(session)[i];
    files[i].shards.clear();
  }
  index = {.step = state.step, .mesh = session.mesh().text(), .variables = {}, .files = {}, .texts = {}};
  for (detail::VariableShard& shard : detail::shards(session)) {
    index.variables[shard.variable].variable = variable_of(shard);
    if (!shard.is_primary) continue;
    const auto file =
        std::find_if(files.begin(), files.end(), [&](const ShardFile& f) { return f.processor == shard.processor; });
    file->shards.push_back(std::move(shard));
  }
  for (ShardFile& file : files) {
    std::stable_sort(file.shards.begin(), file.shards.end(),
                     [](const detail::VariableShard& a, const detail::VariableShard& b) {
                       return size_of(a.stored) > size_of(b.stored);
                     });
    std::size_t bytes = 0;
    for (const detail::VariableShard& shard : file.shards) bytes += shard.bytes();
    file.bytes.resize(bytes);
  }
}

void Checkpoints::Writer::copy_shards() {
  for (ShardFile& file : files) {
    std::span<std::byte> rest(file.bytes);
    for (const detail::VariableShard& shard : file.shards) {
      detail::read_shard(session, shard, rest.first(shard.bytes()));
      rest = rest.subspan(shard.bytes());
    }
  }
}

void Checkpoints::Writer::begin(const CheckpointState& next) {
  state = next;
  detail::agree(session, caught([&] {
                  checkpoint::check_state(state, "Checkpoints::save");
                  if (!leads) return;
                  checkpoint::remove_all(partial());
                  checkpoint::make_folder(partial());
                }),
                "to begin a checkpoint");
  prepare();
  copy_shards();
  is_busy = true;
  is_abandoned = has_failed = false;
  commit_error = nullptr;
  written = {};
  if (options.async) thread = std::thread([this] { work(); });
  else work();
}

void Checkpoints::Writer::work() {
  const std::exception_ptr error = caught([&] {
    at("save-begun");
    write_files();
  });
  if (!leads) leave_notes(error);
  written.set_value(error);
  if (leads) commit_error = error ? error : caught([&] { commit(); });
  first_error = leads ? commit_error : error;
  has_failed = first_error != nullptr;
}

void Checkpoints::Writer::write_files() {
  for (const ShardFile& file : files)
    if (!file.shards.empty()) write_file(file);
}

void Checkpoints::Writer::write_file(const ShardFile& file) {
  const std::string name = checkpoint::shard_name(file.processor), path = checkpoint::path_in(partial(), name);
  std::vector<StoredTensor> tensors;
  for (const detail::VariableShard& shard : file.shards) tensors.push_back({shard.variable, shard.stored, shard.sizes});
  const std::string header = safetensors_header(path, tensors);
  checkpoint::NewFile out(path);
  out.write(header);
  std::span<const std::byte> rest(file.bytes);
  std::size_t written_bytes = header.size();
  Array room;
  for (const detail::VariableShard& shard : file.shards) {
    std::uint32_t crc = 0;
    for (std::size_t left = shard.bytes(); left > 0;) {
      const std::span<const std::byte> held = rest.first(std::min(left, kChunk)), chunk = as_stored(shard, held, room);
      at("mid-shard");
      if (options.finite && !is_finite(shard.stored, chunk))
        throw RunError({.code = "checkpoint.not-finite",
                        .what = sentence("variable '", shard.variable, "' has values that are no numbers at step ",
                                         state.step, ": no checkpoint is made of it"),
                        .where = path,
                        .fix = "go on from the checkpoint before, with a lower learning rate"});
      crc = checkpoint::crc32c(crc, chunk);
      out.write(chunk);
      rest = rest.subspan(held.size());
      left -= held.size();
    }
    written_bytes += stored_bytes(shard);
    index.variables.at(shard.variable).pieces.push_back({name, shard.begin, shard.sizes, crc});
  }
  out.close();
  index.files[name] = written_bytes;
}

// In another process than that of processor 0. The first note has the pieces of all files.
void Checkpoints::Writer::leave_notes(const std::exception_ptr& error) const {
  caught([&] {
    checkpoint::Index none = {.step = state.step, .mesh = {}, .variables = {}, .files = {}, .texts = {}};
    for (std::size_t i = 0; i < files.size(); ++i) {
      const ProcessorId p = files[i].processor;
      if (!error)
        checkpoint::replace_file(checkpoint::path_in(partial(), note_name(p)),
                                 checkpoint::to_text(i == 0 ? index : none));
      else if (const std::string path = checkpoint::path_in(partial(), failure_name(p));
               caught([&] { checkpoint::replace_file(path, reason_of(error)); }))
        checkpoint::write_new(path, "");  // there may be room for a name, though not for a text
    }
  });
}

void Checkpoints::Writer::collect_notes() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.deadline_seconds);
  const std::vector<ProcessorId>& here = detail::processors(session);
  for (const ProcessorId p : session.mesh().processors()) {
    if (std::find(here.begin(), here.end(), p) != here.end()) continue;
    const std::string path = checkpoint::path_in(partial(), note_name(p));
    while (!std::filesystem::exists(path)) {
      const bool is_late = std::chrono::steady_clock::now() > end;
      const std::string failed = checkpoint::path_in(partial(), failure_name(p));
      const bool has_failed_there = std::filesystem::exists(failed);
      const std::string reason = has_failed_there ? file_text(failed) : "";
      if (is_late || is_abandoned || has_failed_there)
        throw RunError({.code = "checkpoint.part-not-written",
                        .what = is_late
                                    ? sentence("processor ", p, " has not written its part of the checkpoint of step ",
                                               state.step, " after ", options.deadline_seconds, " s")
                                    : sentence("processor ", p, " failed to write its part of the checkpoint",
                                               reason.empty() ? "" : ": ", reason),
                        .where = path,
                        .fix = "see what its process reports, and that all hosts share the folder"});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    checkpoint::merge(index, checkpoint::parse_index(path, file_text(path), false));
  }
}

void Checkpoints::Writer::commit() {
  collect_notes();
  for (const auto& [name, text] : state.texts) {
    checkpoint::write_new(checkpoint::path_in(partial(), name), text);
    index.texts[name] = {text.size(), checkpoint::crc32c(text)};
  }
  checkpoint::write_new(checkpoint::path_in(partial(), "index.json"), checkpoint::to_text(index));
  for (const ProcessorId p : session.mesh().processors())
    std::filesystem::remove(checkpoint::path_in(partial(), note_name(p)));
  checkpoint::sync_folder(partial());
  publish();
  prune();
}

void Checkpoints::Writer::publish() {
  const std::string name = checkpoint::step_name(state.step), whole = checkpoint::path_in(options.folder, name);
  at("before-rename");
  const bool is_there = std::filesystem::exists(whole);
  if (is_there) checkpoint::exchange(partial(), whole);
  else checkpoint::rename_path(partial(), whole);
  checkpoint::sync_folder(options.folder);
  at("before-latest");
  checkpoint::replace_file(checkpoint::path_in(options.folder, "latest"), name + "\n");
  if (is_there) checkpoint::remove_all(partial());
}

// Those of later steps, which are there if an earlier one was resumed, are left alone and not counted.
void Checkpoints::Writer::prune() const {
  if (options.keep == 0) return;
  int newer = 0;
  const checkpoint::FolderContents found = checkpoint::contents_of(options.folder);
  for (auto step = found.steps.rbegin(); step != found.steps.rend(); ++step) {
    if (step->first > state.step || newer++ < options.keep) continue;
    const std::string aside = checkpoint::path_in(options.folder, checkpoint::outdated_name(step->first));
    checkpoint::rename_path(step->second, aside);
    checkpoint::remove_all(aside);
  }
}

void Checkpoints::Writer::finish() {
  if (!is_busy) return;
  is_busy = false;
  const auto give_up = [&] {
    is_abandoned = true;
    if (thread.joinable()) thread.join();
    if (leads) caught([&] { checkpoint::remove_all(partial()); });
    throw;
  };
  const std::exception_ptr error = written.get_future().get();
  try {
    detail::agree(session, error, "to write a checkpoint");
    if (thread.joinable()) thread.join();
    detail::agree(session, commit_error, "to finish a checkpoint");
  } catch (...) {
    give_up();
  }
}

Checkpoints::Checkpoints(Session& session, const CheckpointOptions& options)
    : writer_(std::make_unique<Writer>(session, options)) {
  writer_->open();
}

Checkpoints::~Checkpoints() {
  if (writer_->thread.joinable()) writer_->thread.join();
}

void Checkpoints::save(const CheckpointState& state) {
  writer_->finish();
  writer_->begin(state);
  if (!writer_->options.async) writer_->finish();
}

void Checkpoints::wait() { writer_->finish(); }

void detail::on_phase(Checkpoints& checkpoints, std::function<void(const std::string& phase)> hook) {
  checkpoints.writer_->hook = std::move(hook);
}

std::exception_ptr Checkpoints::failure() const {
  return writer_->is_busy && writer_->has_failed ? writer_->first_error : nullptr;
}

}  // namespace weft
