// When a processor fails: one report, whoever noticed first.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <sstream>

#include "runtime/processors.h"
#include "base/str.h"
#include "layout/sharding.h"
#include "weft/error.h"

namespace weft {

namespace {

// How a wire begins what it tells those whom a failure of another has ended.
constexpr std::string_view kSecondHand = "the wire was aborted: ";

// After a failure the others are at most this far from their next look at the wire, unless they hang.
constexpr std::chrono::seconds kGrace{5};

ErrorText text_of(const ProcessorThreads::Failure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error& error) {
    return error.text();
  } catch (const std::exception& error) {
    return {.what = error.what(),
            .where = str("processor ", failure.processor),
            .fix = "mend the cause above; the session cannot go on and a new one is needed"};
  } catch (...) {
    return {.what = "something was thrown that is no std::exception",
            .where = str("processor ", failure.processor),
            .fix = "throw errors that are std::exceptions"};
  }
}

template <class Kind>
void rethrow_if(const ProcessorThreads::Failure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const Kind&) {
    throw;
  } catch (...) {
  }
}

bool is_second_hand(const ProcessorThreads::Failure& failure) { return text_of(failure).what.starts_with(kSecondHand); }

// Where every processor is, when some wait for others in vain: the board tells who waits in what and, of other
// processes, what they did last; of those of this process we know where they are in the program.
std::string places(const Processors& processors, const std::function<std::string(int)>& doing) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> idle, waiting;
  std::istringstream board(processors.wire().report());
  std::string line;
  for (int p = 0; std::getline(board, line); ++p) {
    const bool waits = line.find(": waits in ") != std::string::npos;
    const bool is_here = std::find(processors.local().begin(), processors.local().end(), p) != processors.local().end();
    const std::string where = doing && is_here && !waits ? doing(p) : "";
    (waits ? waiting : idle).push_back(where.empty() ? line : str("processor ", p, ": is in ", where));
  }
  idle.insert(idle.end(), waiting.begin(), waiting.end());
  if (idle.size() > kMost) {
    const std::size_t more = idle.size() - kMost;
    idle.resize(kMost);
    idle.push_back(str("and ", more, " more"));
  }
  return join(idle, "; ");
}

// Whether a wire says that somebody did not come in time.
bool is_hang(const std::string& what) { return what.find(" s for processor") != std::string::npos; }

// The number at `at`, past which `at` is moved, or -1.
int number_at(const std::string& text, std::size_t& at) {
  constexpr std::size_t kDigits = 6;
  std::size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  if (end == at || end - at > kDigits) return -1;
  const int number = std::stoi(text.substr(at, end - at));
  at = end;
  return number;
}

std::atomic<bool> wire_failed{false};

}  // namespace

void note_wire_failure() { wire_failed = true; }

bool has_wire_failed() { return wire_failed; }

std::string with_coordinates(const std::string& text, const Mesh& mesh) {
  static const std::string kWord = "processor";
  std::string result;
  std::size_t done = 0;
  const auto copy_to = [&](std::size_t end) { result += text.substr(done, end - done), done = end; };
  for (std::size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at)) {
    const bool is_group = text.substr(0, at).ends_with("among ");  // of a collective: its axes say who
    at += kWord.size();
    if (at < text.size() && text[at] == 's') ++at;
    while (!is_group && at < text.size() && text[at] == ' ') {
      std::size_t end = at + 1;
      const int processor = number_at(text, end);
      if (processor < 0 || processor >= mesh.size() || mesh.axes().empty()) break;
      const std::string place = str(" (", coordinates_text(mesh, processor), ")");
      copy_to(at = end);
      if (text.compare(end, place.size(), place) != 0) result += place;
    }
  }
  return result + text.substr(done);
}

void Processors::on_each(const ProcessorThreads::Job& job) {
  threads_->begin(job);
  const ProcessorThreads::Outcome outcome = threads_->end(std::chrono::nanoseconds::max());
  if (!outcome.failures.empty()) fail(outcome, {});
}

void Processors::end_step(const std::function<std::string(int)>& doing) {
  pending_.reset();
  const ProcessorThreads::Outcome outcome = threads_->end(std::min<std::chrono::nanoseconds>(deadline().limit, kGrace));
  if (!outcome.failures.empty()) fail(outcome, doing);
}

void Processors::fail(const ProcessorThreads::Outcome& outcome, const std::function<std::string(int)>& doing) {
  const std::vector<ProcessorThreads::Failure>& failures = outcome.failures;
  for (const ProcessorThreads::Failure& failure : failures)
    rethrow_if<UserError>(failure);  // known before anything was started
  const auto own = std::find_if_not(failures.begin(), failures.end(), is_second_hand);
  const ProcessorThreads::Failure& first = own == failures.end() ? failures[0] : *own;
  ErrorText text = text_of(first);
  if (is_second_hand(first)) text.what.erase(0, kSecondHand.size());
  note_wire_failure();
  wire_->abort(str(text.what, " (", text.where.text, ")"));
  text.what = with_coordinates(text.what, mesh_);
  failure_ = text.what;
  rethrow_if<InternalError>(first);
  for (const int processor : outcome.missing)
    text.where.text += str("; processor ", processor, " has not come back and is left behind");
  if (is_hang(text.what)) text.where.text += str("; ", places(*this, doing));
  text.where = with_coordinates(text.where.text, mesh_);
  throw RunError(std::move(text));
}

}  // namespace weft
