#include "runtime/xla/roofs.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/str.h"
#include "runtime/xla/compiler.h"
#include "runtime/xla/device.h"

namespace weft::xla {

namespace {

constexpr int kSide = 1024, kRuns = 5;                     // of the matrices
constexpr std::int64_t kElements = std::int64_t{1} << 22;  // of the vector

// c = a b, of f32 matrices: 2 kSide^3 flops.
std::string product() {
  const std::string type = str("tensor<", kSide, "x", kSide, "xf32>");
  return str("func.func public @main(%a: ", type, ") -> (", type,
             ") {\n  %c = \"stablehlo.dot_general\"(%a, %a) {dot_dimension_numbers = "
             "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (",
             type, ", ", type, ") -> ", type, "\n  return %c : ", type, "\n}\n");
}

// b = -a: reads and writes kElements floats.
std::string sweep() {
  const std::string type = str("tensor<", kElements, "xf32>");
  return str("func.func public @main(%a: ", type, ") -> (", type, ") {\n  %b = stablehlo.negate %a : ", type,
             "\n  return %b : ", type, "\n}\n");
}

// The least seconds of a run, on the first device.
double seconds_of(const Client& client, const std::string& module, const Shape& shape) {
  const LoadedProgram program = client.compile(module, compile_options({client.device_ids().at(0)}, client.platform()));
  const std::vector<float> zeros(static_cast<std::size_t>(shape.elements()));
  Event copied;
  const Buffer argument = client.upload(0, zeros.data(), buffer_type(DType::kF32, shape), copied);
  copied.wait("PJRT_Client_BufferFromHostBuffer");
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<Buffer>> results;
    std::vector<Event> done;
    const double begin = seconds_now();
    program.start({{argument.get()}}, results, done, run + 1);
    done[0].wait("PJRT_LoadedExecutable_Execute");
    least = std::min(least, seconds_now() - begin);
  }
  return std::max(least, 1e-9);
}

}  // namespace

Roofs measure_device(const Plugin& plugin) {
  const std::shared_ptr<const Client> shared = shared_client(plugin, 1);
  const Client& client = *shared;
  const double flops = 2.0 * kSide * kSide * kSide, bytes = 2.0 * sizeof(float) * kElements;
  return {.flops_per_second = flops / seconds_of(client, product(), {{"row", kSide}, {"column", kSide}}),
          .bytes_per_second = bytes / seconds_of(client, sweep(), {{"element", kElements}})};
}

}  // namespace weft::xla
