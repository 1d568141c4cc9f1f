#include "cluster/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/errors.h"
#include "base/folder.h"
#include "base/regular_file.h"
#include "launch/incoming.h"
#include "records/run_facts.h"
#include "records/run_files.h"

namespace peakbench::cluster {
namespace {

namespace fs = std::filesystem;
using files::Folder;
using files::RegularFile;
using records::CaseFile;

// The folder of a file below a run's; nullopt: it is not there.
std::optional<Folder> folder_of(const std::string& run_folder, const std::string& path) {
  std::optional<Folder> at(std::in_place, run_folder);
  for (const auto& part : fs::path(path).parent_path()) {
    if (part.empty() || part == ".") continue;
    auto next = at->folder(part.string());
    if (!next) return std::nullopt;
    at.emplace(std::move(*next));
  }
  return at;
}

// Of one that is there and not open.
[[noreturn]] void refuse(const RegularFile& file, const std::string& path) {
  if (file.is_link()) files::refuse_link(path);
  if (file.is_folder())
    throw ConfigError(fmt::format("{}: is a folder; expected a file of a case", path));
  if (file.error() == 0)
    throw ConfigError(fmt::format("{}: is a pipe or a device; expected a file of a case", path));
  const auto text = fmt::format(
      "{}: cannot be read: {}", path,
      is_host_error(file.error()) ? host_error_text(file.error()) : std::strerror(file.error()));
  if (is_host_error(file.error())) throw HostError(text);
  throw ConfigError(text);
}

bool is_to_copy(const std::string& run_folder, const std::string& path) {
  const auto folder = folder_of(run_folder, path);
  if (!folder) return false;
  const auto name = fs::path(path).filename().string();
  const RegularFile file(*folder, name);
  if (file.is_open()) return true;
  if (file.error() == ENOENT) return false;
  refuse(file, folder->path_of(name));
}

// A file of a case.
struct FileToCopy {
  std::string run_folder;  // of the run that measured the case
  std::string path;        // below it
  std::string slug, name;  // where it goes
};

struct FilesToCopy {
  std::vector<FileToCopy> files;
  std::vector<std::string> absent;  // traces that run.json names and nobody has; paths
};

// Adds the traces that the case names, with their snapshots and logs, and names the traces as they
// will be called. All is looked at before anything is written. Throws ConfigError: a link, in
// whose place anybody's file would be copied, no regular file, not readable.
void find_files(records::CaseResult& one, const std::string& run_folder, FilesToCopy& found) {
  const auto own = records::case_folder(one.spec.slug) + "/";
  const auto add = [&](const std::string& path, const std::string& name) {
    const bool is_there = is_to_copy(run_folder, path);
    if (is_there) found.files.push_back({run_folder, path, one.spec.slug, name});
    return is_there;
  };
  // A case that the machine failed has no rank, but a log.
  for (std::size_t rank = 0; rank < std::max<std::size_t>(1, one.ranks.size()); ++rank) {
    const auto name = name_of(CaseFile::kTrace, rank), log = name_of(CaseFile::kLog, rank);
    const bool is_named = rank < one.ranks.size() && !one.ranks[rank].trace.empty();
    const auto trace = is_named ? std::exchange(one.ranks[rank].trace, own + name) : own + name;
    if (!add(trace, name) && is_named)
      found.absent.push_back((fs::path(run_folder) / trace).string());
    add(records::snapshot_beside(trace), name_of(CaseFile::kSnapshot, rank));
    add(own + log, log);
  }
}

// False where `cancelled`, which is asked all the time, said so. Throws what files::copy_file()
// does, and what find_files() does, should something have changed since.
bool copy_files(const std::vector<FileToCopy>& files, const launch::IncomingCases& to,
                const std::function<bool()>& cancelled) {
  return std::ranges::all_of(files, [&](const FileToCopy& one) {
    const auto folder = folder_of(one.run_folder, one.path);
    const auto path = (fs::path(one.run_folder) / one.path).string();
    if (!folder) throw ConfigError(fmt::format("{}: is not there any more", path));
    const RegularFile file(*folder, fs::path(one.path).filename().string());
    if (!file.is_open()) refuse(file, path);
    return files::copy_file({file, path}, to.folder_of(one.slug), one.name, cancelled);
  });
}

using nlohmann::json;
using records::CaseResult;
using records::FactOf;
using records::RunFact;

[[noreturn]] void refuse(const PartialRun& a, const PartialRun& b, const std::string& what) {
  throw ConfigError(fmt::format("{} and {} cannot be one run: {}", a.folder, b.folder, what));
}

void check_settings(const PartialRun& a, const PartialRun& b) {
  const auto compare = [&](const std::string& name, const json& one, const json& other) {
    if (one != other)
      refuse(a, b,
             fmt::format("{} is {} in one and {} in the other", name, one.dump(), other.dump()));
  };
  for (const auto& name : names_where(FactOf::kSettings, &RunFact::is_merged))
    compare(name, a.run.settings.value(name, json()), b.run.settings.value(name, json()));
  for (const auto& name : names_where(FactOf::kEnvironment, &RunFact::is_merged))
    if (a.run.environment.contains(name))
      compare(name, a.run.environment.at(name), b.run.environment.value(name, json()));
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
  using Of = std::pair<const PartialRun*, const records::PluginBuild*>;
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
                           build.file, records::short_hash(known->sha256),
                           records::short_hash(build.sha256)));
      }
}

struct Joined {
  records::Run run;
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
          pending.count(one.spec.id) == 0 && one.status != records::Status::kHostFailure;
      add(one.spec.id, {&part, &one, over});
    }
    for (const auto& id : part.run.pending)
      if (records::find_case(part.run, id) == nullptr) add(id, {&part, nullptr, false});
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

records::Run merged(const std::vector<PartialRun>& parts) { return joined(parts).run; }

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
    parts.push_back({records::run_folder_of(folder), records::read_run(folder)});
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

}  // namespace peakbench::cluster
