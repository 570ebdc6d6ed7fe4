// Prefetched: a thread that sleeps until fewer batches than wanted lie ready.
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "weft/data.h"

namespace weft::data {

struct Prefetched::State {
  State(const SourceOptions& options, std::int64_t ahead) : batches(options), most(ahead < 1 ? 1 : ahead) {
    now = mark();
    start();
  }
  ~State() { stop(); }

  // What a stream says of itself before a batch.
  struct Mark {
    std::string position;
    std::int64_t tokens = 0, epoch = 0;
  };
  struct Ready {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    Mark after;
  };

  Batches batches;  // the worker's, while there is one
  const std::int64_t most;
  Mark now;  // of the next batch handed out

  std::mutex mutex;  // guards what follows
  std::condition_variable_any changed;
  std::deque<Ready> ready;
  std::jthread worker;  // last: it uses all of the above

  Mark mark() const { return {batches.position(), batches.tokens(), batches.epoch()}; }

  void start() {
    worker = std::jthread([this](std::stop_token stop) { work(stop); });
  }

  void stop() {
    if (!worker.joinable()) return;
    worker.request_stop();
    worker.join();
    ready.clear();
  }

  // Ends after the last batch, or the first that failed.
  void work(const std::stop_token& stop) {
    for (bool is_over = false; !is_over;) {
      Ready one;
      try {
        one.batch = batches.next();
      } catch (...) {
        one.failure = std::current_exception();
      }
      one.after = mark();
      is_over = !one.batch;
      std::unique_lock lock(mutex);
      changed.wait(lock, stop, [&] { return static_cast<std::int64_t>(ready.size()) < most; });
      if (stop.stop_requested()) return;
      ready.push_back(std::move(one));
      changed.notify_all();
    }
  }

  std::optional<Batch> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !ready.empty(); });
    if (ready.front().failure) std::rethrow_exception(ready.front().failure);  // it stays: every next one fails so
    if (!ready.front().batch) return std::nullopt;
    Ready one = std::move(ready.front());
    ready.pop_front();
    now = one.after;
    changed.notify_all();
    return std::move(one.batch);
  }

  void seek(const std::string& position) {
    stop();
    batches.seek(now.position);  // back from what was made ahead, should the position be refused
    try {
      batches.seek(position);
    } catch (...) {
      start();
      throw;
    }
    now = mark();
    start();
  }
};

Prefetched::Prefetched(const SourceOptions& options, std::int64_t ahead)
    : state_(std::make_unique<State>(options, ahead)) {}
Prefetched::~Prefetched() = default;

std::optional<Batch> Prefetched::next() { return state_->next(); }
std::string Prefetched::position() const { return state_->now.position; }
void Prefetched::seek(const std::string& position) { state_->seek(position); }
bool Prefetched::packed() const { return state_->batches.packed(); }
bool Prefetched::has_inputs() const { return state_->batches.has_inputs(); }
std::int64_t Prefetched::examples() const { return state_->batches.examples(); }
std::int64_t Prefetched::tokens() const { return state_->now.tokens; }
std::int64_t Prefetched::epoch() const { return state_->now.epoch; }
const Vocabulary& Prefetched::vocabulary() const { return state_->batches.vocabulary(); }

}  // namespace weft::data
