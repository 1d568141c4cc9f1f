#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "base/folder.h"
#include "cli/fit_text.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "search/fit.h"

namespace peakbench::cli {

// A folder in this one for what is run only to see how it ends; goes with all that is in it. Throws
// ConfigError where nothing can be written there.
files::TemporaryFolder scratch_folder(const std::string& parent);

// How far `peakbench fit` is. A line a cell as it is found; on a live screen also the cells at
// work, redrawn. `found` must outlive it; its answers are not read.
std::unique_ptr<search::FitListener> make_fit_progress(
    std::ostream& err, const Screen& screen, bool quiet, const FitFound& found,
    Clock clock = std::chrono::steady_clock::now);

// While stacks are tried: a line that is redrawn on a live screen; elsewhere `begins` alone.
class ProposalProgress {
 public:
  ProposalProgress(std::ostream& err, const Screen& screen, bool quiet, const std::string& begins);
  ProposalProgress(const ProposalProgress&) = delete;
  ProposalProgress& operator=(const ProposalProgress&) = delete;
  ~ProposalProgress();
  void say(const std::string& text);

 private:
  Screen screen_;
  RedrawnLines line_;
  bool quiet_;
};

}  // namespace peakbench::cli
