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

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/own_file.h"
#include "base/printable.h"
#include "launch/case.h"
#include "launch/incoming.h"
#include "launch/machine.h"
#include "planning/selection.h"
#include "records/run_facts.h"
#include "records/run_files.h"

namespace peakbench::launch {
namespace {

using nlohmann::json;

// Nullopt: two cases disagree.
std::map<std::string, std::optional<json>> said_by(
    const std::vector<const records::CaseResult*>& cases) {
  std::map<std::string, std::optional<json>> said;
  for (const auto* one : cases) {
    if (!one->environment.is_object()) continue;
    for (const auto& [key, value] : one->environment.items()) {
      const auto [found, is_new] = said.emplace(key, value);
      if (!is_new && found->second && *found->second != value) found->second.reset();
    }
  }
  return said;
}

}  // namespace

nlohmann::json host_environment(const planning::Plan& plan) {
  const auto* worker = planning::only_worker(plan);
  return host_environment(worker != nullptr ? *worker : planning::no_worker());
}

nlohmann::json run_environment(json run, const json& host,
                               const std::vector<const records::CaseResult*>& cases) {
  for (const auto& [key, value] : said_by(cases)) {
    if (value)
      run[key] = *value;
    else if (host.contains(key))
      run[key] = host.at(key);
    else
      run.erase(key);
  }
  return run;
}

namespace {

namespace fs = std::filesystem;
using records::FactOf;
using records::RunFact;

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

// Jobs hold absolute paths.
void check_utf8(const std::string& path) {
  std::error_code error;
  const auto absolute = fs::absolute(path, error);
  if (!error && !is_utf8(absolute.string()))
    throw ConfigError(
        fmt::format("the folder {} has a name that is not UTF-8: results and jobs are JSON, which "
                    "holds nothing else. Choose another with --out.",
                    escaped_bytes(absolute.string())));
}

// A link may lead to anybody's folder.
bool is_own_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

void remove_pages(const files::Folder& run) {
  constexpr const char* kReport = "report";
  if (!is_own_folder(run.path_of(kReport))) return;
  if (const auto pages = run.folder(kReport))
    for (const auto& name : pages->names())
      if (files::is_own_file(*pages, name)) pages->remove_file(name);
  run.remove_if_empty(kReport);
}

records::Run run_to_delete(const std::string& folder) {
  try {
    return records::read_run(folder);
  } catch (const RunFileError& error) {
    throw RunFileError(
        fmt::format("{}. --overwrite deletes nothing but a run that it can read. Move this one or "
                    "delete it yourself, or choose another folder with --out.",
                    error.what()));
  }
}

// Not somebody's file of that name.
bool is_of_fit(const std::string& folder) {
  try {
    return records::read_fit_grid(folder).has_value();
  } catch (const RunFileError&) {
    return false;
  }
}

std::set<std::string> slugs_of(const records::Run& run) {
  std::set<std::string> slugs;
  for (const auto& one : run.cases) slugs.insert(one.spec.slug);
  for (const auto& id : run.pending) slugs.insert(planning::slug(id));
  return slugs;
}

std::set<std::string> ids_of(const planning::Plan& plan) {
  std::set<std::string> ids;
  for (const auto& planned : plan.cases) ids.insert(planned.spec.id);
  return ids;
}

std::set<std::string> ids_of(const records::Run& run) {
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

using PlannedCases = std::map<std::string, const planning::PlannedCase*>;  // by id

// What is set on the command line or in the suite for a card (cudnn, TF32) is no part of a
// case's id. The ids are known to be the same.
std::string other_device_options(const records::Run& run, const PlannedCases& planned) {
  for (const auto& one : run.cases) {
    const auto& now = planned.at(one.spec.id)->spec.device_options;
    if (one.spec.device_options != now)
      return fmt::format("{} has the device options {}, this one {}", one.spec.id,
                         one.spec.device_options.dump(), now.dump());
  }
  return "";
}

// What a program's case runs is no part of its id.
std::string other_command(const records::Run& run, const PlannedCases& planned) {
  for (const auto& one : run.cases) {
    const auto& program = planned.at(one.spec.id)->program;
    if (!program || !is_measured(one)) continue;
    const auto now = settings_of(*program);
    for (const char* key : {"command", "folder", "environment"})
      if (const auto a = one.settings.value(key, nlohmann::json()),
          b = now.value(key, nlohmann::json());
          a != b)
        return fmt::format("{} has the {} {}, this one {}", one.spec.id, key, a.dump(), b.dump());
  }
  return "";
}

// Figures of two builds, or times of two processors, are no run. What a case says of itself stands
// in the run's environment too, and is not the host's.
std::string other_build(const records::Run& run, const planning::Plan& plan) {
  if (run.cases.empty()) return "";
  const auto host = host_environment(plan);
  const auto of_case = [&](const std::string& name) {
    return std::ranges::any_of(
        run.cases, [&](const records::CaseResult& one) { return one.environment.contains(name); });
  };
  for (const auto& name : names_where(FactOf::kEnvironment, &RunFact::is_resumed))
    if (run.environment.contains(name) && host.contains(name) &&
        run.environment[name] != host.at(name) && !of_case(name))
      return fmt::format("it was measured with {} = {}, here it is {}", name,
                         run.environment[name].dump(), host.at(name).dump());
  return "";
}

std::string difference(const records::Run& run, const planning::Plan& plan) {
  // A plan may add cases to a run, and leaves out none of it.
  if (const auto extra = some_missing(ids_of(run), ids_of(plan)); !extra.empty())
    return "it also has " + extra;
  const auto settings = settings_of(plan.request);
  for (const auto& name : names_where(FactOf::kSettings, &RunFact::is_resumed))
    if (run.settings.contains(name) && run.settings[name] != settings[name])
      return fmt::format("it has {} = {}, this one {}", name, run.settings[name].dump(),
                         settings[name].dump());
  PlannedCases planned;
  for (const auto& one : plan.cases) planned[one.spec.id] = &one;
  if (const auto other = other_device_options(run, planned); !other.empty()) return other;
  if (const auto other = other_command(run, planned); !other.empty()) return other;
  if (const auto other = other_build(run, plan); !other.empty()) return other;
  if (run.reference != plan.reference)
    return fmt::format("its reference is {}, this one's {}", run.reference, plan.reference);
  return "";
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)) {
  check_utf8(path_);
  files::make_folder(path_);
  check_writable(path_);
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw ConfigError(
        fmt::format("another peakbench is writing to {}. Wait for it or choose another folder "
                    "with --out.",
                    path_));
  }
  // Only who holds the lock writes it.
  files::remove_unfinished(path_, {"run.json"});
  remove_unfinished_cases(path_);
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

bool RunFolder::holds_run() const { return files::is_there(below("run.json")); }

std::string RunFolder::below(const char* name) const { return (fs::path(path_) / name).string(); }

void RunFolder::refuse_links() const {
  const files::Folder folder(path_);
  folder.folder(records::kCasesFolder);
}

void RunFolder::refuse_strangers() const {
  refuse_links();
  const auto cases = below(records::kCasesFolder);
  if (files::holds_nothing(cases)) return;
  throw ConfigError(
      fmt::format("{} is there, and {} holds no run that it could belong to. Nothing was touched; "
                  "move it, or choose another folder with --out.",
                  cases, path_));
}

void RunFolder::clear() const {
  const auto run = run_to_delete(path_);
  const files::Folder folder(path_);
  if (const auto cases = folder.folder(records::kCasesFolder)) {
    const auto slugs = slugs_of(run);
    for (const auto& slug : slugs) cases->folder(slug);  // a link: nothing is deleted yet
    for (const auto& slug : slugs) remove_case(*cases, slug);
  }
  folder.remove_if_empty(records::kCasesFolder);
  remove_pages(folder);
  if (is_of_fit(path_)) folder.remove_file(records::kFitFile);
  folder.remove_file("run.json");  // last: what is left of a killed clear() is still a run's
}

nlohmann::json settings_of(const records::ProgramCommand& program) {
  nlohmann::json settings{{"command", program.arguments}};
  if (!program.typed_folder.empty()) settings["folder"] = program.typed_folder;
  if (!program.environment.empty()) settings["environment"] = program.environment;
  return settings;
}

nlohmann::json settings_of(const planning::Request& request) {
  nlohmann::json settings{{"steps", request.steps},
                          {"warmup", request.warmup},
                          {"repetitions", request.repetitions},
                          {"timeout_s", request.timeout_s},
                          {"memory_limit_bytes", request.memory_limit_bytes},
                          {"threads", request.threads},
                          {"seed", request.seed}};
  if (!request.assume.empty()) settings["assume"] = request.assume;
  if (request.second_guesses > 0) settings["second_guesses"] = request.second_guesses;
  if (request.gate) settings["gate"] = records::to_json(*request.gate);
  return settings;
}

records::Run read_matching_run(const std::string& path, const planning::Plan& plan) {
  auto run = records::read_run(path);
  if (const auto what = difference(run, plan); !what.empty())
    throw ConfigError(
        fmt::format("{} holds a different run, which cannot be resumed with these cases: {}. "
                    "Choose another folder with --out, or --overwrite to delete that run.",
                    path, what));
  return run;
}

}  // namespace peakbench::launch
