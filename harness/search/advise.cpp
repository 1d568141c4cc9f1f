#include "search/advise.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/errors.h"
#include "base/numbers.h"
#include "launch/thread_pool.h"
#include "planning/selection.h"
#include "records/axes.h"
#include "search/sized_case.h"

namespace peakbench::search {
namespace {

using records::Axis;

std::string with(const std::string& stack, const std::string& id) {
  if (id.empty()) return stack;
  return stack == records::kBaseline ? id : stack + "+" + id;
}

// Throws ConfigError for a strategy that is nothing without an option.
void measure(const PlanWith& plan_with, const TrialRunner& trials, WithStrategy& one) {
  const auto planned = plan_with(one.stack);
  one.stack = planning::stack_text(planned.spec.strategies);
  one.promise = planned.promise;
  one.reference = planning::stack_text(planned.reference);
  if (planned.decided) {
    one.why_not = planned.reason;
    return;
  }
  auto found = trials.run(with_memory(planned, kNoLimitBytes), {});
  if (!found)
    one.why_not = "interrupted";
  else if (found->status != records::Status::kOk)
    one.why_not = fmt::format("{}: {}", to_string(found->status), found->reason);
  else
    one.found = std::move(found);
}

planning::Program python_program(const records::CaseSpec& spec) {
  planning::Program program;
  program.name = spec.model.id;
  program.folder = std::filesystem::current_path().string();
  program.where = spec.model.id;
  auto& python = program.python.emplace();
  python.text = planning::selection_text(spec.model);
  python.strategies = {planning::stack_text(spec.strategies)};
  if (spec.batch_size != records::kUnknownBatch) python.batch_sizes = {spec.batch_size};
  return program;
}

std::map<std::string, std::string> texts_of(const nlohmann::json& object) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : object.items())
    texts[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return texts;
}

}  // namespace

planning::Request request_of(const records::CaseResult& measured, const records::Run& run,
                             const std::string& device) {
  const auto& spec = measured.spec;
  planning::Request request;
  request.title = run.title;
  request.lists[Axis::kDevice] = {device.empty() ? spec.device : device};
  if (spec.kind == records::CaseKind::kPython) {
    request.programs = {python_program(spec)};
  } else {
    request.lists[Axis::kModel] = {planning::selection_text(spec.model)};
    request.lists[Axis::kStrategy] = {planning::stack_text(spec.strategies)};
    request.lists[Axis::kDtype] = {spec.dtype};
    request.lists[Axis::kBatchSize] = {std::to_string(spec.batch_size)};
  }
  if (spec.sequence_length)
    request.lists[Axis::kSequenceLength] = {std::to_string(*spec.sequence_length)};
  if (!spec.allocator.empty()) request.lists[Axis::kAllocator] = {spec.allocator};
  if (!spec.torch.empty()) request.lists[Axis::kTorch] = {spec.torch};
  if (device.empty()) request.device_options = texts_of(spec.device_options);
  if (const auto steps = run.settings.find("steps");
      steps != run.settings.end() && steps->is_number_integer())
    request.steps = steps->get<std::int64_t>();
  if (const auto assume = run.settings.find("assume");
      assume != run.settings.end() && assume->is_string())
    request.assume = assume->get<std::string>();
  request.seed = spec.seed;
  request.repetitions = 0;
  request.ablation = false;
  return request;
}

std::vector<WithStrategy> try_each(const std::string& stack,
                                   const std::vector<std::string>& strategies,
                                   const PlanWith& plan_with, const TrialRunner& trials,
                                   std::size_t jobs,
                                   const std::function<void(const std::string&)>& said) {
  std::vector<WithStrategy> tried(strategies.size());
  for (std::size_t i = 0; i < strategies.size(); ++i)
    tried[i] = {.id = strategies[i], .why_not = "interrupted"};
  launch::Callbacks callbacks;
  callbacks.ended = [&](std::size_t i) {
    const auto& one = tried[i];
    said(fmt::format("{}: {}", one.stack,
                     one.found ? gib_text(one.found->memory->peak_allocated_bytes) : one.why_not));
  };
  const auto run = [&](std::size_t i, const launch::Listener&) {
    WithStrategy one{.id = strategies[i], .stack = with(stack, strategies[i])};
    try {
      measure(plan_with, trials, one);
    } catch (const ConfigError& error) {
      one.why_not = error.what();
    }
    tried[i] = std::move(one);
  };
  launch::run_each(strategies.size(), jobs, run, callbacks);
  return tried;
}

void leave_out_broken(std::vector<WithStrategy>& tried, const WithStrategy& now) {
  for (auto& one : tried) {
    if (!one.found) continue;
    one.why_not = why_broken(*one.found, one.reference == now.reference ? &*now.found : nullptr);
    if (!one.why_not.empty()) one.found.reset();
  }
}

}  // namespace peakbench::search
