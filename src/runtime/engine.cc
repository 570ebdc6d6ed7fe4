#include "runtime/engine.h"

#include <set>

#include "base/str.h"
#include "runtime/cuda/open.h"
#include "runtime/host/host_engine.h"
#include "runtime/xla/open.h"
#include "weft/error.h"

namespace weft {

namespace {

void find_missing(const Program& program, const Engine& engine, std::set<std::string>& missing) {
  for (const Instr& instr : program.body) {
    if (const auto* loop = instr.as<Loop>()) find_missing(*loop->body, engine, missing);
    else if (!is_view(instr) && !instr.is<Done>() && !engine.has(instr)) missing.insert(name_of(instr));
  }
}

constexpr const char *kCuda = "cuda", *kXla = "xla";  // in libraries that are opened when a program asks for them

std::vector<const Engine*>& registry() {
  static std::vector<const Engine*> all = {&cpu_engine(), &reference_engine()};
  return all;
}

}  // namespace

std::string RunInstr::tensor() const {
  const std::vector<ValueId>& named = instr->outputs.empty() ? instr->inputs : instr->outputs;
  return named.empty() ? "" : program->values[named[0]].name;
}

std::string RunInstr::lines() const { return join(instr->origin.causes, ", "); }

std::string RunInstr::name_and_tensor() const {
  const std::string name = tensor();
  return name.empty() ? name_of(*instr) : str(name_of(*instr), " of '", name, "'");
}

void refuse_cuda(const std::string& where, const std::string& instead) {
  throw UserError({.code = "device.cuda-unusable",
                   .what = str("the device 'cuda' cannot be used: ", cuda_library().found),
                   .where = where,
                   .fix = str(instead, cuda_library().fix)});
}

void check_engine(const Program& program, const Engine& engine) {
  std::set<std::string> missing;
  find_missing(program, engine, missing);
  if (!missing.empty())
    throw UserError({.code = "device.missing-kernels",
                     .what = str("the device '", engine.name(), "' has no kernel for: ", join(missing, ", ")),
                     .where = str("program for mesh ", program.mesh),
                     .fix = "use device::reference(), which has them all"});
}

const std::vector<const Engine*>& engines() { return registry(); }

void add_engine(const Engine& engine) { registry().push_back(&engine); }

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Engine* engine : engines()) names.push_back(engine->name());
  names.push_back(kCuda);
  names.push_back(kXla);
  return names;
}

const Engine& engine_named(const std::string& name, const std::string& where, const std::string& plugin,
                           bool nondeterministic, bool over_nccl) {
  if (over_nccl && name != kCuda)
    throw UserError({.code = "device.nccl-without-cuda",
                     .what = str("the wire nccl joins CUDA cards, but the device is '", name, "'"),
                     .where = where,
                     .fix = "add --device cuda, or use --wire mpi"});
  if (nondeterministic && name != kCuda)
    throw UserError({.code = "device.always-deterministic",
                     .what = str("the device '", name, "' has no nondeterministic mode"),
                     .where = where,
                     .fix = "add --device cuda, or leave --nondeterministic (mesh.nondeterministic) out"});
  if (name == kXla) return xla_engine(plugin, where);
  if (!plugin.empty())
    throw UserError({.code = "device.plugin-without-xla",
                     .what = str("the device '", name, "' has no plugins"),
                     .where = where,
                     .fix = "add --device xla, or leave --plugin out"});
  for (const Engine* engine : engines())
    if (engine->name() == name) return *engine;
  if (name == kCuda) {
    const CudaLibrary& cuda = cuda_library();
    if (!cuda.engine) refuse_cuda(where);
    if (over_nccl) return nondeterministic ? *cuda.nondeterministic_over_nccl : *cuda.over_nccl;
    return nondeterministic ? *cuda.nondeterministic : *cuda.engine;
  }
  throw UserError({.code = "device.unknown",
                   .what = str("there is no device '", name, "'"),
                   .where = where,
                   .fix = str("use one of the devices: ", join(engine_names(), ", "))});
}

}  // namespace weft
