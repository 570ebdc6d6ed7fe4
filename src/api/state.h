// What a Session and its Executables share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/crew.h"
#include "comm/wire.h"
#include "program/builder.h"
#include "runtime/bound_program.h"
#include "weft/session.h"

namespace weft {

// One variable: its shard on every processor, dense in declared dim order.
struct HeldVariable {
  Value value;  // local type and sharding
  std::vector<comm::Arena> shards;
};

struct SessionState {
  Mesh mesh;
  SessionOptions options;
  std::unique_ptr<comm::Wire> wire;
  const Backend* backend = nullptr;
  std::map<std::string, HeldVariable> variables;
  std::string failure;         // why the session is unusable, if it is
  std::unique_ptr<Crew> crew;  // last: its threads use the rest

  void check_usable() const;
  const HeldVariable& variable(const std::string& name) const;
  Array gathered(const Value& value, const std::function<const void*(int processor)>& shard) const;
};

struct ExecutableState {
  std::shared_ptr<SessionState> session;
  std::shared_ptr<GraphData> graph;
  Program program;
  Tensors fetch;
  std::vector<std::unique_ptr<BoundProgram>> bound;  // one per processor
  std::uint32_t step = 0;
};

// A variable's first values, by its name and the seed alone.
Array initial_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed);

}  // namespace weft
