#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <vector>

#include "base/printable.h"
#include "cli/rows.h"
#include "reports/render/format.h"

namespace peakbench::cli {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kHeartbeat = std::chrono::seconds(30);  // between plain lines of one case

std::string phase_words(const Activity& activity) {
  const auto& at = activity.progress;
  if (at.phase.empty()) return "starting";
  if (at.phase == "step") return fmt::format("step {}/{}", at.step + 1, at.steps);
  const bool in_step =
      at.steps > 0 && at.phase != "load" && at.phase != "build" && at.phase != "write";
  std::string words = printable(at.phase);
  std::replace(words.begin(), words.end(), '_', ' ');
  return in_step ? fmt::format("step {}/{} {}", at.step + 1, at.steps, words) : words;
}

std::string worker_words(const launch::Turn& turn) {
  if (turn.mode == records::JobMode::kMemory) return "memory worker";
  return fmt::format("timing, round {} of {}", turn.round + 1, turn.rounds);
}

std::string workers_left(const launch::Turn& turn) {
  const auto left = turn.memory_workers + turn.throughput_workers;
  return reports::count_of(left, "worker") + " left";
}

// The phrases of the second line, each with its weight: the lightest go first when the window is
// narrow.
struct Phrase {
  int weight;
  std::string text;
};

std::vector<Phrase> phrases_of(const Activity& activity) {
  const bool timing = activity.turn.mode == records::JobMode::kThroughput;
  std::vector<Phrase> phrases;
  phrases.push_back({timing ? 5 : 1, worker_words(activity.turn)});
  phrases.push_back({6, phase_words(activity)});
  if (activity.workers > 1) phrases.push_back({7, fmt::format("{} at work", activity.workers)});
  phrases.push_back({4, duration(activity.elapsed_s)});
  if (activity.remaining_s >= 0)
    phrases.push_back({3, fmt::format("about {} left", duration(activity.remaining_s))});
  phrases.push_back({0, workers_left(activity.turn)});
  if (activity.progress.peak_bytes > 0)
    phrases.push_back(
        {2, fmt::format("{} GiB, peak {} GiB", reports::gib(activity.progress.allocated_bytes),
                        reports::gib(activity.progress.peak_bytes))});
  return phrases;
}

std::string joined(const std::vector<Phrase>& phrases) {
  std::string text;
  for (const auto& phrase : phrases) text += (text.empty() ? "" : ", ") + phrase.text;
  return text;
}

// How long workers of a kind take, from those that ran.
class MeanTime {
 public:
  void add(Time from, Time to) {
    sum_ += to - from;
    ++count_;
  }
  bool known() const { return count_ > 0; }
  double of(std::size_t workers) const {
    return std::chrono::duration<double>(sum_).count() * static_cast<double>(workers) / count_;
  }

 private:
  Time::duration sum_{};
  double count_ = 0;
};

// What both ways of showing share: counting, timing, estimating.
class Progress : public launch::RunListener {
 public:
  Progress(std::ostream& out, std::ostream& err, Clock clock, int columns)
      : out_(out), err_(err), clock_(std::move(clock)), columns_(columns) {}

  void run_started(std::size_t to_run, std::size_t kept) override {
    activity_.count = to_run;
    if (kept > 0) err_ << fmt::format("{} cases are kept, {} to run\n", kept, to_run) << std::flush;
  }
  void worker_started(const launch::Turn& turn) override {
    begun_ = true;
    forget(turn.place);
    workers_.push_back({turn, {}, clock_()});
  }
  void worker_progress(std::size_t place, const records::Progress& progress) override {
    for (auto& worker : workers_)
      if (worker.turn.place == place) worker.progress = progress;
  }
  void worker_ended(std::size_t place) override {
    for (const auto& worker : workers_) {
      if (worker.turn.place != place) continue;
      const bool memory = worker.turn.mode == records::JobMode::kMemory;
      (memory ? memory_ : throughput_).add(worker.start, clock_());
    }
    if (workers_.size() == 1) before_ = workers_.front();
    forget(place);
  }
  void warning(const std::string& text) override {
    err_ << "warning: " << text << "\n" << std::flush;
  }
  void note(const std::string& text) override { err_ << text << "\n" << std::flush; }
  void tasks_state(const std::string& text) override {
    if (text == state_ || clock_() - state_at_ < kHeartbeat) return;
    state_ = text;
    state_at_ = clock_();
    note(text);
  }
  void case_ended(std::size_t place, const records::CaseResult& result) override {
    out_ << case_row(place, activity_.count, result, columns_) << std::flush;
  }

 protected:
  const Activity& activity() {
    // Between two workers, the one before.
    const auto& shown = workers_.empty() ? before_ : workers_.front();
    activity_.turn = shown.turn;
    activity_.progress = shown.progress;
    activity_.workers = std::max<std::size_t>(workers_.size(), 1);
    activity_.elapsed_s =
        std::chrono::duration_cast<std::chrono::seconds>(clock_() - shown.start).count();
    activity_.remaining_s = remaining(activity_.elapsed_s);
    return activity_;
  }
  Time now() const { return clock_(); }
  bool begun() const { return begun_; }  // before, there is no activity to show
  std::ostream& err() { return err_; }

 private:
  void forget(std::size_t place) {
    workers_.remove_if([&](const Worker& worker) { return worker.turn.place == place; });
  }

  // Workers of a kind that has not run yet are taken to be as quick as the other.
  std::int64_t remaining(std::int64_t elapsed_s) const {
    if (!memory_.known() && !throughput_.known()) return -1;
    const auto& memory = memory_.known() ? memory_ : throughput_;
    const auto& throughput = throughput_.known() ? throughput_ : memory_;
    const auto& turn = activity_.turn;
    const double left = memory.of(turn.memory_workers) / static_cast<double>(activity_.workers) +
                        throughput.of(turn.throughput_workers);
    return std::max<std::int64_t>(std::llround(left) - elapsed_s, 0);
  }

  std::ostream& out_;
  std::ostream& err_;
  Clock clock_;
  int columns_;  // of `out`
  struct Worker {
    launch::Turn turn;
    records::Progress progress;
    Time start;
  };
  Activity activity_;
  std::list<Worker> workers_;  // at work, in the order in which they began
  Worker before_;
  bool begun_ = false;
  std::string state_;  // of the tasks, as said last
  Time state_at_;
  MeanTime memory_, throughput_;
};

class LiveProgress : public Progress {
 public:
  LiveProgress(std::ostream& out, std::ostream& err, Screen screen, Clock clock, int columns)
      : Progress(out, err, std::move(clock), columns), screen_(std::move(screen)), lines_(err) {}
  ~LiveProgress() override { lines_.erase(); }

  void worker_started(const launch::Turn& turn) override {
    Progress::worker_started(turn);
    draw();
  }
  void tick() override {
    if (begun() && now() - drawn_at_ >= kRedraw) draw();
  }
  void warning(const std::string& text) override {
    lines_.erase();
    Progress::warning(text);
  }
  void case_ended(std::size_t place, const records::CaseResult& result) override {
    lines_.erase();
    Progress::case_ended(place, result);
  }

 private:
  void draw() {
    std::string text;
    for (const auto& line : status_lines(activity(), screen_.width())) text += line + "\n";
    lines_.show(text);
    drawn_at_ = now();
  }

  Screen screen_;
  RedrawnLines lines_;
  Time drawn_at_;
};

class PlainProgress : public Progress {
 public:
  using Progress::Progress;

  void worker_started(const launch::Turn& turn) override {
    Progress::worker_started(turn);
    if (turn.mode == records::JobMode::kMemory)
      say(named(turn));
    else if (turn.round != round_)
      say(fmt::format("timing, round {} of {}: {} in turn, {}", turn.round + 1, turn.rounds,
                      reports::count_of(turn.group_size, "case"), workers_left(turn)));
    round_ = turn.mode == records::JobMode::kMemory ? -1 : turn.round;
  }
  void worker_progress(std::size_t place, const records::Progress& progress) override {
    Progress::worker_progress(place, progress);
    tick();
  }
  void tick() override {
    if (!begun() || now() - said_at_ < kHeartbeat) return;
    const auto& at = activity();
    say(named(at.turn) + ", " + joined(phrases_of(at)));
  }

 private:
  std::string named(const launch::Turn& turn) {
    return counter(turn.place, activity().count) + " " + printable(turn.case_id);
  }
  void say(const std::string& line) {
    err() << line << "\n" << std::flush;
    said_at_ = now();
  }

  Time said_at_;
  std::int64_t round_ = -1;  // of the worker before
};

}  // namespace

std::vector<std::string> status_lines(const Activity& activity, int width) {
  const auto room = static_cast<std::size_t>(std::max(width - 1, 10));  // the last column wraps
  auto phrases = phrases_of(activity);
  while (phrases.size() > 1 && joined(phrases).size() > room)
    phrases.erase(std::ranges::min_element(phrases, {}, &Phrase::weight));
  const auto count = counter(activity.turn.place, activity.count) + " ";
  const auto id_room = room > count.size() ? room - count.size() : 0;
  return {(count + elided(printable(activity.turn.case_id), id_room)).substr(0, room),
          elided(joined(phrases), room)};
}

std::unique_ptr<launch::RunListener> make_progress(std::ostream& out, std::ostream& err,
                                                   const Screen& screen, bool quiet, Clock clock,
                                                   int columns) {
  if (quiet) return std::make_unique<WarningsOnly<launch::RunListener>>(err);
  if (screen.live)
    return std::make_unique<LiveProgress>(out, err, screen, std::move(clock), columns);
  return std::make_unique<PlainProgress>(out, err, std::move(clock), columns);
}

}  // namespace peakbench::cli
