// axis_index, constant, host: values from nothing, and values for the host.
#include "base/dispatch.h"
#include "runtime/engine.h"
#include "runtime/host/kernel_table.h"
#include "runtime/host/strided.h"

namespace weft::host {

namespace {

Kernel axis_index(const KernelArgs& args) {
  const std::int64_t place = args.program.mesh.coordinate(args.processor, args.instr.as<AxisIndex>()->axes);
  return [out = args.outputs[0], place](const StepState&) { *static_cast<std::int64_t*>(out.data) = place; };
}

Kernel constant(const KernelArgs& args) {
  return [out = args.outputs[0], data = args.instr.as<Constant>()->data](const StepState&) {
    visit_dtype(out.dtype, [&]<class T>() {
      T* target = static_cast<T*>(out.data);
      for (std::size_t i = 0; i < data.size(); ++i) target[i] = from_number<T>(data[i]);
    });
  };
}

Kernel hand_over(const KernelArgs& args) {
  return [x = args.inputs[0], operation = *args.instr.as<Host>()](const StepState& state) {
    if (!state.host) return;
    HostEvent event{operation.what, operation.text, Array(x.shape, x.dtype)};
    copy_elements(x, dense_view(event.value.bytes(), x.dtype, x.shape));
    (*state.host)(event);
  };
}

const AddKernel kAxisIndexKernel(common_kernels(), AxisIndex::kName, axis_index);
const AddKernel kConstantKernel(common_kernels(), Constant::kName, constant);
const AddKernel kHostKernel(common_kernels(), Host::kName, hand_over);

}  // namespace

}  // namespace weft::host
