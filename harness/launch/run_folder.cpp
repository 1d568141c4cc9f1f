#include "launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "launch/host.h"
#include "result/errors.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

// Asked by doing: permissions, read-only file systems and quotas show only then.
void check_writable(const std::string& path) {
  const auto probe = fmt::format("{}/.write_test_{}", path, getpid());
  const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const int problem = errno;
  if (fd < 0)
    throw ConfigError(fmt::format("cannot write in the folder {}: {}. Choose another with --out.",
                                  path, std::strerror(problem)));
  close(fd);
  unlink(probe.c_str());
}

std::set<std::string> ids_of(const plan::Plan& plan) {
  std::set<std::string> ids;
  for (const auto& planned : plan.cases) ids.insert(planned.spec.id);
  return ids;
}

std::set<std::string> ids_of(const result::Run& run) {
  std::set<std::string> ids(run.pending.begin(), run.pending.end());
  for (const auto& one : run.cases) ids.insert(one.spec.id);
  return ids;
}

// "A", or "A and 3 more"; empty when there is none.
std::string some_missing(const std::set<std::string>& of, const std::set<std::string>& in) {
  std::vector<std::string> missing;
  for (const auto& id : of)
    if (in.count(id) == 0) missing.push_back(id);
  if (missing.size() < 2) return missing.empty() ? "" : missing[0];
  return fmt::format("{} and {} more", missing[0], missing.size() - 1);
}

// What is set on the command line or in the suite for a card (cudnn, the allocator) is no part of a
// case's id. The ids are known to be the same.
std::string other_device_options(const result::Run& run, const plan::Plan& plan) {
  std::map<std::string, const result::CaseSpec*> planned;
  for (const auto& one : plan.cases) planned[one.spec.id] = &one.spec;
  for (const auto& one : run.cases) {
    const auto& now = planned.at(one.spec.id)->device_options;
    if (one.spec.device_options != now)
      return fmt::format("{} has the device options {}, this one {}", one.spec.id,
                         one.spec.device_options.dump(), now.dump());
  }
  return "";
}

// Figures of two builds, or times of two processors, are no run. What a case says of itself stands
// in the run's environment too, and is not the host's.
std::string other_build(const result::Run& run) {
  if (run.cases.empty()) return "";
  const auto host = host_environment();
  const auto of_case = [&](const char* name) {
    return std::ranges::any_of(
        run.cases, [&](const result::CaseResult& one) { return one.environment.contains(name); });
  };
  for (const char* name :
       {"libtorch", "libtorch_git_version", "libtorch_cuda", "peakbench", "commit", "cpu"})
    if (run.environment.contains(name) && run.environment[name] != host.at(name) && !of_case(name))
      return fmt::format("it was measured with {} = {}, here it is {}", name,
                         run.environment[name].dump(), host.at(name).dump());
  return "";
}

std::string difference(const result::Run& run, const plan::Plan& plan) {
  const auto planned = ids_of(plan), held = ids_of(run);
  if (const auto extra = some_missing(planned, held); !extra.empty())
    return "it does not have " + extra;
  if (const auto extra = some_missing(held, planned); !extra.empty()) return "it also has " + extra;
  const auto settings = settings_of(plan.request);
  for (const char* name : {"steps", "warmup", "repetitions", "threads", "seed"})
    if (run.settings.contains(name) && run.settings[name] != settings[name])
      return fmt::format("it has {} = {}, this one {}", name, run.settings[name].dump(),
                         settings[name].dump());
  if (const auto other = other_device_options(run, plan); !other.empty()) return other;
  if (const auto other = other_build(run); !other.empty()) return other;
  if (run.reference != plan.reference)
    return fmt::format("its reference is {}, this one's {}", run.reference, plan.reference);
  return "";
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (!fs::is_directory(path_))
    throw ConfigError(
        fmt::format("cannot make the folder {}: {}. Choose another with --out.", path_,
                    error ? error.message() : std::string("a file of that name is in the way")));
  check_writable(path_);
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw ConfigError(
        fmt::format("another peakbench is writing to {}. Wait for it or choose another folder "
                    "with --out.",
                    path_));
  }
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

bool RunFolder::holds_run() const { return fs::exists(fs::path(path_) / "run.json"); }

void RunFolder::clear() const {
  for (const char* name : {"run.json", "cases", "report"}) fs::remove_all(fs::path(path_) / name);
}

nlohmann::json settings_of(const plan::Request& request) {
  nlohmann::json settings{{"steps", request.steps},
                          {"warmup", request.warmup},
                          {"repetitions", request.repetitions},
                          {"timeout_s", request.timeout_s},
                          {"memory_limit_bytes", request.memory_limit_bytes},
                          {"threads", request.threads},
                          {"seed", request.seed}};
  if (request.gate) settings["gate"] = result::to_json(*request.gate);
  return settings;
}

result::Run read_matching_run(const std::string& path, const plan::Plan& plan) {
  auto run = result::read_run(path);
  if (const auto what = difference(run, plan); !what.empty())
    throw ConfigError(
        fmt::format("{} holds a different run, which cannot be resumed with these cases: {}. "
                    "Choose another folder with --out, or --overwrite to delete that run.",
                    path, what));
  return run;
}

}  // namespace peakbench::launch
