// Checkpoints: the variables of a session on disk, complete or absent, loadable on any mesh and layout.
//
// <folder>/step-00001000/ holds index.json, shard-<processor>.safetensors and texts; <folder>/latest names the newest
// checkpoint and is written last. No process ever holds an unsplit variable. Format, durability and costs:
// docs/checkpoints.md.
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

class Checkpoints;
namespace detail {
void on_phase(Checkpoints& checkpoints, std::function<void(const std::string& phase)> hook);
}

// The state that is saved with the variables.
struct CheckpointState {
  std::int64_t step = 0;
  std::map<std::string, std::string> texts = {};  // file name -> contents: "config.toml", "data.json"
};

struct CheckpointOptions {
  std::string folder;             // created if absent; all processes must see it
  int keep = 3;                   // the number of newest checkpoints to keep; 0: all
  bool async = true;              // write on a thread while the program continues
  bool finite = false;            // a variable with a NaN or infinity is a RunError, and nothing is saved
  double deadline_seconds = 600;  // how long processor 0 waits for the files of other processes
};

// Saves a session's variables. All processes make one, with the same options, and make the same calls; errors are
// thrown in all processes. UserError if another program writes to the folder. Removes unfinished files of killed
// programs.
class Checkpoints {
 public:
  Checkpoints(Session& session, const CheckpointOptions& options);
  ~Checkpoints();  // waits; call wait() to see errors
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Copies the variables and returns; a thread writes the copy. If the save before is still running, waits for it; if
  // that save failed, throws its RunError. A failed save leaves the earlier checkpoints unchanged.
  void save(const CheckpointState& state);
  void wait();  // until the last save is on disk; throws its RunError
  // The failure, in this process, of a save that is being written; null if there is none. Does not wait. save() and
  // wait() throw the failure in all processes.
  std::exception_ptr failure() const;

 private:
  friend void detail::on_phase(Checkpoints& checkpoints, std::function<void(const std::string& phase)> hook);
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

struct CheckpointVariable {
  Shape shape;
  DType dtype = DType::kF32;
  std::string slot_of = {};  // the variable whose optimizer state this is, if any
};

// A checkpoint on disk, read piece by piece. UserError, with the file, for files that are missing, broken or do not
// fit.
class Checkpoint {
 public:
  // Opens a checkpoint folder, or a folder of checkpoints: then the checkpoint that "latest" names, otherwise the
  // newest.
  static Checkpoint open(const std::string& path);
  // None if the folder does not exist or has no complete checkpoint; unfinished checkpoints do not count.
  static std::optional<Checkpoint> latest(const std::string& folder);

  const std::string& path() const;
  const CheckpointState& state() const;
  const std::map<std::string, CheckpointVariable>& variables() const;

  struct LoadOptions {
    bool optimizer_state = true;  // false: only weights; the session's optimizer state stays unchanged
    // {in the checkpoint, in the session}: names, or prefixes of names that end in "/". The first rule that matches
    // counts. UserError for a rule that matches no variable.
    std::vector<std::pair<std::string, std::string>> rename = {};
    bool allow_missing = false;  // variables of the session that the checkpoint lacks stay unchanged
    bool allow_unused = false;   // weights of the checkpoint that the session lacks are ignored
    bool verify = true;          // also check the pieces that no processor reads completely
  };
  // Fills the session's variables, that is, the variables of the executables compiled so far; every process reads only
  // the shards of its processors. Dims may be in another order, floats of another dtype. After an error some variables
  // may be filled. All processes must call.
  void load(Session& session, const LoadOptions& options) const;
  void load(Session& session) const { load(session, {}); }

  // The part of a variable from `begin` on, of these sizes, dense, in the checkpoint's dtype; or the complete variable.
  void read(const std::string& variable, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& sizes,
            std::span<std::byte> out) const;
  Array read(const std::string& variable) const;

  struct Data;

 private:
  explicit Checkpoint(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

// Writes a checkpoint folder without a session. Calls `value` for one variable at a time; it returns the unsplit
// variable. UserError if the path exists.
void write_checkpoint(const std::string& path, const CheckpointState& state,
                      const std::map<std::string, CheckpointVariable>& variables,
                      const std::function<Array(const std::string& variable)>& value);

}  // namespace weft
