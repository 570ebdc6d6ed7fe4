// agree(): an error of one process becomes the error of all.
#include <algorithm>
#include <cstring>

#include "api/state.h"
#include "base/bytes.h"
#include "weft/detail/session_access.h"
#include "weft/error.h"

namespace weft::detail {

namespace {

// An error of a process, as the other processes throw it.
struct ErrorReport {
  enum class Kind : std::uint8_t { kUser, kRun, kInternal };
  Kind kind = Kind::kInternal;
  ErrorText text{.code = "", .what = {}, .where = {}, .fix = {}};

  [[noreturn]] void raise() const {
    if (kind == Kind::kUser) throw UserError(text);
    if (kind == Kind::kRun) throw RunError(text);
    throw InternalError(text);
  }
};

ErrorReport report_of(const std::exception_ptr& error) {
  using Kind = ErrorReport::Kind;
  try {
    std::rethrow_exception(error);
  } catch (const UserError& e) {
    return {Kind::kUser, e.text()};
  } catch (const RunError& e) {
    return {Kind::kRun, e.text()};
  } catch (const Error& e) {
    return {Kind::kInternal, e.text()};
  } catch (const std::exception& e) {
    return {Kind::kInternal, InternalError(e.what()).text()};
  } catch (...) {
    return {Kind::kInternal, InternalError("something was thrown that is no std::exception").text()};
  }
}

std::string to_bytes(const ErrorReport& report) {
  ByteWriter bytes;
  bytes.number(report.kind);
  for (const std::string& text : {report.text.code.text, report.text.what, report.text.where.text, report.text.fix})
    bytes.text(text);
  return bytes.bytes();
}

ErrorReport report_from_bytes(std::string_view text) {
  ByteReader bytes(text);
  ErrorReport report;
  report.kind = bytes.number<ErrorReport::Kind>();
  report.text.code = bytes.text();
  report.text.what = bytes.text();
  report.text.where = bytes.text();
  report.text.fix = bytes.text();
  return report;
}

}  // namespace

void agree(const Session& session, const std::exception_ptr& error, const std::string& what) {
  Processors& processors = *SessionState::of(session).processors;
  if (processors.all_are_local()) {
    if (error) std::rethrow_exception(error);
    return;
  }
  processors.make_ready();
  const std::string mine = error ? to_bytes(report_of(error)) : "";
  // The first processor of a process sends its report, the others of the process send zeros.
  const auto gathered = [&](const std::vector<std::int64_t>& report) {
    const std::vector<std::int64_t> zeros(report.size(), 0);
    return processors.gather_numbers(static_cast<std::int64_t>(report.size()), what, [&](ProcessorId p) {
      return p == processors.first() ? report.data() : zeros.data();
    });
  };
  // First the size of every report, then, if there is one, the reports.
  const std::vector<std::int64_t> sizes = gathered({static_cast<std::int64_t>(mine.size())});
  const auto failed = std::find_if(sizes.begin(), sizes.end(), [](std::int64_t size) { return size > 0; });
  if (failed == sizes.end()) return;
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  const std::size_t words = longest / sizeof(std::int64_t) + 1;
  std::vector<std::int64_t> packed(words, 0);
  std::memcpy(packed.data(), mine.data(), mine.size());
  const std::vector<std::int64_t> reports = gathered(packed);
  const auto first = static_cast<std::size_t>(failed - sizes.begin());
  report_from_bytes({reinterpret_cast<const char*>(reports.data() + first * words), static_cast<std::size_t>(*failed)})
      .raise();
}

}  // namespace weft::detail
