#include "stablehlo/term.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/dispatch.h"
#include "base/index.h"
#include "base/str.h"

namespace weft::stablehlo {

Element element_of(DType dtype) {
  static constexpr std::array<Element, 10> kElements = {"f32", "bf16", "f16", "f64", "i32",
                                                        "i64", "ui32", "ui8", "i8",  "i1"};
  return kElements[at(dtype)];
}

bool is_float(Element element) { return element.starts_with('f') || element.starts_with('b'); }
bool is_unsigned(Element element) { return element.starts_with('u') || element == "i1"; }
Element wide_of(Element element) {
  return element == "bf16" || element == "f16" ? "f32" : element == "i1" ? "i32" : element;
}

std::string type_text(Element element, const Shape& shape) {
  std::string text = "tensor<";
  for (const Dim& dim : shape) text += str(static_cast<long>(dim.size), "x");
  return text += str(element, ">");
}
std::string type_text(const Term& term) { return type_text(term.element, term.shape); }

namespace {

std::string hex_text(std::uint64_t bits, int digits) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "0x";
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) text += kDigits[bits >> shift & 15];
  return text;
}

std::string special_text(double number, Element element) {
  const bool nan = std::isnan(number), negative = !nan && number < 0;
  if (element == "f64")
    return hex_text(nan ? 0x7FF8000000000000 : negative ? 0xFFF0000000000000 : 0x7FF0000000000000, 16);
  if (element == "f32") return hex_text(nan ? 0x7FC00000 : negative ? 0xFF800000 : 0x7F800000, 8);
  if (element == "bf16") return hex_text(nan ? 0x7FC0 : negative ? 0xFF80 : 0x7F80, 4);
  return hex_text(nan ? 0x7E00 : negative ? 0xFC00 : 0x7C00, 4);
}

// The shortest decimal that gives the number back, with the point that the syntax asks for.
std::string float_text(double number, Element element) {
  if (!std::isfinite(number)) return special_text(number, element);
  std::array<char, 40> digits;
  const auto written = element == "f64"
                           ? std::to_chars(digits.data(), digits.data() + digits.size(), number)
                           : std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(number));
  std::string text(digits.data(), written.ptr);
  const std::size_t end = std::min(text.find('e'), text.size());
  return text.find('.') < end ? text : text.insert(end, ".0");
}

std::string nested_text(const std::vector<std::string>& numbers, const Shape& shape, std::size_t depth,
                        std::size_t& next) {
  if (depth == shape.rank()) return numbers[next++];
  std::string text = "[";
  for (std::int64_t i = 0; i < shape[depth].size; ++i)
    text += str(i == 0 ? "" : ", ", nested_text(numbers, shape, depth + 1, next));
  return text + "]";
}

}  // namespace

std::string literal_text(const Number& number, Element element) {
  if (is_float(element)) return float_text(number.real(), element);
  if (element == "i1") return number.real() != 0 ? "true" : "false";
  return str(static_cast<long>(from_number<std::int64_t>(number)));
}

std::string dense_text(const std::vector<Number>& numbers, Element element, const Shape& shape) {
  std::vector<std::string> texts;
  texts.reserve(numbers.size());
  for (const Number& number : numbers) texts.push_back(literal_text(number, element));
  std::size_t next = 0;
  return str("dense<", nested_text(texts, shape, 0, next), ">");
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += str('\\', c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += hex_text(static_cast<unsigned char>(c), 2).replace(0, 2, "\\");
    else out += c;
  }
  return out + "\"";
}

}  // namespace weft::stablehlo
