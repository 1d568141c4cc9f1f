#include "launch/together.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "launch/interrupt.h"

namespace peakbench::launch {
namespace {

constexpr auto kTick = std::chrono::milliseconds(10);

// From the threads that work to the one that listens.
class Queue {
 public:
  using Event = std::function<void()>;

  void put(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }
  std::deque<Event> take() {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, kTick, [this] { return !events_.empty(); });
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
};

// Signals are for the thread that writes files: it has them wait until a file has its name.
void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

class Together {
 public:
  Together(std::size_t count, const Measure& measure, const Hearing& hearing)
      : count_(count), measure_(measure), hearing_(hearing) {}

  void run(std::size_t jobs) {
    std::vector<std::jthread> threads;
    working_ = std::min(jobs, count_);
    for (std::size_t i = working_; i > 0; --i) threads.emplace_back([this] { work(); });
    while (working_ > 0) {
      for (const auto& event : queue_.take()) guarded(event);
      guarded(hearing_.tick);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    leave_signals_to_others();
    while (const auto index = begin()) one(*index);
    queue_.put([this] { --working_; });
  }

  // The next case, whose beginning is told before that of any after it.
  std::optional<std::size_t> begin() {
    const std::lock_guard lock(beginning_);
    if (next_ == count_ || over_ || interrupted()) return {};
    const auto index = next_++;
    queue_.put([this, index] { hearing_.started(index); });
    return index;
  }

  void one(std::size_t index) {
    const Listener listener{
        [this, index](const result::Progress& at) {
          queue_.put([this, index, at] { hearing_.progress(index, at); });
        },
        [] {},
        [this](const std::string& text) { queue_.put([this, text] { hearing_.warning(text); }); }};
    try {
      auto found = measure_(index, listener);
      queue_.put([this, index, found = std::move(found)] { hearing_.ended(index, found); });
    } catch (...) {
      queue_.put([error = std::current_exception()] { std::rethrow_exception(error); });
    }
  }

  void guarded(const std::function<void()>& what) {
    try {
      what();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      over_ = true;
    }
  }

  const std::size_t count_;
  const Measure& measure_;
  const Hearing& hearing_;
  Queue queue_;
  std::mutex beginning_;
  std::size_t next_ = 0;  // under `beginning_`
  std::atomic<bool> over_{false};
  std::size_t working_ = 0;  // threads; the listener's alone, like what follows
  std::exception_ptr failure_;
};

}  // namespace

void measure_together(std::size_t count, std::size_t jobs, const Measure& measure,
                      const Hearing& hearing) {
  Together(count, measure, hearing).run(jobs);
}

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace peakbench::launch
