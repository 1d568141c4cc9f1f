#include "cli/revision.h"

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "process/command.h"

namespace peakbench::cli {
namespace {

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

// The first line that a command prints; empty where it fails.
std::string line_of(const std::vector<std::string>& command) {
  constexpr auto kPatience = std::chrono::seconds(20);
  const auto said = process::ask_command({.arguments = command, .patience = kPatience});
  if (!said.ok()) return "";
  std::string line = said.out.substr(0, said.out.find('\n'));
  line.erase(line.find_last_not_of(" \r\n") + 1);
  return line;
}

std::string recorded_commit(const result::Run& run) {
  const auto found = run.environment.find("commit");
  if (found == run.environment.end() || !found->is_string()) return "";
  const auto commit = found->get<std::string>();
  return commit == "unknown" ? "" : commit;
}

}  // namespace

Revision revision_of(const result::Run& run) {
  Revision revision;
  revision.commit =
      first_variable({"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT"});
  revision.branch = first_variable({"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME",
                                    "GIT_BRANCH", "BUILDKITE_BRANCH"});
  if (revision.commit.empty()) revision.commit = recorded_commit(run);
  if (revision.commit.empty()) revision.commit = line_of({"git", "rev-parse", "HEAD"});
  if (revision.branch.empty())
    revision.branch = line_of({"git", "symbolic-ref", "--quiet", "--short", "HEAD"});
  return revision;
}

}  // namespace peakbench::cli
