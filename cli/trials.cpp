#include "cli/trials.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <system_error>

#include "base/columns.h"
#include "base/errors.h"
#include "base/printable.h"
#include "cli/rows.h"
#include "reports/render/format.h"

namespace peakbench::cli {
namespace {

using search::CellAnswer;
using search::State;
using search::Trial;

std::string in_short(const FitFound& found, std::size_t i, const CellAnswer& answer) {
  const auto& cell = found.cells[i];
  const auto room = search::room_of(cell, answer);
  const auto takes = room.takes_bytes ? reports::gib(*room.takes_bytes) + " GiB" : "";
  if (answer.state == State::kNotRun) return "not run: " + answer.reason;
  if (answer.state == State::kUnknown)
    return answer.value
               ? fmt::format("at least {} fits: {}", reports::grouped(*answer.value), answer.reason)
               : "not known: " + answer.reason;
  if (answer.state == State::kDoesNotFit)
    return takes.empty() ? "does not fit" : "does not fit, needs " + takes;
  const auto fits = std::string(answer.least.bytes ? "fits, needs " : "fits, reserves ") + takes;
  return found.along == search::Along::kNothing
             ? fits
             : fmt::format("{} {}", reports::grouped(*answer.value), fits);
}

class FitProgress : public search::FitListener {
 public:
  FitProgress(std::ostream& err, Screen screen, const FitFound& found, Clock clock)
      : err_(err),
        screen_(std::move(screen)),
        lines_(err),
        found_(found),
        clock_(std::move(clock)) {
    start_ = drawn_at_ = clock_();
  }
  ~FitProgress() override { lines_.erase(); }

  void cell_started(std::size_t i) override { at_work_[i] = "starting"; }
  void trial_ended(std::size_t i, const Trial& trial) override {
    ++runs_;
    if (!at_work_.contains(i)) return;
    const auto what = found_.along == search::Along::kNothing ? std::string()
                                                              : reports::grouped(trial.value) + " ";
    const auto limit =
        trial.memory_bytes ? fmt::format("in {} GiB ", reports::gib(*trial.memory_bytes)) : "";
    at_work_[i] = fmt::format("{}{}{}", what, limit,
                              trial.status == records::Status::kOk ? "runs" : "does not run");
  }
  void cell_ended(std::size_t i, const CellAnswer& answer) override {
    at_work_.erase(i);
    lines_.erase();
    err_ << counter(ended_++, found_.cells.size()) << " "
         << printable(fmt::format("{} on {}: {}", row_of_cell(found_, found_.cells[i]),
                                  found_.cells[i].card, in_short(found_, i, answer)))
         << "\n"
         << std::flush;
  }
  void warning(const std::string& text) override {
    lines_.erase();
    err_ << "warning: " << text << "\n" << std::flush;
  }
  void tick() override {
    constexpr auto kRedraw = std::chrono::milliseconds(100);
    if (!screen_.live || clock_() - drawn_at_ < kRedraw) return;
    draw();
  }

 private:
  void draw() {
    const auto width = std::max(screen_.width() - 1, 10);
    std::string text;
    for (const auto& [i, words] : at_work_)
      text += fit(printable(fmt::format("  {} on {}: {}", row_of_cell(found_, found_.cells[i]),
                                        found_.cells[i].card, words)),
                  width) +
              "\n";
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(clock_() - start_).count();
    text += fit(fmt::format("{} of {} cells, {} runs, {}", ended_, found_.cells.size(), runs_,
                            duration(seconds)),
                width) +
            "\n";
    lines_.show(text);
    drawn_at_ = clock_();
  }

  std::ostream& err_;
  Screen screen_;
  RedrawnLines lines_;
  const FitFound& found_;
  Clock clock_;
  std::chrono::steady_clock::time_point start_, drawn_at_;
  std::map<std::size_t, std::string> at_work_;
  std::size_t ended_ = 0, runs_ = 0;
};

}  // namespace

files::TemporaryFolder scratch_folder(const std::string& parent) {
  try {
    return {parent, ".trials."};
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("{}: cannot be written: {}", parent, error.code().message()));
  }
}

ProposalProgress::ProposalProgress(std::ostream& err, const Screen& screen, bool quiet,
                                   const std::string& begins)
    : screen_(screen), line_(err), quiet_(quiet) {
  if (!quiet_ && !screen_.live) err << begins << "\n" << std::flush;
}

ProposalProgress::~ProposalProgress() { line_.erase(); }

void ProposalProgress::say(const std::string& text) {
  if (quiet_ || !screen_.live) return;
  line_.show(fit(printable(text), std::max(screen_.width() - 1, 10)) + "\n");
}

std::unique_ptr<search::FitListener> make_fit_progress(std::ostream& err, const Screen& screen,
                                                       bool quiet, const FitFound& found,
                                                       Clock clock) {
  if (quiet) return std::make_unique<WarningsOnly<search::FitListener>>(err);
  return std::make_unique<FitProgress>(err, screen, found, std::move(clock));
}

}  // namespace peakbench::cli
