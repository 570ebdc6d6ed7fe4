#include "runtime/host/host_engine.h"

#include <algorithm>

#include "runtime/host/host_device.h"
#include "runtime/host/host_program.h"
#include "weft/error.h"

namespace weft {

namespace {

Target with_workspaces(Target target, const KernelTable& table) {
  target.workspace_bytes = [workspaces = table.workspaces](const Program& program, const Instr& instr,
                                                           const ByValue<std::vector<std::int64_t>>& strides) {
    const auto found = workspaces.find(name_of(instr));
    return found == workspaces.end() ? 0 : found->second(program, instr, strides);
  };
  return target;
}

}  // namespace

HostEngine::HostEngine(std::string name, KernelTable table, Target target, bool shares_work,
                       void (*prepare_thread)())
    : name_(std::move(name)),
      table_(std::move(table)),
      target_(with_workspaces(std::move(target), table_)),
      shares_work_(shares_work),
      prepare_thread_(prepare_thread) {}

bool HostEngine::has(const Instr& instr) const {
  const char* name = name_of(instr);
  return is_collective(instr) ? table_.collectives.contains(name) : table_.kernels.contains(name);
}

// A processor has the cores of the process over its processors as workers, unless the options say how many.
HostEngine::Workforce HostEngine::workforce(const comm::Wire& wire, const DeviceOptions& options) const {
  const int here = static_cast<int>(wire.local().size()), cores = usable_cores(std::max(1, wire.on_host() / here));
  const int each = !shares_work_ ? 1 : options.workers > 0 ? options.workers : std::max(1, cores / here);
  return {each, each * here <= cores};
}

Devices HostEngine::open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions& options) const {
  Devices devices(static_cast<std::size_t>(wire.size()));
  const auto [workers, fits] = workforce(wire, options);
  for (const ProcessorId p : wire.local())
    devices[p] = std::make_unique<HostDevice>(*this, wire, mesh, p, workers, fits);
  return devices;
}

namespace {

// Processor 0 of a mesh whose other processors are not there: programs are bound and never run.
class AbsentPeers : public comm::Wire {
 public:
  explicit AbsentPeers(int processors) : processors_(processors) {}
  int size() const override { return processors_; }
  std::vector<ProcessorId> local() const override { return {ProcessorId(0)}; }
  int on_host() const override { return processors_; }
  std::unique_ptr<comm::Group> join(ProcessorId, const std::vector<ProcessorId>& members) override {
    return std::make_unique<AbsentGroup>(static_cast<int>(members.size()));
  }
  void abort(const comm::Failure&) override {}
  std::vector<comm::ProcessorStatus> report() const override { return {}; }
  std::size_t overhead_bytes() const override { return 0; }

 private:
  class AbsentGroup : public comm::Group {
   public:
    explicit AbsentGroup(int size) : size_(size) {}
    int size() const override { return size_; }
    int rank() const override { return 0; }
    comm::Ticket start(comm::Collective, comm::ConstBuffer, comm::Buffer, const comm::Args&) override {
      throw InternalError("a collective was started without peers");
    }
    void wait(comm::Ticket, comm::Deadline) override {}
    void abort(const comm::Failure&) override {}

   private:
    const int size_;
  };
  const int processors_;
};

}  // namespace

BindReport HostEngine::describe(const std::shared_ptr<const Compiled>& compiled, const DeviceOptions& options) const {
  AbsentPeers wire(compiled->program.mesh.size());
  HostDevice device(*this, wire, compiled->program.mesh, ProcessorId(0), workforce(wire, options).workers, false);
  // Kernels keep addresses and look at none before they run.
  constexpr std::uintptr_t kVariables = std::uintptr_t{1} << 44, kArena = std::uintptr_t{1} << 45;
  std::vector<void*> variables;
  std::uintptr_t next = kVariables;
  for (const ProgramVariable& variable : compiled->program.variables) {
    variables.push_back(reinterpret_cast<void*>(next));
    next += static_cast<std::uintptr_t>(host_aligned(bytes_of(compiled->program.values[variable.value])));
  }
  const HostProgram bound(compiled, device, reinterpret_cast<std::byte*>(kArena), variables, {});
  return {device.allocated(MemoryUse::kScratch), bound.instructions()};
}

}  // namespace weft
