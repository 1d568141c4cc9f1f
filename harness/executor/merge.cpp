#include "executor/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "errors/errors.h"
#include "executor/merged_files.h"
#include "launch/incoming.h"
#include "result/run_facts.h"
#include "result/run_paths.h"

namespace peakbench::executor {
namespace {

using nlohmann::json;
using result::CaseResult;
using result::FactOf;
using result::RunFact;

[[noreturn]] void refuse(const PartialRun& a, const PartialRun& b, const std::string& what) {
  throw ConfigError(fmt::format("{} and {} cannot be one run: {}", a.folder, b.folder, what));
}

void check_settings(const PartialRun& a, const PartialRun& b) {
  for (const auto& name : names_where(FactOf::kSettings, &RunFact::is_merged)) {
    const auto one = a.run.settings.value(name, json()), other = b.run.settings.value(name, json());
    if (one != other)
      refuse(a, b,
             fmt::format("{} is {} in one and {} in the other", name, one.dump(), other.dump()));
  }
  const auto &one = a.run.environment, &other = b.run.environment;
  for (const auto& name : names_where(FactOf::kEnvironment, &RunFact::is_merged))
    if (one.contains(name) && other.value(name, json()) != one.at(name))
      refuse(a, b,
             fmt::format("{} is {} in one and {} in the other", name, one.at(name).dump(),
                         other.value(name, json()).dump()));
  if (a.run.reference != b.run.reference)
    refuse(a, b,
           fmt::format("the reference is {} in one and {} in the other", a.run.reference,
                       b.run.reference));
}

// They are no part of a case's id.
void check_device_options(const std::vector<PartialRun>& parts) {
  std::map<std::string, std::pair<const PartialRun*, json>> options;  // by device
  for (const auto& part : parts)
    for (const auto& one : part.run.cases) {
      const auto& spec = one.spec;
      const auto [found, is_new] =
          options.emplace(spec.device, std::pair(&part, spec.device_options));
      if (!is_new && found->second.second != spec.device_options)
        refuse(*found->second.first, part,
               fmt::format("{} has the device options {} in one and {} in the other", spec.device,
                           found->second.second.dump(), spec.device_options.dump()));
    }
}

// Figures of two builds of a plugin are no run either.
void check_plugins(const std::vector<PartialRun>& parts) {
  using Of = std::pair<const PartialRun*, const result::PluginBuild*>;
  // By kind and id; each release of PyTorch and each build of Peakbench has its own.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Of> builds;
  for (const auto& part : parts)
    for (const auto& one : part.run.cases)
      for (const auto& build : one.plugins) {
        const auto [found, is_new] = builds.emplace(
            std::tuple(build.kind, build.id, one.spec.torch, one.spec.build), Of(&part, &build));
        const auto& [first, known] = found->second;
        if (is_new || first == &part || known->sha256 == build.sha256) continue;
        refuse(*first, part,
               fmt::format("the plugin {} is another build in one than in the other (sha256 {} and "
                           "{})",
                           build.file, result::short_hash(known->sha256),
                           result::short_hash(build.sha256)));
      }
}

struct Joined {
  result::Run run;
  std::vector<const PartialRun*> measured_by;  // of each case
};

// One slug is one folder: of two cases in it, one would have the other's trace.
void check_slugs(const Joined& joined) {
  std::map<std::string, std::size_t> case_of;
  for (std::size_t i = 0; i < joined.run.cases.size(); ++i) {
    const auto& spec = joined.run.cases[i].spec;
    const auto [found, is_new] = case_of.emplace(spec.slug, i);
    if (!is_new)
      throw ConfigError(fmt::format(
          "{} in {} and {} in {} have one slug, {}, so that one would have the other's trace; was "
          "a run.json changed by hand?",
          joined.run.cases[found->second].spec.id, joined.measured_by[found->second]->folder,
          spec.id, joined.measured_by[i]->folder, spec.slug));
  }
}

struct Found {
  const PartialRun* part = nullptr;
  const CaseResult* result = nullptr;  // null: pending
  bool over = false;
};

class Merging {
 public:
  explicit Merging(const std::vector<PartialRun>& parts) : parts_(parts) {
    for (const auto& part : parts) add(part);
  }

  Joined joined() const {
    Joined found{parts_.front().run, {}};
    auto& run = found.run;
    run.cases.clear();
    run.pending.clear();
    for (const auto& part : parts_) {
      run.created = std::min(run.created, part.run.created);
      if (part.run.suite != run.suite) run.suite.clear();
    }
    for (const auto& id : order_) {
      const auto& [part, result, over] = found_.at(id);
      if (!over) run.pending.push_back(id);
      if (result == nullptr) continue;
      run.cases.push_back(*result);
      found.measured_by.push_back(part);
      note_machine(run.cases.back(), part->run.environment, run.environment);
    }
    run.status = run.pending.empty() ? "complete" : "interrupted";
    return found;
  }

 private:
  void add(const PartialRun& part) {
    const std::set<std::string> pending(part.run.pending.begin(), part.run.pending.end());
    for (const auto& one : part.run.cases) {
      const bool over =
          pending.count(one.spec.id) == 0 && one.status != result::Status::kHostFailure;
      add(one.spec.id, {&part, &one, over});
    }
    std::set<std::string> known;
    for (const auto& one : part.run.cases) known.insert(one.spec.id);
    for (const auto& id : part.run.pending)
      if (known.count(id) == 0) add(id, {&part, nullptr, false});
  }

  void add(const std::string& id, const Found& found) {
    const auto [at, is_new] = found_.emplace(id, found);
    if (is_new) {
      order_.push_back(id);
      return;
    }
    if (at->second.over && found.over)
      refuse(*at->second.part, *found.part, fmt::format("both have measured {}", id));
    if (found.over || at->second.result == nullptr) at->second = found;
  }

  const std::vector<PartialRun>& parts_;
  std::vector<std::string> order_;
  std::map<std::string, Found> found_;
};

// What two parts say of one case, as of one run.
Joined joined(const std::vector<PartialRun>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) check_settings(parts.front(), parts[i]);
  check_device_options(parts);
  check_plugins(parts);
  auto found = Merging(parts).joined();
  check_slugs(found);
  return found;
}

}  // namespace

void note_machine(CaseResult& one, const json& machine, const json& run) {
  for (const auto& name : names_where(FactOf::kEnvironment, &RunFact::is_machine))
    if (machine.contains(name) && machine.at(name) != run.value(name, json()) &&
        !one.environment.contains(name))
      one.environment[name] = machine.at(name);
}

result::Run merged(const std::vector<PartialRun>& parts) { return joined(parts).run; }

std::optional<Merge> merge_into(const launch::RunFolder& out,
                                const std::vector<std::string>& folders,
                                const std::vector<std::string>& command,
                                const std::function<bool()>& cancelled) {
  if (out.holds_run())
    throw ConfigError(
        fmt::format("{} holds a run already; choose another folder with --out", out.path()));
  out.refuse_strangers();
  std::vector<PartialRun> parts;
  for (const auto& folder : folders)
    parts.push_back({result::run_folder_of(folder), result::read_run(folder)});
  auto [run, measured_by] = joined(parts);
  run.command = command;
  FilesToCopy found;
  std::set<std::string> slugs;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    if (cancelled()) return std::nullopt;
    find_files(run.cases[i], measured_by[i]->folder, found);
    slugs.insert(run.cases[i].spec.slug);
  }
  launch::IncomingCases incoming(out.path(), std::move(slugs));
  if (!copy_files(found.files, incoming, cancelled)) return std::nullopt;
  incoming.finish(run);
  return Merge{std::move(run), std::move(found.absent)};
}

}  // namespace peakbench::executor
