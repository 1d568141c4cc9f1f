#include "result/run_facts.h"

namespace peakbench::result {
namespace {

RunFact build(const char* name) {
  return {.name = name,
          .of = FactOf::kEnvironment,
          .is_build = true,
          .is_resumed = true,
          .is_merged = true};
}

RunFact machine(const char* name) {
  return {.name = name, .of = FactOf::kEnvironment, .is_machine = true};
}

RunFact setting(const char* name) {
  return {.name = name, .of = FactOf::kSettings, .is_resumed = true, .is_merged = true};
}

RunFact incidental(const char* name, FactOf of) {
  return {.name = name, .of = of, .is_incidental = true};
}

std::vector<RunFact> facts_of_runs() {
  // Times of two processors are no run, but a suite may be divided between two machines: its cases
  // then say which.
  auto cpu = machine("cpu"), cores = machine("logical_cores");
  cpu.is_resumed = cpu.makes_times = cores.makes_times = true;
  return {build("libtorch"),
          build("libtorch_git_version"),
          build("libtorch_cuda"),
          build("peakbench"),
          build("commit"),
          machine("os"),
          machine("kernel"),
          cpu,
          cores,
          machine("cpu_governor"),
          machine("memory_bytes"),
          incidental("host", FactOf::kEnvironment),
          setting("steps"),
          setting("warmup"),
          setting("repetitions"),
          setting("threads"),
          setting("seed"),
          setting("assume"),
          setting("second_guesses"),
          incidental("timeout_s", FactOf::kSettings),
          incidental("memory_limit_bytes", FactOf::kSettings),
          incidental("gate", FactOf::kSettings)};
}

}  // namespace

const std::vector<RunFact>& run_facts() {
  static const auto table = facts_of_runs();
  return table;
}

std::vector<std::string> names_where(FactOf of, bool RunFact::*holds) {
  std::vector<std::string> names;
  for (const auto& fact : run_facts())
    if (fact.of == of && fact.*holds) names.emplace_back(fact.name);
  return names;
}

}  // namespace peakbench::result
