#include "cli/doctor_context.h"

#include <chrono>

#include "errors/errors.h"
#include "process/command.h"
#include "process/python_module.h"
#include "program/python_functions.h"
#include "workers/torch_found.h"

namespace peakbench::cli {
namespace {

constexpr std::chrono::minutes kPatience{10};  // it imports PyTorch, and trains

}  // namespace

int measure_context(World& world, const ContextArguments& arguments) {
  const auto interpreter = workers::torch_of_environment().python;
  if (interpreter.empty())
    throw ConfigError(
        "there is no python3 or python on PATH; install Python, or name yours in "
        "PEAKBENCH_PYTHON");
  auto words = process::python_module(interpreter, "peakbench.context");
  words.insert(words.end(), {"--device", std::to_string(arguments.device)});
  if (!arguments.to.empty()) words.insert(words.end(), {"--to", arguments.to});
  if (arguments.json) words.emplace_back("--json");
  const auto said = process::ask_command({.arguments = words, .patience = kPatience});
  if (said.ok()) {
    world.out << said.out;
    return kDone;
  }
  // One sentence of ours, or of Python before it came so far.
  if (said.exit_code == kUnusableInput && said.err.starts_with("peakbench: ")) {
    world.err << said.err;
    return kUnusableInput;
  }
  throw ConfigError(program::why_no_answer(said, interpreter, "peakbench.context"));
}

}  // namespace peakbench::cli
