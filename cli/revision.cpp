#include "cli/revision.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace peakbench::cli {
namespace {

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

// One line of what a fixed command prints; empty where it fails.
std::string line_of(const char* command) {
  std::FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  std::array<char, 512> line{};
  const bool some = std::fgets(line.data(), line.size(), pipe) != nullptr;
  const bool failed = pclose(pipe) != 0;
  std::string text = some && !failed ? line.data() : "";
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text;
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
  if (revision.commit.empty()) revision.commit = line_of("git rev-parse HEAD 2>/dev/null");
  if (revision.branch.empty())
    revision.branch = line_of("git symbolic-ref --quiet --short HEAD 2>/dev/null");
  return revision;
}

}  // namespace peakbench::cli
