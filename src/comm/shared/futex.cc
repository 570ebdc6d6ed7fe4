#include "comm/shared/futex.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::comm {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds at_most,
                 Reach reach) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                       .tv_nsec = static_cast<long>((at_most - seconds).count())};
  syscall(SYS_futex, &word, reach == Reach::kThreads ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void wake_all(const std::atomic<std::uint32_t>& word, Reach reach) {
  syscall(SYS_futex, &word, reach == Reach::kThreads ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace weft::comm
