// HostEngine: an engine whose processors are threads or ranks of this machine and whose kernels are functions on host
// memory: a table of makers by instruction. The reference and the cpu engine differ in their tables.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine.h"
#include "runtime/host/kernel_table.h"

namespace weft {

class HostEngine : public Engine {
 public:
  // `shares_work`: a processor has several workers; else its own thread does all.
  // The target's workspaces are those of the table.
  // `prepare_thread` runs on every worker's thread before the first step (workers.h).
  HostEngine(std::string name, KernelTable table, Target target, bool shares_work,
             void (*prepare_thread)() = nullptr);

  const std::string& name() const override { return name_; }
  const Target& target() const override { return target_; }
  bool has(const Instr& instr) const override;
  Roofs measure(int processors, const DeviceOptions& options) const override;
  Devices open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions& options) const override;

  BindReport describe(const std::shared_ptr<const Compiled>& compiled, const DeviceOptions& options) const override;

  const KernelTable& table() const { return table_; }
  void (*prepare_thread() const)() { return prepare_thread_; }

 private:
  // Workers of each processor, and whether each has a core to itself.
  struct Workforce {
    int workers = 1;
    bool fits = true;
  };
  Workforce workforce(const comm::Wire& wire, const DeviceOptions& options) const;

  const std::string name_;
  const KernelTable table_;
  const Target target_;
  const bool shares_work_;
  void (*const prepare_thread_)();
};

const HostEngine& reference_engine();  // slow and readable: the oracle
const HostEngine& cpu_engine();        // fast

}  // namespace weft
