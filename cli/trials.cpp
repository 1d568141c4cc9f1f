#include "cli/trials.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <system_error>

#include "base/columns.h"
#include "base/errors.h"
#include "base/printable.h"
#include "cli/rows.h"
#include "cli/terminal.h"
#include "reports/render/format.h"
#include "search/fit.h"

namespace peakbench::cli {

ScratchFolder::ScratchFolder(const std::string& beside) {
  try {
    folder_.emplace(beside, ".trials.");
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("{}: cannot be written: {}", beside, error.code().message()));
  }
}

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
  if (found.along == search::Along::kNothing) return "fits, takes " + takes;
  return fmt::format("{} fits, takes {}", reports::grouped(*answer.value), takes);
}

class FitProgress : public search::FitListener {
 public:
  FitProgress(std::ostream& err, Screen screen, const FitFound& found, Clock clock)
      : err_(err), screen_(std::move(screen)), found_(found), clock_(std::move(clock)) {
    start_ = drawn_at_ = clock_();
  }
  ~FitProgress() override { erase(); }

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
    erase();
    err_ << counter(ended_++, found_.cells.size()) << " "
         << printable(fmt::format("{} on {}: {}", row_of_cell(found_, found_.cells[i]),
                                  found_.cells[i].card, in_short(found_, i, answer)))
         << "\n"
         << std::flush;
  }
  void warning(const std::string& text) override {
    erase();
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
    std::size_t lines = 0;
    for (const auto& [i, words] : at_work_) {
      text += fit(printable(fmt::format("  {} on {}: {}", row_of_cell(found_, found_.cells[i]),
                                        found_.cells[i].card, words)),
                  width) +
              "\n";
      ++lines;
    }
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(clock_() - start_).count();
    text += fit(fmt::format("{} of {} cells, {} runs, {}", ended_, found_.cells.size(), runs_,
                            duration(seconds)),
                width) +
            "\n";
    write_codes(err_, cleared());
    err_ << text << std::flush;
    drawn_ = lines + 1;
    drawn_at_ = clock_();
  }
  void erase() {
    if (drawn_ == 0) return;
    write_codes(err_, cleared());
    err_ << std::flush;
  }
  std::string cleared() {
    const auto lines = drawn_;
    drawn_ = 0;
    return lines == 0 ? "" : fmt::format("\r\x1b[{}A\x1b[J", lines);
  }

  std::ostream& err_;
  Screen screen_;
  const FitFound& found_;
  Clock clock_;
  std::chrono::steady_clock::time_point start_, drawn_at_;
  std::map<std::size_t, std::string> at_work_;
  std::size_t ended_ = 0, runs_ = 0, drawn_ = 0;
};

class NoFitProgress : public search::FitListener {
 public:
  explicit NoFitProgress(std::ostream& err) : err_(err) {}
  void warning(const std::string& text) override { err_ << "warning: " << text << std::endl; }

 private:
  std::ostream& err_;
};

}  // namespace

ProposalProgress::ProposalProgress(std::ostream& err, const Screen& screen, bool quiet,
                                   const std::string& begins)
    : err_(err), screen_(screen), quiet_(quiet) {
  if (!quiet_ && !screen_.live) err_ << begins << "\n" << std::flush;
}

ProposalProgress::~ProposalProgress() {
  if (drawn_) write_codes(err_, "\r\x1b[1A\x1b[J");
  err_ << std::flush;
}

void ProposalProgress::say(const std::string& text) {
  if (quiet_ || !screen_.live) return;
  if (drawn_) write_codes(err_, "\r\x1b[1A\x1b[J");
  err_ << fit(printable(text), std::max(screen_.width() - 1, 10)) << "\n" << std::flush;
  drawn_ = true;
}

std::unique_ptr<search::FitListener> make_fit_progress(std::ostream& err, const Screen& screen,
                                                       bool quiet, const FitFound& found,
                                                       Clock clock) {
  if (quiet) return std::make_unique<NoFitProgress>(err);
  return std::make_unique<FitProgress>(err, screen, found, std::move(clock));
}

}  // namespace peakbench::cli
