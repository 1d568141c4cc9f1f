#include "cli/python_program.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "launch/worker_choice.h"
#include "programs/python_functions.h"

namespace peakbench::cli {
namespace {

using records::Axis;

// With each value of an axis that is an option of a model in Python: MODEL,dtype=bf16,seq=512.
std::vector<std::string> with_options(const std::string& program, const TypedLists& typed,
                                      planning::Request& request) {
  std::vector<std::string> texts{program};
  const std::vector<std::pair<Axis, const char*>> options{{Axis::kDtype, "dtype"},
                                                          {Axis::kSequenceLength, "seq"}};
  for (const auto& [axis, name] : options) {
    if (!is_typed(typed, axis)) continue;
    const auto values = std::exchange(request.lists[axis], {});
    std::vector<std::string> longer;
    for (const auto& text : texts)
      for (const auto& value : values) longer.push_back(fmt::format("{},{}={}", text, name, value));
    texts = std::move(longer);
  }
  return texts;
}

}  // namespace

CLI::Option* add_python_program(CLI::App& command, std::string& program) {
  return add_value(
      command, "--program", program,
      "Model in Python: of an installed library (hf:, timm:, torchvision: or diffusers:NAME; "
      "docs/how-to/models-by-name.md), or a function marked with @peakbench.model; --strategy "
      "then names functions marked with @peakbench.strategy (default: all of the file; "
      "docs/reference/python.md)",
      "PLACE:MODEL[,key=value]");
}

void take_python_program(const std::string& program, const TypedLists& typed,
                         planning::Request& request) {
  if (is_typed(typed, Axis::kModel))
    throw ConfigError("--model and --program both name a model; leave one of them out");
  if (is_typed(typed, Axis::kAllocator)) refuse_for_python("--allocator", program);
  planning::PythonFunctions python;
  std::swap(python.strategies, request.lists[Axis::kStrategy]);
  if (is_typed(typed, Axis::kBatchSize))
    for (const auto& text : request.lists[Axis::kBatchSize])
      python.batch_sizes.push_back(std::stoll(text));
  for (const auto& text : std::exchange(request.lists[Axis::kRanks], {}))
    python.ranks.push_back(std::stoll(text));
  for (auto& text : with_options(program, typed, request)) {
    auto& one = request.programs.emplace_back();
    one.name = program;
    one.folder = std::filesystem::current_path().string();
    one.where = "--program";
    one.python = python;
    one.python->text = std::move(text);
  }
  const auto model = program.substr(program.find_last_of("/:") + 1);
  request.title = model.substr(0, model.find(','));
}

void refuse_for_python(const std::string& option, const std::string& program) {
  throw ConfigError(
      fmt::format("{} is for models of Peakbench; give the function of --program an option "
                  "instead, and write it after a comma ({},key=value)",
                  option, program));
}

void ask_python(const World& world, planning::Request& request) {
  std::optional<std::string> interpreter;  // looked for where it is needed
  for (auto& program : request.programs)
    if (program.python) {
      if (!interpreter) interpreter = launch::torch_of_environment().python;
      programs::ask_python(program, {*interpreter, world.places.program});
    }
}

}  // namespace peakbench::cli
