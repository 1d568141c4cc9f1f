#include "reports/trends/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/errors.h"
#include "base/nearest.h"
#include "records/run_files.h"

namespace peakbench::trends {
namespace {

constexpr const char* kScheme = "history:";
constexpr const char* kGrammar =
    "expected history:[BRANCH][@latest|@previous|@good|@NUMBER|@COMMIT][,suite=NAME][,card=TEXT]";
constexpr std::size_t kMostDigits = 6;     // a longer row of digits is a commit
constexpr std::size_t kLeastOfCommit = 4;  // as git wants it

[[noreturn]] void fail(const std::string& text, const std::string& problem) {
  throw ConfigError(fmt::format("{}: {}; {}", text, problem, kGrammar));
}

void read_which(const std::string& which, const std::string& text, Reference& reference) {
  const bool digits = !which.empty() && which.find_first_not_of("0123456789") == std::string::npos;
  if (which == "latest") return;
  if (which == "previous")
    reference.previous = true;
  else if (which == "good")
    reference.filter.good = true;
  else if (digits && which.size() <= kMostDigits)
    reference.filter.number = std::stoll(which);
  else if (which.size() >= kLeastOfCommit)
    reference.filter.commit = which;
  else
    fail(text, fmt::format("\"@{}\" is too short for a commit", which));
}

void read_option(const std::string& option, const std::string& text, Reference& reference) {
  const auto equals = option.find('=');
  const auto key = option.substr(0, equals);
  const auto value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (key != "suite" && key != "card")
    fail(text, fmt::format("unknown key \"{}\"{}", key, suggestion(key, {"suite", "card"})));
  if (value.empty()) fail(text, fmt::format("{} has no value", key));
  (key == "suite" ? reference.filter.suite : reference.filter.card) = value;
}

void check_one_commit(const std::vector<RunRow>& found, const std::string& text) {
  std::set<std::string> commits;
  for (const auto& run : found) commits.insert(run.labels.commit);
  if (commits.size() < 2) return;
  throw ConfigError(fmt::format("{}: {} commits begin with it ({}, {}, ...); type more characters",
                                text, commits.size(), *commits.begin(),
                                *std::next(commits.begin())));
}

[[noreturn]] void nothing_fits(const History& history, const std::string& branch,
                               const std::string& text) {
  const auto branches = history.branches();
  if (branches.empty())
    throw ConfigError(fmt::format("{}: {} holds no run yet; `peakbench history add RUN` adds one",
                                  text, history.path()));
  if (!branch.empty() && std::ranges::find(branches, branch) == branches.end())
    throw ConfigError(fmt::format("{}: {} has no branch \"{}\"{}", text, history.path(), branch,
                                  suggestion(branch, branches)));
  throw ConfigError(
      fmt::format("{}: no run of {} fits; `peakbench history list` shows those there are", text,
                  history.path()));
}

// The comma that the first option follows; others belong to the branch's name.
std::size_t first_option(const std::string& text) {
  for (auto comma = text.find(','); comma != std::string::npos; comma = text.find(',', comma + 1)) {
    const auto end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", comma + 1);
    if (end != std::string::npos && end > comma + 1 && text[end] == '=') return comma;
  }
  return std::string::npos;
}

// Throws ConfigError: nothing fits, or several commits do.
RunRow find_run(const History& history, Reference reference, const std::string& text) {
  const bool commit = !reference.filter.commit.empty();
  reference.filter.limit = commit ? -1 : 2;
  const auto found = history.runs(reference.filter);
  const std::size_t place = reference.previous ? 1 : 0;
  if (found.size() <= place) nothing_fits(history, reference.filter.branch, text);
  if (commit) check_one_commit(found, text);
  return found[place];
}

Source from_history(const Reference& reference, const std::string& text, const std::string& file) {
  const auto history = History::open_to_read(file);
  const auto row = find_run(history, reference, text);
  const auto named = text.substr(text.find(':') + 1);
  return {history.record(row.number), history.parts(row.number), "",
          run_label(named.empty() ? "latest" : named, row)};
}

}  // namespace

std::optional<Reference> reference_from(const std::string& text) {
  if (text.rfind(kScheme, 0) != 0) return std::nullopt;
  auto rest = text.substr(std::string(kScheme).size());
  Reference reference;
  auto comma = first_option(rest);
  const auto head = rest.substr(0, comma);
  const auto at = head.rfind('@');
  reference.filter.branch = head.substr(0, at);
  if (at != std::string::npos) read_which(head.substr(at + 1), text, reference);
  while (comma != std::string::npos) {
    const auto next = rest.find(',', comma + 1);
    read_option(rest.substr(comma + 1, next == std::string::npos ? next : next - comma - 1), text,
                reference);
    comma = next;
  }
  return reference;
}

std::string run_label(const std::string& named, const RunRow& row) {
  const auto commit = short_commit(row.labels);
  return fmt::format("{} (run {}{}{})", named, row.number, commit.empty() ? "" : ", ", commit);
}

std::string history_file(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* variable = std::getenv(kHistoryVariable);
  return variable != nullptr && *variable != '\0' ? variable : kDefaultHistoryFile;
}

Source read_source(const std::string& reference, const std::string& history_file) {
  if (const auto wanted = reference_from(reference))
    return from_history(*wanted, reference, history_file);
  Source source;
  source.run = records::read_run(reference);
  source.folder = records::run_folder_of(reference);
  source.label = reference;
  return source;
}

}  // namespace peakbench::trends
