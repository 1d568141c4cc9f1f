#include "executor/attempt_folder.h"

#include <string>
#include <thread>

#include "errors/errors.h"
#include "files/file.h"
#include "launch/interrupt.h"

namespace peakbench::executor {
namespace {

using Clock = std::chrono::steady_clock;

// Tries it again while somebody else has the folder. Gives why it was not taken; empty: it was.
std::string taken(std::optional<launch::RunFolder>& folder, const std::string& path,
                  Clock::time_point until) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(200);
  for (;;) {
    try {
      folder.emplace(path);
      return "";
    } catch (const HostError&) {
      throw;
    } catch (const ConfigError& error) {
      if (Clock::now() >= until || launch::interrupted()) return error.what();
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

}  // namespace

AttemptFolder::AttemptFolder(const SubmissionFiles& files, std::size_t task, int attempt)
    : files_(files), task_(task), attempt_(attempt) {
  files::make_folder(files_.attempt_folder(task_, attempt_));
}

bool AttemptFolder::is_last() const {
  const auto attempts = attempts_in(files_, task_);
  return attempts.empty() || attempts.back() <= attempt_;
}

const launch::RunFolder& AttemptFolder::take(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  const auto why = taken(folder_, files_.attempt_folder(task_, attempt_), until);
  // Not refused: another attempt may do better.
  if (!folder_) throw HostError(why);
  for (const auto earlier : attempts_in(files_, task_)) {
    if (earlier >= attempt_) break;
    std::optional<launch::RunFolder> given_back;
    taken(given_back, files_.attempt_folder(task_, earlier), until);
  }
  return *folder_;
}

std::optional<result::Run> AttemptFolder::newest_run() const {
  auto attempts = attempts_in(files_, task_);
  for (; !attempts.empty(); attempts.pop_back()) {
    const auto folder = files_.attempt_folder(task_, attempts.back());
    if (attempts.back() > attempt_ || !files::is_there(folder + "/run.json")) continue;
    try {
      return result::read_run(folder);
    } catch (const RunFileError&) {
      // Of a machine that is lost: half there. Its cases are measured again.
    }
  }
  return std::nullopt;
}

}  // namespace peakbench::executor
