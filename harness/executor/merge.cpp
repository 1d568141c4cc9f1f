#include "executor/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "errors/errors.h"
#include "files/file.h"
#include "launch/case.h"
#include "result/case_files.h"
#include "result/run_facts.h"
#include "result/run_paths.h"

namespace peakbench::executor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using result::CaseFile;
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
  std::map<std::pair<std::string, std::string>, Of> builds;  // by kind and id
  for (const auto& part : parts)
    for (const auto& one : part.run.cases)
      for (const auto& build : one.plugins) {
        const auto [found, is_new] =
            builds.emplace(std::pair(build.kind, build.id), Of(&part, &build));
        const auto& [first, known] = found->second;
        if (is_new || first == &part || known->sha256 == build.sha256) continue;
        refuse(*first, part,
               fmt::format("the plugin {} is another build in one than in the other (sha256 {} and "
                           "{})",
                           build.file, result::short_hash(known->sha256),
                           result::short_hash(build.sha256)));
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

  result::Run run() const {
    auto run = parts_.front().run;
    run.cases.clear();
    run.pending.clear();
    for (const auto& part : parts_) {
      run.created = std::min(run.created, part.run.created);
      if (part.run.suite != run.suite) run.suite.clear();
    }
    for (const auto& id : order_) {
      const auto& found = found_.at(id);
      if (!found.over) run.pending.push_back(id);
      if (found.result == nullptr) continue;
      run.cases.push_back(*found.result);
      note_machine(run.cases.back(), found.part->run.environment, run.environment);
    }
    run.status = run.pending.empty() ? "complete" : "interrupted";
    return run;
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

void copy_files(const CaseResult& one, const std::string& from, const std::string& to) {
  const auto source = fs::path(from) / result::case_folder(one.spec.slug);
  const auto target = fs::path(to) / result::case_folder(one.spec.slug);
  // A case that the machine failed has no rank, but a log.
  for (std::size_t rank = 0; rank < std::max<std::size_t>(1, one.ranks.size()); ++rank)
    for (const auto file : {CaseFile::kTrace, CaseFile::kSnapshot, CaseFile::kLog}) {
      const auto name = name_of(file, rank);
      if (!files::why_no_file((source / name).string()).empty() ||
          !files::is_there((source / name).string()))
        continue;
      files::make_folder(target.string());
      fs::copy_file(source / name, target / name, fs::copy_options::overwrite_existing);
    }
}

}  // namespace

void note_machine(CaseResult& one, const json& machine, const json& run) {
  for (const auto& name : names_where(FactOf::kEnvironment, &RunFact::is_machine))
    if (machine.contains(name) && machine.at(name) != run.value(name, json()) &&
        !one.environment.contains(name))
      one.environment[name] = machine.at(name);
}

result::Run merged(const std::vector<PartialRun>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) check_settings(parts.front(), parts[i]);
  check_device_options(parts);
  check_plugins(parts);
  return Merging(parts).run();
}

result::Run merge_into(const launch::RunFolder& out, const std::vector<std::string>& folders,
                       const std::vector<std::string>& command) {
  if (out.holds_run())
    throw ConfigError(
        fmt::format("{} holds a run already; choose another folder with --out", out.path()));
  out.refuse_strangers();
  std::vector<PartialRun> parts;
  for (const auto& folder : folders)
    parts.push_back({result::run_folder_of(folder), result::read_run(folder)});
  auto run = merged(parts);
  run.command = command;
  std::map<std::pair<std::string, std::int64_t>, const PartialRun*> measured_by;  // id, time taken
  for (const auto& part : parts)
    for (const auto& one : part.run.cases) measured_by[{one.spec.id, one.wall_ns}] = &part;
  for (const auto& one : run.cases)
    copy_files(one, measured_by.at({one.spec.id, one.wall_ns})->folder, out.path());
  result::write_run(run, out.path());
  return run;
}

}  // namespace peakbench::executor
