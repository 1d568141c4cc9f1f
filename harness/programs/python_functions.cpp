#include "programs/python_functions.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/printable.h"
#include "host/command.h"
#include "records/case_json.h"

namespace peakbench::programs {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kPatience{5};  // it imports PyTorch, and what the file imports

class Asking {
 public:
  Asking(planning::Program& program, const PythonToAsk& whom) : program_(program), whom_(whom) {}

  void ask() {
    if (whom_.interpreter.empty())
      fail(
          "there is no python3 or python on PATH to run it; install Python, or name yours in "
          "PEAKBENCH_PYTHON");
    auto answer = answer_of({});
    // On a machine without CUDA's libraries, which the emulated card brings.
    if (answer.value("is_of_import", false)) {
      const auto emulated = answer_of({whom_.peakbench, "emulate", "--no-lines", "--"});
      if (!emulated.value("is_of_import", false)) answer = emulated;
    }
    if (answer.contains("error")) fail(answer["error"].get<std::string>());
    take(Fields(answer));
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw ConfigError(fmt::format("{}: {}", program_.where, printable(problem)));
  }

  json answer_of(std::vector<std::string> words) const {
    const auto& python = *program_.python;
    const json asked{{"program", python.text},
                     {"strategies", python.strategies},
                     {"batch_sizes", python.batch_sizes},
                     {"ranks", python.ranks},
                     {"folder", program_.folder}};
    for (auto& word : process::python_module(whom_.interpreter, "peakbench.bench"))
      words.push_back(std::move(word));
    words.insert(words.end(), {"--describe", json_line(asked)});
    const auto said = process::ask_command({.arguments = words, .patience = kPatience});
    const auto last = said.out.find_last_of('\n', said.out.size() < 2 ? 0 : said.out.size() - 2);
    auto answer =
        json::parse(said.out.substr(last == std::string::npos ? 0 : last), nullptr, false);
    // The program's libraries may fail as they end, after the answer.
    if (said.stopped == process::Stop::kNone && answer.is_object()) return answer;
    fail(why_no_answer(said, whom_.interpreter, python.text));
  }

  static records::PluginUse use_of(const Fields& part) {
    return {records::read_selection(part), part.get<json>("values"), {}};
  }

  void take(const Fields& answer) {
    auto& python = *program_.python;
    python.interpreter = whom_.interpreter;
    python.place = answer.get<std::string>("place");
    python.offered = answer.get<std::vector<std::string>>("offered");
    const auto model = use_of(answer.child("model"));
    for (const auto batch : answer.get<std::vector<std::int64_t>>("batch_sizes"))
      answer.each("strategies", [&](const Fields& strategy) {
        planning::PythonCase one;
        one.model = model;
        one.batch_size = batch;
        strategy.each("stack", [&](const Fields& part) { one.stack.push_back(use_of(part)); });
        strategy.each("reference", [&](const Fields& part) {
          one.reference.push_back(records::read_selection(part));
        });
        one.promise.promise = strategy.get<std::string>("promise");
        one.promise.different_problem = strategy.get<bool>("different_problem");
        one.promise.verdict = "not_checked";
        one.promise.tolerance = strategy.maybe<double>("tolerance");
        one.promise.relative_tolerance = strategy.maybe<double>("relative_tolerance");
        if (strategy.get<bool>("for_ranks"))
          add(one, strategy.get<std::vector<std::int64_t>>("batches"));
        else
          python.cases.push_back(one);
      });
  }

  // With each number of ranks, which train so many batches together.
  void add(planning::PythonCase one, const std::vector<std::int64_t>& batches) {
    auto& python = *program_.python;
    if (batches.size() != python.ranks.size()) fail("an answer of another version of peakbench");
    for (std::size_t i = 0; i < batches.size(); ++i) {
      one.ranks = python.ranks[i];
      if (one.batch_size != records::kUnknownBatch)
        one.global_batch_size = one.batch_size * batches[i];
      python.cases.push_back(one);
    }
  }

  planning::Program& program_;
  const PythonToAsk& whom_;
};

}  // namespace

std::string why_no_answer(const process::CommandSaid& said, const std::string& interpreter,
                          const std::string& asked) {
  if (!said.start_error.empty()) return said.start_error;
  if (said.stopped == process::Stop::kTimeout)
    return fmt::format("{} had not answered for {} within the time that it has", interpreter,
                       asked);
  if (said.err.find("No module named peakbench") != std::string::npos ||
      said.err.find("No module named 'peakbench") != std::string::npos)
    return fmt::format(
        "{} has no package peakbench: install the wheel there, or name another Python in "
        "PEAKBENCH_PYTHON",
        interpreter);
  auto text = said.err;
  while (text.ends_with('\n')) text.pop_back();
  return fmt::format("{} ended with exit code {} before it had answered for {}: {}", interpreter,
                     said.exit_code, asked, text.substr(text.find_last_of('\n') + 1));
}

void ask_python(planning::Program& program, const PythonToAsk& whom) {
  Asking(program, whom).ask();
}

}  // namespace peakbench::programs
