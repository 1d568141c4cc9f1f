// From what was asked (command line or suite) and the manifests to cases. No process has run, no
// torch.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planning/device.h"
#include "planning/manifest.h"
#include "planning/programs.h"
#include "planning/worker.h"
#include "records/axes.h"
#include "records/gate_policy.h"
#include "records/job.h"
#include "records/run.h"

namespace peakbench::planning {

// The most that can be asked for: no sum or product of these overflows anywhere.
inline constexpr std::int64_t kMostSteps = 1'000'000;
inline constexpr std::int64_t kMostRepetitions = 1000;
inline constexpr std::int64_t kMostSeconds = 1'000'000;
inline constexpr std::int64_t kMostThreads = 4096;
inline constexpr std::int64_t kMostBytes = 1'000'000'000'000'000'000;

// Cases to leave out or to add, as the suite's text by the name of an axis (records/axes.h).
struct Rule {
  std::map<std::string, std::string> fields;
  std::map<std::string, std::string> where;  // field -> FILE:LINE:COLUMN
};

// Of each axis that can be asked for. Texts are in the grammar NAME,key=value,...; stacks join with
// '+'. No length of a sequence: each model's default.
using Lists = std::map<records::Axis, std::vector<std::string>>;
Lists default_lists();

// What was asked.
struct Request {
  std::string title, suite_file;
  // Folders of plugins that the suite names, relative to its file.
  std::vector<planning::Folder> plugins;
  Lists lists = default_lists();  // they multiply
  std::map<std::string, std::map<std::string, std::string>> model_options,
      strategy_options;  // suite tables: by id
  std::vector<Rule> excludes, includes;
  std::vector<Program> programs;  // in addition to the lists' cases
  std::vector<records::Published> published;
  std::map<std::string, std::string> device_options;
  // The suite's table `gate`, checked; nullopt where it has none.
  std::optional<records::GatePolicy> gate;
  // Repetitions are rounds of timing: three are the fewest whose interval is of use.
  std::int64_t steps = 3, warmup = 1, repetitions = 3, timeout_s = 3600, memory_limit_bytes = 0,
               threads = 0;
  std::uint64_t seed = 0;
  // On an emulated card: how many rows an operator returns whose count rests on values that are not
  // known, "nonzero=all" or "nonzero=none"; empty: as plausible values say.
  std::string assume;
  // On an emulated card, further runs of each program that read unknown values, with other
  // plausible ones (emulator/host/run_emulated.h).
  std::int64_t second_guesses = 0;
  // On an emulated card, add the cases that tell the parts of a stack apart
  // (PlannedCase::added_for).
  bool ablation = true;
  // Ids of the strategies whose promise alone is checked (reference_of() in stack.h); empty: all.
  std::vector<std::string> checked_promises;
  // By what was typed: then rules of the suite may match nothing.
  bool is_narrowed = false;
  // Location of a text in the suite, for messages: "models/vit-l-16" -> "FILE:LINE:COLUMN". Typed
  // texts have none.
  std::map<std::string, std::string> where;
};

// A suite's TOML. Errors carry file, line and column; unknown keys the nearest valid one.
// docs/reference/suites.md lists the keys. A regular file: a pipe is refused.
Request read_suite(const std::string& path);
// The same from the text. `path` is used in messages, and as the title if there is none.
Request suite_from_text(const std::string& text, const std::string& path);
const std::vector<std::string>& suite_keys();

// False: all that is asked for are programs, which need no worker of ours and no plugins.
bool needs_worker(const Request& request);

// One case, ready to be launched, or decided already (conflict, unsupported) from manifests alone.
struct PlannedCase {
  records::CaseSpec spec;
  std::string added_for;                   // empty: asked for (records/case.h)
  std::optional<records::Status> decided;  // kConflict or kUnsupported
  std::string reason;                      // names both owners
  // Of a case that is run: why its figures may say less than they seem to; empty: nothing is known.
  std::string warning;
  records::PluginUse model;
  std::vector<records::PluginUse> strategies;  // `baseline` first
  // `promise`: what is compared with the reference (stack.h). `reference`: the reference's stack as
  // in a case id, or its own if the case is a reference. The run may lack that case.
  records::Equivalence promise;
  std::vector<records::Selection> reference;
  std::optional<records::ProgramCommand> program;  // of a program's case, which has none of these
  std::shared_ptr<const planning::Worker> worker;  // what runs it; see worker_of()
};

// This installation's, where a case names none.
const planning::Worker& worker_of(const PlannedCase& planned);

// What runs cases: a worker, with its plugins and the devices that it can use.
struct Build {
  std::shared_ptr<const planning::Worker> worker;
  planning::Found plugins;
  DeviceHook devices;
  // Of several, the values that tell it from the others on the axes `torch` and `build`.
  std::string torch = {}, build = {};
  std::vector<std::string> also = {};  // other texts that name it in a rule: as it was asked for
  std::string python_path = {};        // of programs, which import its PyTorch; empty: as it is
};

struct Plan {
  Request request;        // texts of stacks in `published` in canonical order
  std::string reference;  // the stack named first, as in a case id
  std::vector<PlannedCase> cases;
};

// Makes the cases, each once, in this order:
//
// 1. by model, device, dtype, batch size, sequence length, allocator, stack;
// 2. the suite's includes;
// 3. the suite's programs;
// 4. on an emulated card, where a case takes a second: the missing cases that show what each part
//    of a stack saves. That is no part, each part alone, and all parts but one. Excluded cases stay
//    excluded.
//
// With several builds, each case is made for each of them, next to each other.
//
// Throws ConfigError: unknown names (suggests the nearest), options out of range, a strategy twice
// in a stack, no case at all. Also for an exclude, a table of options or a published figure of a
// suite that matches no case, unless the request is narrowed. `devices` resolves devices and
// refuses those that are not available (planning/device.h).
Plan make_plan(const Request& request, std::span<const Build> builds);
// With one.
Plan make_plan(const Request& request, const planning::Found& plugins,
               const DeviceHook& devices = {});

// The worker of all of its cases; nullptr where they have several.
const planning::Worker* only_worker(const Plan& plan);

}  // namespace peakbench::planning
