#include "train/signals.h"

#include <array>

namespace weft::train {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};
volatile std::sig_atomic_t asked_to_stop = 0;

void note(int number) {
  asked_to_stop = 1;
  std::signal(number, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  asked_to_stop = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopSignals::asked() const { return asked_to_stop != 0; }

}  // namespace weft::train
