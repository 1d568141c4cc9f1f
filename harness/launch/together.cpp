#include "launch/together.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

class Together {
 public:
  Together(const std::vector<Lane>& lanes, const Measure& measure, const Hearing& hearing)
      : lanes_(lanes), measure_(measure), hearing_(hearing) {}

  void run(std::size_t jobs) {
    std::vector<std::jthread> threads;
    working_ = std::min(jobs, lanes_.size());
    for (std::size_t i = working_; i > 0; --i) threads.emplace_back([this] { work(); });
    while (working_ > 0) {
      for (const auto& event : told_.take()) guarded(event);
      guarded(hearing_.tick);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    leave_signals_to_others();
    while (const auto* lane = next_lane())
      for (const auto index : *lane)
        if (begin(*lane, index)) one(index);
    told_.put([this] { --working_; });
  }

  // The beginning of its first case is told before that of any lane after it.
  const Lane* next_lane() {
    const std::lock_guard lock(beginning_);
    if (next_ == lanes_.size() || over_ || interrupted()) return nullptr;
    const auto& lane = lanes_[next_++];
    if (!lane.empty()) tell_beginning(lane.front());
    return &lane;
  }

  bool begin(const Lane& lane, std::size_t index) {
    if (index == lane.front()) return true;
    if (over_ || interrupted()) return false;
    tell_beginning(index);
    return true;
  }

  void tell_beginning(std::size_t index) {
    told_.put([this, index] { hearing_.started(index); });
  }

  // On the listener's thread; throws here what is thrown there.
  void prepare(std::size_t index) {
    if (!hearing_.prepare) return;
    std::promise<void> prepared;
    told_.put([this, index, &prepared] {
      try {
        hearing_.prepare(index);
        prepared.set_value();
      } catch (...) {
        prepared.set_exception(std::current_exception());
      }
    });
    prepared.get_future().get();
  }

  void one(std::size_t index) {
    const Listener listener{
        [this, index](const records::Progress& at) {
          told_.put([this, index, at] { hearing_.progress(index, at); });
        },
        [] {},
        [this](const std::string& text) { told_.put([this, text] { hearing_.warning(text); }); }};
    try {
      prepare(index);
      auto found = measure_(index, listener);
      told_.put([this, index, found = std::move(found)] { hearing_.ended(index, found); });
    } catch (...) {
      told_.put([error = std::current_exception()] { std::rethrow_exception(error); });
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
  const Measure& measure_;
  const Hearing& hearing_;
  Events told_;
  std::mutex beginning_;
  std::size_t next_ = 0;  // under `beginning_`
  std::atomic<bool> over_{false};
  std::size_t working_ = 0;  // threads; the listener's alone, like what follows
  std::exception_ptr failure_;
};

}  // namespace

void measure_together(const std::vector<Lane>& lanes, std::size_t jobs, const Measure& measure,
                      const Hearing& hearing) {
  Together(lanes, measure, hearing).run(jobs);
}

void measure_together(std::size_t count, std::size_t jobs, const Measure& measure,
                      const Hearing& hearing) {
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < count; ++i) lanes.push_back({i});
  measure_together(lanes, jobs, measure, hearing);
}

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace peakbench::launch
