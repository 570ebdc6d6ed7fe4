#include "train/signals.h"

namespace weft::train {

namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

bool ends_at_the_second(int number) { return number == SIGINT || number == SIGTERM; }

void note(int number) {
  asked_to_stop = 1;
  if (ends_at_the_second(number)) std::signal(number, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  asked_to_stop = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = kSignals[i] == SIGXFSZ ? SIG_IGN : note;
    sigaction(kSignals[i], nullptr, &before_[i]);
    const bool is_ignored = before_[i].sa_handler == SIG_IGN;
    if (!is_ignored || ends_at_the_second(kSignals[i])) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopSignals::asked() const { return asked_to_stop != 0; }

}  // namespace weft::train
