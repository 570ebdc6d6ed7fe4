// What a program says when every process that mpirun started would say it.
#include <cctype>
#include <chrono>
#include <iostream>
#include <thread>

#include "api/state.h"
#include "base/str.h"
#include "comm/launch.h"
#include "weft/error.h"

namespace weft {

namespace {

// mpirun ends all processes soon after one has failed: who is alive after this time was not heard by anyone else.
constexpr std::chrono::seconds kPoliteness{2};

// Where the environment makes no sense the process speaks for itself; who starts a wire is told.
comm::Launch launch() {
  try {
    return comm::launched().value_or(comm::Launch{});
  } catch (const UserError&) {
    return {};
  }
}

// Whether a report says that nothing is to be expected from a processor: "processor 0 (data=0) is gone", "waited 5 s
// for processors 0 (data=0) 1 (data=1) to come".
bool calls_gone(const std::string& text, int processor) {
  const auto skip_coordinates = [&](std::size_t at) {
    return text.compare(at, 2, " (") == 0 ? text.find(')', at) + 1 : at;
  };
  const auto follows = [&](std::size_t at, std::string_view words) {
    return text.compare(at, words.size(), words) == 0;
  };
  const std::string name = str("processor ", processor);
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) continue;
    if (follows(skip_coordinates(end), " is gone") || follows(skip_coordinates(end), " to come")) return true;
    if (text.substr(0, at).ends_with("gone: ")) return true;
  }
  const std::size_t list = text.find(" s for processors "), end = text.find(" to come", list);
  if (list == std::string::npos || end == std::string::npos) return false;
  return str(text.substr(list, end - list), " ").find(str(" ", processor, " ")) != std::string::npos;
}

}  // namespace

int speaker_of(const std::string& report) {
  int speaker = 0;
  while (calls_gone(report, speaker)) ++speaker;
  return speaker;
}

int wire::process() { return launch().rank; }

void wire::report(const std::exception& error) {
  if (launch().rank != speaker_of(error.what())) std::this_thread::sleep_for(kPoliteness);
  std::cout.flush();
  std::cerr << error.what() << "\n" << std::flush;
}

}  // namespace weft
