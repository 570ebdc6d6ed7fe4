#include "runtime/cuda/text.h"

#include <bit>
#include <limits>
#include <sstream>

#include "base/dispatch.h"
#include "base/str.h"
#include "kernels/pointwise.h"

namespace weft::cuda {

const char* stored_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "float";
    case DType::kBF16: return "BF16";
    case DType::kF16: return "F16";
    case DType::kF64: return "double";
    case DType::kI32: return "int";
    case DType::kI64: return "long long";
    case DType::kU32: return "unsigned";
    case DType::kU8: return "unsigned char";
    case DType::kI8: return "signed char";
    case DType::kBool: return "Bool";
  }
  throw InternalError("a dtype outside its enum");
}

const char* register_type(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "double";
    case DType::kI32:
    case DType::kBool: return "I32";
    case DType::kI64:
    case DType::kU32:
    case DType::kU8:
    case DType::kI8: return "I64";
    default: return "float";
  }
}

const char* wide_type(DType dtype) { return dtype == DType::kF64 ? "double" : is_float(dtype) ? "float" : "long long"; }

std::size_t wide_size(DType dtype) { return dtype == DType::kF64 || !is_float(dtype) ? 8 : 4; }

namespace {

std::string hex(std::uint64_t bits) {
  std::ostringstream text;
  text << "0x" << std::hex << bits;
  return text.str();
}

std::string float_literal(float x) { return str("__uint_as_float(", hex(std::bit_cast<std::uint32_t>(x)), "u)"); }

}  // namespace

std::string real_literal(double x) {
  return str("__longlong_as_double((long long)", hex(std::bit_cast<std::uint64_t>(x)), "ull)");
}

std::string literal(const Number& number, DType dtype) {
  if (dtype == DType::kF64) return real_literal(number.real());
  if (is_float(dtype)) return float_literal(static_cast<float>(rounded(number.real(), dtype)));
  const std::int64_t whole = visit_dtype(dtype, [&]<class T>() { return to_int64(from_number<T>(number)); });
  return str(register_type(dtype), "((", std::string(register_type(dtype)) == "I32" ? "int" : "long long", ")",
             hex(static_cast<std::uint64_t>(whole)), "ull)");
}

std::string join_type(Reduce how) {
  switch (how) {
    case Reduce::kSum: return "JoinSum";
    case Reduce::kProduct: return "JoinProduct";
    case Reduce::kMax: return "JoinMax";
    case Reduce::kMin: return "JoinMin";
  }
  throw InternalError("a reduction outside its enum");
}

std::string join_start(Reduce how, DType dtype) {
  if (how == Reduce::kSum) return "0";
  if (how == Reduce::kProduct) return "1";
  const bool low = how == Reduce::kMax;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (dtype == DType::kF64) return real_literal(low ? -kInf : kInf);
  if (is_float(dtype)) return float_literal(static_cast<float>(low ? -kInf : kInf));
  if (dtype == DType::kBool) return low ? "0" : "1";
  return str("Range<", stored_type(dtype), ">::", low ? "low" : "high");
}

std::string node_text(const MapNode& node, const std::vector<std::string>& args, DType operand) {
  const char* type = stored_type(node.dtype);
  if (node.op == "index") return str("cast<", type, ">(I64(", args[0], "))");
  if (node.op == "cast") return str("cast<", type, ">(", args[0], ")");
  if (node.op == "select") return str("(", args[0], ".v != 0 ? ", args[1], " : ", args[2], ")");
  const std::vector<DType> operands(args.size(), operand);
  const std::string misuse = pointwise_misuse(node.op, operands, node.dtype);
  internal_check(misuse.empty(), misuse.c_str());
  const std::string call = str("bodies::", node.op, "()(", join(args, ", "), ")");
  if (find_pointwise(node.op)->gives_truth()) return str("I32(", call, ")");
  const bool exact =
      node.dtype == DType::kF32 || node.dtype == DType::kF64 || node.dtype == DType::kI32 || node.dtype == DType::kI64;
  return exact ? call : str("keep<", type, ">(", call, ")");
}

std::vector<Run> joined_runs(const std::vector<Dim>& dims, const std::vector<std::vector<std::int64_t>>& strides) {
  std::vector<Run> runs;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].size == 1) continue;
    Run run{dims[d].size, {}};
    for (const auto& own : strides) run.strides.push_back(own[d]);
    bool joins = !runs.empty();
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = runs.back().strides[k] == run.strides[k] * run.size;
    if (joins) runs.back() = {runs.back().size * run.size, run.strides};
    else runs.push_back(run);
  }
  return runs;
}

std::string offset_text(const std::vector<Run>& runs, std::size_t k, const std::string& i) {
  std::string text;
  std::int64_t inner = 1;
  for (std::size_t r = runs.size(); r-- > 0; inner *= runs[r].size) {
    const std::int64_t stride = runs[r].strides[k];
    if (stride == 0) continue;
    std::string index = i;
    if (inner > 1) index = str(index, " / ", inner);
    if (r > 0) index = str("(", index, ") % ", runs[r].size);
    text = str("(long long)(", index, ") * ", stride, "ll", text.empty() ? "" : " + ", text);
  }
  return text.empty() ? "0" : text;
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t power_of_two_above(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace weft::cuda
