#include "launch/hand_over.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "launch/device_environment.h"
#include "launch/host.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDiskMargin = std::int64_t{512} << 20;
constexpr std::int64_t kBytesAParameter = 4;

// Everything of a case but its stack.
std::string group_of(const result::CaseSpec& spec) {
  return fmt::format("{} {} {} {} {} {} {} {}", spec.model.id, spec.model.options.dump(),
                     spec.device, spec.device_options.dump(), spec.dtype, spec.batch_size,
                     spec.sequence_length.value_or(-1), spec.seed);
}

bool is_baseline(const result::CaseSpec& spec) {
  return spec.strategies.size() == 1 && spec.strategies[0].id == "baseline" &&
         spec.strategies[0].options.empty();
}

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

std::vector<std::size_t> execution_order(const plan::Plan& plan) {
  std::map<std::string, std::size_t> first;  // of each group
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    first.emplace(group_of(plan.cases[i].spec), i);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](std::size_t i) {
      const auto& spec = plan.cases[i].spec;
      return std::pair(first.at(group_of(spec)), !is_baseline(spec));
    };
    return rank(a) < rank(b);
  });
  return order;
}

HandOverBook::HandOverBook(const plan::Plan& plan, std::string run_directory,
                           ParameterCount parameters)
    : plan_(plan),
      run_directory_(std::move(run_directory)),
      parameters_(std::move(parameters)),
      reference_(plan.cases.size(), -1) {
  std::map<std::string, std::size_t> baselines;
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    if (is_baseline(plan.cases[i].spec)) baselines.emplace(group_of(plan.cases[i].spec), i);
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    if (const auto found = baselines.find(group_of(plan.cases[i].spec)); found != baselines.end())
      reference_[i] = static_cast<std::ptrdiff_t>(found->second);
}

bool HandOverBook::needs_reference(std::size_t index) const {
  const auto& planned = plan_.cases[index];
  return !planned.decided && !is_baseline(planned.spec) && planned.spec.device == "cpu" &&
         planned.promise.promise != "different_problem";
}

std::string HandOverBook::file_of(std::size_t reference) const {
  return fs::absolute(run_directory_) / "cases" / plan_.cases[reference].spec.slug /
         "parameters.tmp";
}

std::string HandOverBook::shortage(std::size_t reference) const {
  const auto count = parameters_(plan_.cases[reference].spec.model.id);
  const auto needed = count * kBytesAParameter + kDiskMargin;
  const auto free = free_disk_bytes(run_directory_);
  if (free < 0 || free >= needed) return "";
  return fmt::format("the reference's parameters need {:.2f} GiB of disk, {:.2f} GiB are free",
                     gib(needed), gib(free));
}

HandOver HandOverBook::open(std::size_t index,
                            const std::vector<const result::CaseResult*>& ended) const {
  const auto& planned = plan_.cases[index];
  HandOver result;
  if (reference_[index] >= 0)
    result.reference_case = plan_.cases[static_cast<std::size_t>(reference_[index])].spec.id;
  if (is_emulated(planned.spec.device)) {
    result.reason = "an emulated card computes no values";
  } else if (planned.spec.device != "cpu") {
    result.reason = "promises are checked on the CPU, where results repeat";
  } else if (is_baseline(planned.spec)) {
    result.reason = "this case is the reference";
    bool wanted = false;
    for (std::size_t i = 0; i < plan_.cases.size(); ++i)
      wanted |= reference_[i] == reference_[index] && needs_reference(i) && ended[i] == nullptr;
    if (wanted && shortage(index).empty()) result.write_path = file_of(index);
  } else if (planned.promise.promise == "different_problem") {
    result.reason = "the strategy trains a different problem";
  } else if (reference_[index] < 0) {
    result.reason = "this run has no baseline case to compare with";
  } else {
    const auto reference = static_cast<std::size_t>(reference_[index]);
    const auto* known = ended[reference];
    if (fs::exists(file_of(reference)))
      result.read_path = file_of(reference);
    else if (known != nullptr && known->status != result::Status::kOk)
      result.reason = "the reference case ended " + to_string(known->status);
    else if (const auto reason = shortage(reference); !reason.empty())
      result.reason = reason;
    else
      result.reason = "the reference case left no parameters";
  }
  return result;
}

void HandOverBook::close(std::size_t index, const std::set<std::size_t>& pending) const {
  const auto reference = reference_[index];
  if (reference < 0) return;
  for (const auto i : pending)
    if (reference_[i] == reference && needs_reference(i)) return;
  std::error_code ignored;
  fs::remove(file_of(static_cast<std::size_t>(reference)), ignored);
}

}  // namespace peakbench::launch
