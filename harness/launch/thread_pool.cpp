#include "launch/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "launch/interrupt.h"

namespace peakbench::launch {
namespace {

constexpr auto kTick = std::chrono::milliseconds(10);

// From the threads that work to the one that listens.
class Events {
 public:
  using Event = std::function<void()>;

  void put(Event event) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(event));
    }
    ready_.notify_one();
  }
  std::deque<Event> take() {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, kTick, [this] { return !queue_.empty(); });
    return std::exchange(queue_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> queue_;
};

class ThreadPool {
 public:
  ThreadPool(const std::vector<Lane>& lanes, const Work& work, const Callbacks& callbacks)
      : lanes_(lanes), work_(work), callbacks_(callbacks) {}

  void run(std::size_t jobs) {
    std::vector<std::jthread> threads;
    working_ = std::min(jobs, lanes_.size());
    for (std::size_t i = working_; i > 0; --i) threads.emplace_back([this] { work(); });
    while (working_ > 0) {
      for (const auto& event : events_.take()) guarded(event);
      guarded(callbacks_.tick);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    leave_signals_to_others();
    while (const auto* lane = next_lane())
      for (const auto index : *lane)
        if (begin(*lane, index)) one(index);
    events_.put([this] { --working_; });
  }

  // The start of its first number is reported before that of any lane after it.
  const Lane* next_lane() {
    const std::lock_guard lock(beginning_);
    if (next_ == lanes_.size() || over_ || interrupted()) return nullptr;
    const auto& lane = lanes_[next_++];
    if (!lane.empty()) report_start(lane.front());
    return &lane;
  }

  bool begin(const Lane& lane, std::size_t index) {
    if (index == lane.front()) return true;
    if (over_ || interrupted()) return false;
    report_start(index);
    return true;
  }

  void report_start(std::size_t index) {
    events_.put([this, index] { callbacks_.started(index); });
  }

  void one(std::size_t index) {
    const Listener listener{[this, index](const records::Progress& at) {
                              events_.put([this, index, at] { callbacks_.progress(index, at); });
                            },
                            [] {},
                            [this](const std::string& text) {
                              events_.put([this, text] { callbacks_.warning(text); });
                            }};
    try {
      work_(index, listener);
      events_.put([this, index] { callbacks_.ended(index); });
    } catch (...) {
      events_.put([error = std::current_exception()] { std::rethrow_exception(error); });
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

  const std::vector<Lane>& lanes_;
  const Work& work_;
  const Callbacks& callbacks_;
  Events events_;
  std::mutex beginning_;
  std::size_t next_ = 0;  // under `beginning_`
  std::atomic<bool> over_{false};
  std::size_t working_ = 0;  // threads; the listener's alone, like what follows
  std::exception_ptr failure_;
};

}  // namespace

void run_in_lanes(const std::vector<Lane>& lanes, std::size_t jobs, const Work& work,
                  const Callbacks& callbacks) {
  ThreadPool(lanes, work, callbacks).run(jobs);
}

void run_each(std::size_t count, std::size_t jobs, const Work& work, const Callbacks& callbacks) {
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < count; ++i) lanes.push_back({i});
  run_in_lanes(lanes, jobs, work, callbacks);
}

}  // namespace peakbench::launch
