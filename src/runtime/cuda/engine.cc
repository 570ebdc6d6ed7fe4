// The CUDA engine: its instructions, and what the library exports.
#include <map>

#include "base/str.h"
#include "program/attend.h"
#include "program/builder.h"
#include "runtime/cuda/attend.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/entry.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/nccl_collectives.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/table.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

const std::map<std::string, Instruction>& table() {
  static const std::map<std::string, Instruction> kTable = {{Map::kName, map},
                                                            {Contract::kName, contract},
                                                            {ReduceDims::kName, reduce},
                                                            {Copy::kName, copy},
                                                            {Concat::kName, concat},
                                                            {DynamicSlice::kName, dynamic_slice},
                                                            {DynamicUpdate::kName, dynamic_update},
                                                            {Gather::kName, gather},
                                                            {ScatterAdd::kName, scatter_add},
                                                            {Scan::kName, scan},
                                                            {Sort::kName, sort},
                                                            {Convolve::kName, convolve},
                                                            {Pool::kName, pool},
                                                            {Attend::kName, attend},
                                                            {AttendBack::kName, attend_back},
                                                            {Random::kName, random},
                                                            {AxisIndex::kName, axis_index},
                                                            {Constant::kName, constant},
                                                            {Fused::kName, fused}};
  return kTable;
}

}  // namespace

Instruction find_instruction(const std::string& name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

Instruction instruction_named(const std::string& name) {
  const Instruction found = find_instruction(name);
  internal_check(found != nullptr, "an instruction that the CUDA engine lacks");
  return found;
}

bool has_instruction(const Instr& instr) {
  return is_collective(instr) || instr.is<Host>() || find_instruction(name_of(instr)) != nullptr;
}

std::string served_by(const Program& program, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides,
                      bool deterministic) {
  return attend_rules(instr) ? attend_served_by(program, instr, strides, deterministic) : "cuda";
}

std::int64_t workspace_bytes(const Program& program, const Instr& instr,
                             const ByValue<std::vector<std::int64_t>>& strides, const Mode& mode) {
  const bool deterministic = mode.deterministic;
  if (mode.over_nccl && is_collective(instr)) return nccl_collective_bytes(program, instr, strides);
  if (const auto* fused = instr.as<Fused>()) return sweep_bytes(*fused->body);
  if (instr.is<ReduceDims>()) {
    const Program body = body_of_one(program, instr);
    return can_sweep(body) ? sweep_bytes(body) : 0;
  }
  if (instr.is<ScatterAdd>()) return scatter_bytes(program, instr);
  if (attend_rules(instr)) return attend_bytes(program, instr, strides, deterministic);
  return 0;
}

namespace {

class CudaEngine : public Engine {
 public:
  explicit CudaEngine(const Mode& mode) : mode_(mode) {}
  const std::string& name() const override { return name_; }
  const Target& target() const override { return target_; }
  bool has(const Instr& instr) const override { return has_instruction(instr); }
  Devices open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions&) const override {
    if (!cuda_library().has_card) refuse_cuda(str("session on mesh ", mesh));
    return open_devices(wire, mesh, mode_.deterministic);
  }
  BindReport describe(const std::shared_ptr<const Compiled>& compiled, const DeviceOptions&) const override {
    BindReport report{.scratch_bytes = kCardScratch};
    list(compiled->program, report.instructions);
    return report;
  }

  Roofs measure(int processors, const DeviceOptions&) const override {
    if (!cuda_library().has_card)
      refuse_cuda("measuring the card's peaks", "give the peaks of a described machine, as --machine h200x8; or ");
    Card card;
    const Roofs all = measure_card(card);
    return {all.flops_per_second / processors, all.bytes_per_second / processors};
  }

 private:
  void list(const Program& program, std::vector<RunInstr>& all) const {
    const ByValue<std::vector<std::int64_t>> strides = strides_of(program);
    for (const Instr& instr : program.body) {
      if (const auto* loop = instr.as<Loop>()) list(*loop->body, all);
      if (!is_view(instr) && !instr.is<Done>())
        all.push_back({&program, &instr, false, served_by(program, instr, strides, mode_.deterministic)});
    }
  }

  const Mode mode_;
  const std::string name_ = "cuda";
  const Target target_ = {
      .fusing = {.maps = true, .reductions = true},
      .alignment = kCardAlignment,
      .workspace_bytes =
          [this](const Program& program, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides) {
            return workspace_bytes(program, instr, strides, mode_);
          },
      .widens_large_products = false,
      .recomputed_bytes = std::int64_t{1} << 20};
};

}  // namespace

const Engine& cuda_engine(const Mode& mode) {
  static const CudaEngine kEngines[] = {
      CudaEngine({.deterministic = true, .over_nccl = false}), CudaEngine({.deterministic = false, .over_nccl = false}),
      CudaEngine({.deterministic = true, .over_nccl = true}), CudaEngine({.deterministic = false, .over_nccl = true})};
  return kEngines[(mode.over_nccl ? 2 : 0) + (mode.deterministic ? 0 : 1)];
}

}  // namespace weft::cuda

extern "C" void weft_cuda_engine_1(weft::CudaLibrary& library) {
  library.engine = &weft::cuda::cuda_engine({.deterministic = true, .over_nccl = false});
  library.nondeterministic = &weft::cuda::cuda_engine({.deterministic = false, .over_nccl = false});
  library.over_nccl = &weft::cuda::cuda_engine({.deterministic = true, .over_nccl = true});
  library.nondeterministic_over_nccl = &weft::cuda::cuda_engine({.deterministic = false, .over_nccl = true});
  library.make_nccl_wire = weft::cuda::make_nccl_wire;
  library.nccl = weft::cuda::describe_nccl();
  try {
    library.found = weft::cuda::describe_card();
    library.has_card = true;
  } catch (const weft::Error& error) {
    library.found = error.text().what;
    library.fix = error.text().fix;
  }
}
