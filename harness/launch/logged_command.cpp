#include "launch/logged_command.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/printable.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".build-";

// The last whole line that a growing file has.
class LastLine {
 public:
  explicit LastLine(const std::string& path) : file_(path) {}

  // Empty: none since the last call.
  std::string take() {
    std::array<char, 8192> bytes;
    file_.clear();
    while (file_.read(bytes.data(), bytes.size()), file_.gcount() > 0)
      rest_.append(bytes.data(), static_cast<std::size_t>(file_.gcount()));
    const auto end = rest_.rfind('\n');
    if (end == std::string::npos) return "";
    const auto before = end == 0 ? std::string::npos : rest_.rfind('\n', end - 1);
    const auto start = before == std::string::npos ? 0 : before + 1;
    const auto line = rest_.substr(start, end - start);
    rest_.erase(0, end + 1);
    return printable(line);
  }

 private:
  std::ifstream file_;
  std::string rest_;
};

std::string last_words(const std::string& said) {
  constexpr std::size_t kLines = 15;
  std::size_t at = said.find_last_not_of("\n ");
  if (at == std::string::npos) return "";
  const auto end = at + 1;
  for (std::size_t lines = 0; lines < kLines && at != std::string::npos && at > 0; ++lines)
    at = said.rfind('\n', at - 1);
  const auto start = at == std::string::npos || at == 0 ? 0 : at + 1;
  return "\n" + escaped_controls(said.substr(start, end - start));
}

[[noreturn]] void fail(const LoggedCommand& command, const process::ProcessEnd& end) {
  const auto how = !end.start_error.empty() ? end.start_error
                   : end.signal != 0        ? fmt::format("ended by signal {}", end.signal)
                                            : fmt::format("exit code {}", end.exit_code);
  const auto& words = command.arguments;
  const auto what = words[1] == "-m" ? "-m " + words[2] : words[1];
  const auto log = end.log_error.empty() ? fmt::format("Its output is in {}", command.log)
                                         : fmt::format("Its output in {} is incomplete: {}",
                                                       command.log, end.log_error);
  throw ConfigError(fmt::format("{}: {} {}: {}{}\n{}", command.how_it_failed,
                                fs::path(command.arguments[0]).filename().string(), what, how,
                                last_words(end.last_words), log));
}

}  // namespace

bool run_logged(const LoggedCommand& command, const BuildListener& listener) {
  process::ProcessSpec spec;
  spec.arguments = command.arguments;
  spec.environment = command.environment;
  spec.log_path = command.log;
  // Before it grows, so that nothing of the command before is read again.
  std::ofstream(command.log, std::ios::app).flush();
  LastLine last(command.log);
  std::string latest;
  const auto end = process::run_process(
      spec, [](const std::string&) {},
      [&] {
        if (auto line = last.take(); !line.empty()) latest = std::move(line);
        if (!latest.empty()) listener.progress(latest);
        return listener.cancelled();
      });
  if (end.stopped == process::Stop::kInterrupt || listener.cancelled()) return false;
  if (end.start_error.empty() && end.exit_code == 0 && end.signal == 0) return true;
  fail(command, end);
}

UnfinishedFolder::UnfinishedFolder(const fs::path& cache) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(cache, ignored))
    if (entry.path().filename().string().starts_with(kUnfinished)) old.push_back(entry.path());
  for (const auto& path : old) fs::remove_all(path, ignored);
  std::string name = (cache / (std::string(kUnfinished) + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) files::cannot_write(name, errno);
  path_ = name;
}

UnfinishedFolder::~UnfinishedFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void close_to_others(const fs::path& folder) {
  constexpr auto kOthers = fs::perms::group_write | fs::perms::others_write;
  fs::permissions(folder, kOthers, fs::perm_options::remove);
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_symlink()) fs::permissions(entry.path(), kOthers, fs::perm_options::remove);
}

}  // namespace peakbench::launch
