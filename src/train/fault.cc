#include "train/fault.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "weft/error.h"
#include "weft/session.h"

namespace weft::train {

namespace {

const std::vector<std::string> kPhases = {"step", "save-begun", "mid-shard", "before-rename", "before-latest"};

bool read_number(const std::string& text, std::int64_t least, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least;
}

}  // namespace

Fault::Fault(const std::string& text) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':'), at = text.find('@');
  phase_ = text.substr(0, colon);
  bool known = false;
  for (const std::string& phase : kPhases) known = known || phase == phase_;
  std::int64_t process = wire::process();
  const bool good = known && colon != std::string::npos &&
                    read_number(text.substr(colon + 1, at == std::string::npos ? at : at - colon - 1), 1, left_) &&
                    (at == std::string::npos || read_number(text.substr(at + 1), 0, process));
  if (!good)
    throw UserError({.code = "command.bad-fail-at",
                     .what = "'" + text + "' is no moment to fail at",
                     .where = "--fail-at " + text,
                     .fix = "write PHASE:N or PHASE:N@PROCESS; the phases are: step, save-begun, mid-shard, "
                            "before-rename, before-latest"});
  if (process != wire::process()) phase_.clear();
}

void Fault::at(const std::string& phase, double seconds) {
  if (phase != phase_ || --left_ != 0) return;
  if (seconds <= 0) std::raise(SIGKILL);
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::raise(SIGKILL);
  }).detach();
}

}  // namespace weft::train
