// Batches: a stream, and a thread that makes batches ahead and sleeps while enough are ready.
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "data/stream.h"

namespace weft::data {

struct Batches::State {
  State(const SourceOptions& options, std::int64_t ahead) : stream(options), most(ahead) {
    now = mark();
    start();
  }
  ~State() { stop(); }

  // The state of a stream before a batch.
  struct Mark {
    std::string position;
    std::int64_t tokens = 0, epoch = 0;
  };
  struct Ready {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    Mark after;
  };

  Stream stream;  // only the worker uses it, while there is a worker
  const std::int64_t most;
  Mark now;  // of the next batch that the caller gets

  std::mutex mutex;  // guards what follows
  std::condition_variable_any changed;
  std::deque<Ready> ready;
  std::jthread worker;  // last: it uses all of the above

  Mark mark() const { return {stream.position(), stream.tokens(), stream.epoch()}; }

  void start() {
    if (most <= 0) return;
    worker = std::jthread([this](std::stop_token stop) { work(stop); });
  }

  void stop() {
    if (!worker.joinable()) return;
    worker.request_stop();
    worker.join();
    ready.clear();
  }

  // Ends after the last batch, or after the first failure.
  void work(const std::stop_token& stop) {
    for (bool is_over = false; !is_over;) {
      Ready one;
      try {
        one.batch = stream.next();
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
    if (most <= 0) {
      std::optional<Batch> batch = stream.next();
      now = mark();
      return batch;
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !ready.empty(); });
    if (ready.front().failure)
      std::rethrow_exception(ready.front().failure);  // it stays in the queue, so every later call fails alike
    if (!ready.front().batch) return std::nullopt;
    Ready one = std::move(ready.front());
    ready.pop_front();
    now = one.after;
    changed.notify_all();
    return std::move(one.batch);
  }

  // Changes the stream at the caller's position and drops the batches that were made ahead; if the change is refused,
  // nothing changes.
  template <class Change>
  void change(const Change& change) {
    stop();
    stream.seek(now.position);
    try {
      change();
    } catch (...) {
      start();
      throw;
    }
    now = mark();
    start();
  }
};

Batches::Batches(const SourceOptions& options, std::int64_t ahead) : state_(std::make_unique<State>(options, ahead)) {}
Batches::~Batches() = default;

std::optional<Batch> Batches::next() { return state_->next(); }
std::string Batches::position() const { return state_->now.position; }
void Batches::seek(const std::string& position) {
  state_->change([&] { state_->stream.seek(position); });
}
void Batches::only_rows(std::int64_t begin, std::int64_t end) {
  state_->change([&] { state_->stream.only_rows(begin, end); });
}
bool Batches::packed() const { return state_->stream.packed(); }
bool Batches::has_inputs() const { return state_->stream.examples().has_inputs(); }
std::int64_t Batches::examples() const { return state_->stream.examples().count(); }
std::int64_t Batches::tokens() const { return state_->now.tokens; }
std::int64_t Batches::epoch() const { return state_->now.epoch; }

}  // namespace weft::data
