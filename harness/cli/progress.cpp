#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/rows.h"
#include "reports/format.h"

namespace peakbench::cli {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kHeartbeat = std::chrono::seconds(30);  // between plain lines of one case

std::int64_t seconds(Time from, Time to) {
  return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

std::string phase_words(const Activity& activity) {
  const auto& at = activity.progress;
  if (at.phase.empty()) return "starting";
  if (at.phase == "step") return fmt::format("step {}/{}", at.step + 1, at.steps);
  const bool in_step =
      at.steps > 0 && at.phase != "load" && at.phase != "build" && at.phase != "write";
  std::string words = at.phase;
  std::replace(words.begin(), words.end(), '_', ' ');
  return in_step ? fmt::format("step {}/{} {}", at.step + 1, at.steps, words) : words;
}

// The parts of the second line, each with its weight: the lightest go first when the window is
// narrow.
struct Part {
  int weight;
  std::string text;
};

std::vector<Part> parts_of(const Activity& activity) {
  std::vector<Part> parts;
  parts.push_back(
      {1, activity.mode == result::JobMode::kMemory ? "memory worker" : "throughput worker"});
  parts.push_back({5, phase_words(activity)});
  parts.push_back({4, duration(activity.elapsed_s)});
  if (activity.remaining_s >= 0)
    parts.push_back({3, fmt::format("about {} left", duration(activity.remaining_s))});
  if (activity.progress.peak_bytes > 0)
    parts.push_back(
        {2, fmt::format("{} GiB, peak {} GiB", reports::gib(activity.progress.allocated_bytes),
                        reports::gib(activity.progress.peak_bytes))});
  return parts;
}

std::string joined(const std::vector<Part>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part.text;
  return text;
}

// What both ways of showing share: counting, timing, estimating.
class Progress : public launch::Observer {
 public:
  Progress(std::ostream& out, std::ostream& err, Clock clock)
      : out_(out), err_(err), clock_(std::move(clock)) {}

  void run_started(std::size_t to_run, std::size_t kept) override {
    activity_.count = to_run;
    run_start_ = clock_();
    if (kept > 0) err_ << fmt::format("{} cases are kept, {} to run\n", kept, to_run) << std::flush;
  }
  void case_started(std::size_t place, const plan::PlannedCase& planned) override {
    activity_.place = place;
    activity_.case_id = planned.spec.id;
    activity_.progress = {};
    activity_.mode = result::JobMode::kMemory;
    case_start_ = clock_();
  }
  void case_progress(result::JobMode mode, const result::Progress& progress) override {
    activity_.mode = mode;
    activity_.progress = progress;
  }
  void case_ended(std::size_t place, const result::CaseResult& result) override {
    out_ << case_row(place, activity_.count, result) << std::flush;
    if (result.wall_ns > 0) ++measured_;
  }

 protected:
  const Activity& activity() {
    const auto now = clock_();
    activity_.elapsed_s = seconds(case_start_, now);
    activity_.remaining_s = remaining(now);
    return activity_;
  }
  Time now() const { return clock_(); }
  std::ostream& err() { return err_; }

 private:
  // From the mean of the cases that ran, less what the one at work has had.
  std::int64_t remaining(Time now) const {
    if (measured_ == 0) return -1;
    const auto mean = seconds(run_start_, case_start_) / static_cast<std::int64_t>(measured_);
    const auto left = static_cast<std::int64_t>(activity_.count - activity_.place) * mean;
    return std::max<std::int64_t>(left - seconds(case_start_, now), 0);
  }

  std::ostream& out_;
  std::ostream& err_;
  Clock clock_;
  Activity activity_;
  Time run_start_, case_start_;
  std::size_t measured_ = 0;
};

class LiveProgress : public Progress {
 public:
  LiveProgress(std::ostream& out, std::ostream& err, Screen screen, Clock clock)
      : Progress(out, err, std::move(clock)), screen_(std::move(screen)) {}
  ~LiveProgress() override { erase(); }

  void case_started(std::size_t place, const plan::PlannedCase& planned) override {
    Progress::case_started(place, planned);
    if (!planned.decided) draw();
  }
  void tick() override {
    if (now() - drawn_at_ >= kRedraw) draw();
  }
  void case_ended(std::size_t place, const result::CaseResult& result) override {
    erase();
    Progress::case_ended(place, result);
  }

 private:
  // One write, so that nothing flickers.
  void draw() {
    std::string text = cleared();
    const auto lines = status_lines(activity(), screen_.width());
    for (const auto& line : lines) text += line + "\n";
    err() << text << std::flush;
    drawn_ = lines.size();
    drawn_at_ = now();
  }
  void erase() { err() << cleared() << std::flush; }

  // The cursor stands below the lines drawn: back up, and clear to the end of the screen.
  std::string cleared() {
    const auto lines = drawn_;
    drawn_ = 0;
    return lines == 0 ? "" : fmt::format("\r\x1b[{}A\x1b[J", lines);
  }

  Screen screen_;
  std::size_t drawn_ = 0;
  Time drawn_at_;
};

class PlainProgress : public Progress {
 public:
  using Progress::Progress;

  void case_started(std::size_t place, const plan::PlannedCase& planned) override {
    Progress::case_started(place, planned);
    if (!planned.decided) say("");
  }
  void case_progress(result::JobMode mode, const result::Progress& progress) override {
    Progress::case_progress(mode, progress);
    tick();
  }
  void tick() override {
    if (now() - said_at_ >= kHeartbeat) say(", " + joined(parts_of(activity())));
  }

 private:
  void say(const std::string& more) {
    err() << counter(activity().place, activity().count) << " " << activity().case_id << more
          << "\n"
          << std::flush;
    said_at_ = now();
  }

  Time said_at_;
};

class NoProgress : public launch::Observer {
 public:
  void run_started(std::size_t, std::size_t) override {}
  void case_started(std::size_t, const plan::PlannedCase&) override {}
  void case_progress(result::JobMode, const result::Progress&) override {}
  void case_ended(std::size_t, const result::CaseResult&) override {}
};

}  // namespace

std::vector<std::string> status_lines(const Activity& activity, int width) {
  const auto room = static_cast<std::size_t>(std::max(width - 1, 10));  // the last column wraps
  auto parts = parts_of(activity);
  while (parts.size() > 1 && joined(parts).size() > room)
    parts.erase(std::min_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.weight < b.weight; }));
  const auto count = counter(activity.place, activity.count) + " ";
  const auto id_room = room > count.size() ? room - count.size() : 0;
  return {(count + elided(activity.case_id, id_room)).substr(0, room), elided(joined(parts), room)};
}

std::unique_ptr<launch::Observer> make_progress(std::ostream& out, std::ostream& err,
                                                const Screen& screen, bool quiet, Clock clock) {
  if (quiet) return std::make_unique<NoProgress>();
  if (screen.live) return std::make_unique<LiveProgress>(out, err, screen, std::move(clock));
  return std::make_unique<PlainProgress>(out, err, std::move(clock));
}

}  // namespace peakbench::cli
