// Progress of a run: status lines, redrawn on a terminal and plain elsewhere. Rows of finished
// cases are written to `out`, everything else to `err`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "base/columns.h"
#include "cli/terminal.h"
#include "launch/session.h"

namespace peakbench::cli {

using Clock = std::function<std::chrono::steady_clock::time_point()>;

// `columns`: of `out`.
std::unique_ptr<launch::RunListener> make_progress(std::ostream& out, std::ostream& err,
                                                   const Screen& screen, bool quiet,
                                                   Clock clock = std::chrono::steady_clock::now,
                                                   int columns = kUnbroken);

// Prints warnings alone: what a quiet command has.
template <class Listener>
class WarningsOnly final : public Listener {
 public:
  explicit WarningsOnly(std::ostream& err) : err_(err) {}
  void warning(const std::string& text) override { err_ << "warning: " << text << std::endl; }

 private:
  std::ostream& err_;
};

// What is known of the worker at work, of several of the one that began first.
struct Activity {
  launch::Turn turn;
  std::size_t count = 0;    // cases that run
  std::size_t workers = 1;  // at work
  records::Progress progress;
  std::int64_t elapsed_s = 0;     // of the worker
  std::int64_t remaining_s = -1;  // of the run, estimated; -1: still unknown
};

// At most two lines of less than `width` columns: what matters least is left out first.
std::vector<std::string> status_lines(const Activity& activity, int width);

}  // namespace peakbench::cli
