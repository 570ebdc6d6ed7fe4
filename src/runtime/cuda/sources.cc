// random, axis_index, constant: values from nothing.
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/dispatch.h"
#include "base/str.h"
#include "kernels/vmath.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"
#include "runtime/random.h"

namespace weft::cuda {

namespace {

// A deviate from the 24 bits `bits` of the word `word`, as runtime/random.h has it.
std::string deviate_text(const Random& operation) {
  const std::string a = real_literal(operation.a), b = real_literal(operation.b);
  const double low = vmath::normal_below(-2), high = vmath::normal_below(2);
  switch (operation.distribution) {
    case Distribution::kUniform: return str(a, " + (", b, " - ", a, ") * (bits * ", real_literal(0x1p-24), ")");
    case Distribution::kNormal:
      return str(a, " + ", b, " * inverse_normal((bits + 0.5) * ", real_literal(0x1p-24), ")");
    case Distribution::kTruncatedNormal:
      return str(a, " + ", b, " * inverse_normal(", real_literal(low), " + ", real_literal(high - low),
                 " * ((bits + 0.5) * ", real_literal(0x1p-24), "))");
    case Distribution::kBernoulli:
      return str("(bits < ", real_literal(std::nearbyint(operation.a * 0x1p24)), " ? 1.0 : 0.0)");
    case Distribution::kBits: return "(double)word";
  }
  throw InternalError("a distribution outside its enum");
}

}  // namespace

void random(const Work& work) {
  const auto& operation = *work.instr.as<Random>();
  const TensorView& y = work.outputs[0];
  std::vector<std::int64_t> whole(y.shape.rank());
  std::int64_t stride = 1;
  for (std::size_t d = y.shape.rank(); d-- > 0; stride *= y.whole[d]) whole[d] = stride;
  const std::int64_t begin = std::inner_product(y.begin.begin(), y.begin.end(), whole.begin(), std::int64_t{0});
  const std::vector<Run> runs = joined_runs({y.shape.begin(), y.shape.end()}, {whole, y.strides});
  const bool open = operation.distribution == Distribution::kUniform && operation.a < operation.b && is_float(y.dtype);
  const double most = open ? visit_dtype(y.dtype, [&]<class T>() { return below<T>(operation.b); }) : 0;
  const bool loops = !work.inputs.empty();
  launch_per_element(
      work, y.shape.elements(),
      {typed("const StepWords", "step", work.card.step_words()),
       in(DType::kI64, "iteration", loops ? work.inputs[0].data : nullptr), out(y.dtype, "y", y.data),
       number("begin", begin), number("key", static_cast<std::int64_t>(operation.key))},
      str("const unsigned long long element = begin + ", offset_text(runs, 0, "i"),
          ";\nconst unsigned word = philox_word(mix64((unsigned long long)key ^ mix64(step->seed)), element, "
          "step->step, ",
          loops ? "(unsigned)iteration[0]" : "0u",
          ");\nconst double bits = word >> 8;\n(void)bits;\ndouble x = ", deviate_text(operation), ";\n",
          open ? str("x = x > ", real_literal(most), " ? ", real_literal(most), " : x;\n") : "", "y[",
          offset_text(runs, 1, "i"), "] = put<", stored_type(y.dtype), ">(cast<", stored_type(y.dtype), ">(x));\n"));
}

void axis_index(const Work& work) {
  const std::int64_t place = work.program.mesh.coordinate(work.processor, work.instr.as<AxisIndex>()->axes);
  launch_per_element(work, 1, {out(DType::kI64, "y", work.outputs[0].data), number("place", place)}, "y[0] = place;\n");
}

namespace {

// Equal numbers are written by a kernel.
bool constant_of_one(const Work& work, const std::vector<std::byte>& bytes) {
  const TensorView& y = work.outputs[0];
  const std::size_t each = size_of(y.dtype);
  for (std::size_t i = each; i < bytes.size(); ++i)
    if (bytes[i] != bytes[i - each]) return false;
  std::int64_t bits = 0;
  std::memcpy(&bits, bytes.data(), each);
  const char* word = each == 1 ? "unsigned char" : each == 2 ? "unsigned short" : each == 4 ? "unsigned" : "long long";
  launch_per_element(work, y.shape.elements(), {typed(word, "y", y.data), number("bits", bits)},
                     str("y[i] = (", word, ")bits;\n"));
  return true;
}

}  // namespace

// The numbers lie in host memory that a captured copy reads again at every step.
void constant(const Work& work) {
  const TensorView& y = work.outputs[0];
  const std::vector<Number>& data = work.instr.as<Constant>()->data;
  const auto bytes = std::make_shared<std::vector<std::byte>>(data.size() * size_of(y.dtype));
  visit_dtype(y.dtype, [&]<class T>() {
    for (std::size_t i = 0; i < data.size(); ++i) reinterpret_cast<T*>(bytes->data())[i] = from_number<T>(data[i]);
  });
  if (!bytes->empty() && constant_of_one(work, *bytes)) return;
  work.call([bytes, to = y.data](cudaStream_t stream) {
    check(cudaMemcpyAsync(to, bytes->data(), bytes->size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
  });
}

}  // namespace weft::cuda
