// The state that a Session and its Executables share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runner.h"
#include "weft/session.h"

namespace weft {

struct SessionVariable : VariableMemory {
  std::string slot_of = {};    // the variable whose optimizer state this is
  DType stored = DType::kF32;  // what a checkpoint holds
  std::uint64_t changes = 0;   // steps that updated it, and writes from outside
};

struct SessionState {
  SessionOptions options;
  std::shared_ptr<Processors> processors;
  std::map<std::string, SessionVariable> variables;
  std::uint32_t times = 1;  // the steps of a run: see detail::run_times

  // A session on any wire and engine; tests make their own. UserError if the wire has not the mesh's size.
  static Session open(const Mesh& mesh, std::unique_ptr<comm::Wire> wire, const Engine& engine,
                      const SessionOptions& options);
  static Session open(std::shared_ptr<Processors> processors, const SessionOptions& options);

  static SessionState& of(const Session& session) { return *session.state_; }

  const Mesh& mesh() const { return processors->mesh(); }
  // UserError if there is none.
  const SessionVariable& variable(const std::string& name) const;
};

struct ExecutableState {
  std::shared_ptr<SessionState> session;
  std::shared_ptr<GraphData> graph;
  std::shared_ptr<Runner> runner = {};
  Tensors fetch = {};
  std::vector<SessionVariable*> updated = {};  // by a step
  Indexed<ProcessorId, std::unique_ptr<TraceLog>> logs = {};  // by processor; empty without a trace
  std::uint32_t step = 0;
  bool has_begun = false;  // a step
  double plan_seconds = 0, bind_seconds = 0;

  const Program& program() const { return runner->program(); }
};

// Returns free memory to the system: what compiling and initial values took is not needed in steps.
void release_free_memory();

}  // namespace weft
