#include "launch/equivalence_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/numbers.h"
#include "launch/machine.h"
#include "planning/selection.h"
#include "records/axes.h"
#include "records/device.h"
#include "records/run_files.h"

namespace peakbench::launch {
namespace {

using records::CaseResult;
using Names = std::vector<std::string>;

constexpr std::size_t kMostNames = 3;

bool is_told(const CaseResult& result) {
  const bool guessed = result.emulation && !result.emulation->read_backs.empty();
  return result.status == records::Status::kOk && result.equivalence && !guessed;
}

bool is_open(const records::Equivalence& found) {
  if (found.verdict == "broken" || found.promise == "different_problem") return false;
  return found.verdict != "held" || found.promise != "bit_identical";
}

// Those of the first that the second lacks, in their order.
Names beyond(const Names& names, const Names& others) {
  const std::set<std::string> known(others.begin(), others.end());
  Names found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string& name) { return !known.contains(name); });
  return found;
}

std::string listed(Names names) {
  const auto count = names.size();
  if (count <= kMostNames) return fmt::format("{}", fmt::join(names, ", "));
  names.resize(kMostNames);
  return fmt::format("{} and {} more", fmt::join(names, ", "), count - kMostNames);
}

std::string difference(const Names& own, const Names& reference) {
  if (const auto lost = beyond(own, reference); !lost.empty())
    return fmt::format("some step gives no gradient to {}; in the reference case each does",
                       listed(lost));
  if (const auto more = beyond(reference, own); !more.empty())
    return fmt::format("each step gives a gradient to {}; in the reference case some does not",
                       listed(more));
  return "";
}

}  // namespace

bool compare_gradients(CaseResult& one, const CaseResult& reference) {
  if (!is_told(one) || !is_told(reference) || !is_open(*one.equivalence)) return false;
  auto words =
      difference(one.equivalence->without_gradient, reference.equivalence->without_gradient);
  if (words.empty()) return false;
  one.equivalence->verdict = "broken";
  one.equivalence->reason = std::move(words);
  return true;
}

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDiskMargin = std::int64_t{512} << 20;
constexpr std::int64_t kBytesAParameter = 4;
constexpr int kDecimals = 2;

bool is_reference(const planning::PlannedCase& planned) {
  return records::stack_text(planned.spec.strategies) == records::stack_text(planned.reference);
}

// Of the case that this one is held against, in the run or not.
records::Setting reference_setting(const planning::PlannedCase& planned) {
  records::Setting setting = planned.spec;
  setting.strategies = planned.reference;
  if (planned.spec.ranks) {  // one process with the batches of all ranks
    setting.batch_size = planned.spec.global_batch_size.value_or(setting.batch_size);
    setting.ranks.reset();
  }
  return setting;
}

std::string reference_id(const planning::PlannedCase& planned) {
  return planning::case_id(reference_setting(planned));
}

}  // namespace

std::vector<std::vector<std::size_t>> execution_groups(const planning::Plan& plan) {
  std::map<nlohmann::json, std::size_t> place;  // of each group
  std::map<std::string, std::size_t> first;     // case with each reference
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const auto [found, is_new] =
        place.emplace(records::table_of(reference_setting(plan.cases[i])), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(i);
    first.emplace(reference_id(plan.cases[i]), i);
  }
  const auto rank = [&](std::size_t i) {
    return std::pair(first.at(reference_id(plan.cases[i])), !is_reference(plan.cases[i]));
  };
  for (auto& group : groups) std::ranges::stable_sort(group, {}, rank);
  return groups;
}

ReferenceCheckpoints::ReferenceCheckpoints(const planning::Plan& plan, std::string run_directory,
                                           ParameterCount parameters)
    : plan_(plan),
      run_directory_(std::move(run_directory)),
      parameters_(std::move(parameters)),
      reference_(plan.cases.size(), -1) {
  std::map<std::string, std::size_t> index_of;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) index_of.emplace(plan.cases[i].spec.id, i);
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    if (const auto found = index_of.find(reference_id(plan.cases[i])); found != index_of.end())
      reference_[i] = static_cast<std::ptrdiff_t>(found->second);
}

std::optional<std::size_t> ReferenceCheckpoints::reference_of(std::size_t index) const {
  if (reference_[index] < 0 || is_reference(plan_.cases[index])) return std::nullopt;
  return static_cast<std::size_t>(reference_[index]);
}

bool ReferenceCheckpoints::needs_reference(std::size_t index) const {
  const auto& planned = plan_.cases[index];
  return !planned.decided && !is_reference(planned) &&
         records::device_from(planned.spec.device).results_repeat;
}

bool ReferenceCheckpoints::is_wanted(std::size_t reference,
                                     const std::vector<const records::CaseResult*>& ended) const {
  for (std::size_t i = 0; i < plan_.cases.size(); ++i)
    if (reference_[i] == static_cast<std::ptrdiff_t>(reference) && needs_reference(i) &&
        ended[i] == nullptr)
      return true;
  return false;
}

std::string ReferenceCheckpoints::file_of(std::size_t reference) const {
  return fs::absolute(run_directory_) / records::case_folder(plan_.cases[reference].spec.slug) /
         records::kParametersFile;
}

std::string ReferenceCheckpoints::shortage(std::size_t reference) const {
  const auto count = parameters_(plan_.cases[reference].spec.model.id);
  const auto needed = count * kBytesAParameter + kDiskMargin;
  const auto free = free_disk_bytes(run_directory_);
  if (free < 0 || free >= needed) return "";
  return fmt::format("the reference's parameters need {} of disk, {} are free",
                     gib_text(needed, kDecimals), gib_text(free, kDecimals));
}

// Where the file is, or why there is none.
void ReferenceCheckpoints::find_file(std::size_t reference, const records::CaseResult* ended,
                                     ReferenceCheckpoint& result) const {
  if (files::is_there(file_of(reference)))
    result.read_path = file_of(reference);
  else if (ended == nullptr)
    result.reason = "the machine failed the reference case: --resume runs it again and checks this";
  else if (ended->status != records::Status::kOk)
    result.reason = "the reference case ended " + to_string(ended->status);
  else if (const auto reason = shortage(reference); !reason.empty())
    result.reason = reason;
  else
    result.reason = "the reference case left no parameters";
}

ReferenceCheckpoint ReferenceCheckpoints::open(
    std::size_t index, const std::vector<const records::CaseResult*>& ended) const {
  const auto& planned = plan_.cases[index];
  const bool differs = planned.promise.promise == "different_problem";
  ReferenceCheckpoint result;
  const auto write = [&] {
    if (is_wanted(index, ended) && shortage(index).empty()) result.write_path = file_of(index);
  };
  if (reference_[index] >= 0 && !differs)
    result.reference_case = plan_.cases[static_cast<std::size_t>(reference_[index])].spec.id;
  const auto device = records::device_from(planned.spec.device);
  if (!device.computes_values) {
    result.reason = device.no_values;
  } else if (!device.results_repeat) {
    result.reason = "promises are checked on the CPU, where results repeat";
  } else if (is_reference(planned)) {
    result.reason = differs ? "the strategy changes what is trained" : "this case is the reference";
    write();
  } else if (reference_[index] < 0) {
    result.reason = fmt::format("the run has no case {} to compare with",
                                records::stack_text(planned.reference));
  } else {
    const auto reference = static_cast<std::size_t>(reference_[index]);
    find_file(reference, ended[reference], result);
    write();  // where one promise is checked, others are compared with this one
  }
  return result;
}

void ReferenceCheckpoints::close(std::size_t index,
                                 const std::vector<const records::CaseResult*>& ended) const {
  const auto reference = reference_[index];
  if (reference < 0) return;
  // There is no such file where results do not repeat; looking through all cases for each takes as
  // long as their square.
  if (!records::device_from(plan_.cases[index].spec.device).results_repeat) return;
  if (is_wanted(static_cast<std::size_t>(reference), ended)) return;
  try {
    const auto cases = files::Folder(run_directory_).folder(records::kCasesFolder);
    const auto folder =
        cases ? cases->folder(plan_.cases[static_cast<std::size_t>(reference)].spec.slug)
              : std::nullopt;
    if (folder) folder->remove_file(records::kParametersFile);
  } catch (const ConfigError&) {  // it is only in the way; a link is not followed
  }
}

}  // namespace peakbench::launch
