#include "records/run_facts.h"

#include <algorithm>

namespace peakbench::records {
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

namespace {

const PluginBuild* find(const std::vector<PluginBuild>& builds, const PluginBuild& like) {
  const auto at = std::ranges::find_if(
      builds, [&](const PluginBuild& one) { return one.kind == like.kind && one.id == like.id; });
  return at == builds.end() ? nullptr : &*at;
}

}  // namespace

std::string short_hash(const std::string& sha256) {
  constexpr std::size_t kShown = 12;
  return sha256.empty() ? "not known" : sha256.substr(0, kShown);
}

std::vector<PluginChange> changed_plugins(const std::vector<PluginBuild>& before,
                                          const std::vector<PluginBuild>& now) {
  std::vector<PluginChange> changes;
  for (const auto& one : now) {
    const auto* was = find(before, one);
    if (was == nullptr || was->sha256 != one.sha256)
      changes.push_back(
          {one.id, one.file, was == nullptr ? "" : was->sha256, one.sha256, one.kind});
  }
  for (const auto& one : before)
    if (find(now, one) == nullptr) changes.push_back({one.id, one.file, one.sha256, "", one.kind});
  return changes;
}

}  // namespace peakbench::records
