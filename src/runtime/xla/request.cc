// Requests and results of the compiler as bytes.
#include <charconv>
#include <cstring>

#include "base/philox.h"
#include "base/str.h"
#include "runtime/xla/compiler.h"

namespace weft::xla {

namespace {

constexpr std::string_view kRequestMark = "weft-pjrt-request-1", kResultMark = "weft-pjrt-result-1";

class Writer {
 public:
  explicit Writer(std::string_view mark) { add(mark); }
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  void add(std::int64_t number) { append(&number, sizeof number); }
  void add(double number) { append(&number, sizeof number); }
  // With a checksum at the end.
  std::string finish() {
    add(static_cast<std::int64_t>(hash_key(bytes_, 0)));
    return std::move(bytes_);
  }

 private:
  void append(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string bytes_;
};

// Reads what a Writer wrote; after a damaged field everything is zero and is_good() is false.
class Reader {
 public:
  Reader(const std::string& bytes, std::string_view mark) : bytes_(bytes) {
    if (bytes.size() < sizeof(std::int64_t)) return;
    end_ = bytes.size() - sizeof(std::int64_t);
    std::int64_t sum = 0;
    std::memcpy(&sum, bytes.data() + end_, sizeof sum);
    is_good_ = static_cast<std::int64_t>(hash_key(std::string_view(bytes).substr(0, end_), 0)) == sum;
    is_good_ = text() == mark && is_good_;
  }
  std::string text() {
    const auto size = static_cast<std::size_t>(number());
    if (!has(size)) return {};
    position_ += size;
    return bytes_.substr(position_ - size, size);
  }
  std::int64_t number() { return read<std::int64_t>(); }
  double real() { return read<double>(); }
  bool is_good() const { return is_good_; }

 private:
  bool has(std::size_t size) {
    is_good_ = is_good_ && size <= end_ - position_;
    return is_good_;
  }
  template <class Number>
  Number read() {
    Number number = 0;
    if (!has(sizeof number)) return 0;
    std::memcpy(&number, bytes_.data() + position_, sizeof number);
    position_ += sizeof number;
    return number;
  }

  const std::string& bytes_;
  std::size_t position_ = 0, end_ = 0;
  bool is_good_ = false;
};

}  // namespace

std::string to_bytes(const CompileRequest& request) {
  Writer out(kRequestMark);
  for (const std::string* text : {&request.plugin, &request.topology, &request.module}) out.add(*text);
  out.add(std::int64_t{request.devices});
  return out.finish();
}

std::optional<CompileRequest> request_from(const std::string& bytes) {
  Reader in(bytes, kRequestMark);
  CompileRequest request;
  for (std::string* text : {&request.plugin, &request.topology, &request.module}) *text = in.text();
  request.devices = static_cast<int>(in.number());
  if (!in.is_good()) return std::nullopt;
  return request;
}

std::string to_bytes(const CompileResult& result) {
  Writer out(kResultMark);
  out.add(static_cast<std::int64_t>(result.code));
  for (const std::string* text :
       {&result.message, &result.call, &result.error_code, &result.fix, &result.versions, &result.executable})
    out.add(*text);
  const CompiledMemory& m = result.memory;
  for (const std::int64_t number : {m.code, m.arguments, m.outputs, m.aliased, m.temporaries, m.peak}) out.add(number);
  out.add(result.seconds);
  out.add(result.cpu_seconds);
  out.add(std::int64_t{result.devices});
  return out.finish();
}

std::optional<CompileResult> result_from(const std::string& bytes) {
  Reader in(bytes, kResultMark);
  CompileResult result;
  result.code = static_cast<PJRT_Error_Code>(in.number());
  for (std::string* text :
       {&result.message, &result.call, &result.error_code, &result.fix, &result.versions, &result.executable})
    *text = in.text();
  CompiledMemory& m = result.memory;
  for (std::int64_t* number : {&m.code, &m.arguments, &m.outputs, &m.aliased, &m.temporaries, &m.peak})
    *number = in.number();
  result.seconds = in.real();
  result.cpu_seconds = in.real();
  result.devices = static_cast<int>(in.number());
  if (!in.is_good()) return std::nullopt;
  return result;
}

}  // namespace weft::xla
