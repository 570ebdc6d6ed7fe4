// Checkpoints: the variables of a session on disk, whole or absent, to be loaded on any mesh and layout.
//
// <folder>/step-00001000/ holds index.json, shard-<processor>.safetensors and texts; <folder>/latest names the newest one
// and is written last. No process ever holds a whole variable. Format, durability and costs: docs/checkpoints.md.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/session.h"

namespace weft {

// What is saved beside the variables.
struct CheckpointState {
  std::int64_t step = 0;
  std::map<std::string, std::string> texts = {};  // file name -> contents: "config.toml", "data.json"
};

struct CheckpointOptions {
  std::string folder;             // made if it is not there; all processes must see it
  int keep = 3;                   // so many of the newest are kept; 0: all
  bool async = true;              // write on a thread while the program goes on
  bool finite = false;            // a variable with a NaN or an infinity is a RunError, and nothing is saved
  double deadline_seconds = 600;  // how long processor 0 waits for the files of other processes
  // For tests: called, on the thread that writes, at "save-begun", "mid-shard" (again and again), "before-rename" and
  // "before-latest".
  std::function<void(const std::string& phase)> at = {};
};

// Saves a session's variables. All processes make one, with the same options, and call it alike; errors are thrown in all
// of them. UserError if another program writes to the folder. It removes what killed programs left unfinished.
class Checkpoints {
 public:
  Checkpoints(Session& session, const CheckpointOptions& options);
  ~Checkpoints();  // waits; call wait() to hear of errors
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Copies the variables and returns; the copy is written meanwhile. Waits for the save before, and throws its RunError.
  // What failed leaves the earlier checkpoints as they are.
  void save(const CheckpointState& state);
  void wait();  // until the last save is on disk, or its RunError
  // What has failed so far, in this process, of a save that is being written; null if nothing has. Does not wait: save() and
  // wait() throw it, in all processes.
  std::exception_ptr failure() const;

 private:
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

struct CheckpointVariable {
  Shape shape;
  DType dtype = DType::kF32;
  std::string slot_of = {};  // the variable whose optimizer state this is, if any
};

// A checkpoint on disk, read piece by piece. UserError, with the file, for what is missing, broken or does not fit.
class Checkpoint {
 public:
  // Of a checkpoint's own folder, or of a folder of them: then the one that "latest" names, else the newest.
  static Checkpoint open(const std::string& path);
  // None if the folder is not there or has no whole checkpoint; what is unfinished does not count.
  static std::optional<Checkpoint> latest(const std::string& folder);

  const std::string& path() const;
  const CheckpointState& state() const;
  const std::map<std::string, CheckpointVariable>& variables() const;

  struct LoadOptions {
    bool optimizer_state = true;  // false: weights alone; the session's state stays as it is
    // {in the checkpoint, in the session}: names, or beginnings of names that end in "/". The first that fits counts.
    // UserError for one that fits no variable.
    std::vector<std::pair<std::string, std::string>> rename = {};
    bool allow_missing = false;  // variables of the session that the checkpoint lacks stay as they are
    bool allow_unused = false;   // weights of the checkpoint that the session lacks are left out
    bool verify = true;          // also check the pieces that no processor needs whole
  };
  // Fills the session's variables, those of the executables compiled so far; every process reads what its processors
  // hold. Dims may be in another order, floats of another dtype. After an error some variables may be filled. All
  // processes must call.
  void load(Session& session, const LoadOptions& options) const;
  void load(Session& session) const { load(session, {}); }

  // The part of a variable from `begin` on, of these sizes, dense, in the checkpoint's dtype; and all of it.
  void read(const std::string& variable, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& sizes,
            std::span<std::byte> out) const;
  Array read(const std::string& variable) const;

  struct Data;

 private:
  explicit Checkpoint(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

// Writes a checkpoint folder without a session. `value` is asked for one variable at a time, whole. UserError if there is
// something at the path.
void write_checkpoint(const std::string& path, const CheckpointState& state,
                      const std::map<std::string, CheckpointVariable>& variables,
                      const std::function<Array(const std::string& variable)>& value);

}  // namespace weft
