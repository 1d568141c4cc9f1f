// The records as JSON and back, each by one list of its members. For the module's own use.
//
// A list, `members(record, visit)`, names the members in the order of the file:
//
//   visit.needs(name, member, rule)   the file must have it
//   visit(name, member, rule)         where the file lacks it or has null, it stays as it was made
//   visit.rarely(name, member, rule)  as well; written only where it is not empty
//
// A member is a record itself, a value, a list or map of either, or a std::optional, which is null
// where it holds nothing. A rule, if there is one, is what its values must be.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fields.h"
#include "records/axes.h"
#include "records/case_json.h"
#include "records/device.h"
#include "records/job.h"
#include "records/published.h"
#include "records/run.h"
#include "records/run_files.h"

namespace peakbench::records {

// Rules.

struct MayBeNamed {};  // a double that may be infinite or no number
struct Objects {};     // JSON: a list of objects
struct TextRule {
  bool (*holds)(const std::string&);
  const char* expected;
};

class MemberWriter {
 public:
  explicit MemberWriter(nlohmann::ordered_json& json) : json_(json) {}

  template <class T, class... Rule>
  void operator()(const char* name, const T& member, const Rule&...);
  template <class T, class... Rule>
  void needs(const char* name, const T& member, const Rule&...) {
    (*this)(name, member);
  }
  template <class T, class... Rule>
  void rarely(const char* name, const T& member, const Rule&...);
  // Its members in place of an object of its own; `first` tells whether the file has them.
  template <class T>
  void in_place(const char* /*first*/, const std::optional<T>& part) {
    if (part) members(*part, *this);
  }
  void setting(const Setting& setting) { append_json(json_, setting); }
  // For readers of the file alone.
  void derived(const char* name, const nlohmann::ordered_json& value) { json_[name] = value; }

 private:
  nlohmann::ordered_json& json_;
};

class MemberReader {
 public:
  explicit MemberReader(const Fields& fields) : fields_(fields) {}

  template <class T, class... Rule>
  void operator()(const char* name, T& member, const Rule&... rule) {
    if (fields_.find(name)) needs(name, member, rule...);
  }
  template <class T, class... Rule>
  void needs(const char* name, T& member, const Rule&... rule);
  template <class T, class... Rule>
  void rarely(const char* name, T& member, const Rule&... rule) {
    (*this)(name, member, rule...);
  }
  template <class T>
  void in_place(const char* first, std::optional<T>& part) {
    if (fields_.find(first)) members(part.emplace(), *this);
  }
  void setting(Setting& setting) { read_setting(fields_, setting); }
  void derived(const char* /*name*/, const nlohmann::ordered_json& /*value*/) {}

 private:
  const Fields& fields_;
};

template <class One, class Record>
concept Of = std::same_as<std::remove_const_t<One>, Record>;

template <class T>
concept Listed = requires(T& one, MemberWriter& visit) {
  members(one, visit);
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = Listed<T> || std::same_as<T, double>;
template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<std::map<std::string, T>> = Listed<T>;

inline const char* member_word(JobMode mode) {
  return mode == JobMode::kMemory ? "memory" : "throughput";
}
inline const char* member_word(VerdictKind kind) { return verdict_word(kind); }
inline std::string member_word(Status status) { return to_string(status); }

void read_word(const Fields& fields, const char* name, JobMode& mode);
void read_word(const Fields& fields, const char* name, VerdictKind& kind);
void read_word(const Fields& fields, const char* name, Status& status);

template <class T>
nlohmann::ordered_json as_json(const T& value) {
  nlohmann::ordered_json json;
  if constexpr (Listed<const T>) {
    MemberWriter writer(json);
    members(value, writer);
  } else if constexpr (kIsOptional<T>) {
    if (value) json = as_json(*value);
  } else if constexpr (kIsList<T>) {
    json = nlohmann::ordered_json::array();
    for (const auto& one : value) json.push_back(as_json(one));
  } else if constexpr (kIsMap<T>) {
    json = nlohmann::ordered_json::object();
    for (const auto& [name, one] : value) json[name] = as_json(one);
  } else if constexpr (std::is_enum_v<T>) {
    json = member_word(value);
  } else if constexpr (std::same_as<T, double>) {
    json = finite_or_name(value);
  } else {
    json = value;
  }
  return json;
}

template <class T>
T record_from(const Fields& fields) {
  T record;
  MemberReader reader(fields);
  members(record, reader);
  return record;
}

// The value of a field that is there.
template <class T>
void read_member(T& member, const Fields& fields, const char* name) {
  if constexpr (Listed<T>)
    member = record_from<T>(fields.child(name));
  else if constexpr (kIsList<T>)
    fields.each(name, [&](const Fields& one) {
      member.push_back(record_from<typename T::value_type>(one));
    });
  else if constexpr (kIsMap<T>) {
    const auto parts = fields.child(name);
    for (const auto& key : parts.keys())
      member.emplace(key, record_from<typename T::mapped_type>(parts.child(key)));
  } else if constexpr (std::is_enum_v<T>)
    read_word(fields, name, member);
  else
    member = fields.get<T>(name);
}

template <class T>
void read_member(T& member, const Fields& fields, const char* name, const Range<T>& range) {
  member = fields.get(name, range);
}

inline void read_member(std::vector<std::int64_t>& list, const Fields& fields, const char* name,
                        const Range<std::int64_t>& range) {
  list = fields.get<std::vector<std::int64_t>>(name);
  const auto wrong = std::ranges::find_if_not(list, [&](auto one) { return range.holds(one); });
  if (wrong != list.end())
    throw FieldError(fmt::format("{}/{}", fields.pointer(name), wrong - list.begin()),
                     fmt::format("expected {}, got {}", words_of(range), *wrong));
}

inline void read_member(std::map<std::string, std::int64_t>& map, const Fields& fields,
                        const char* name, const Range<std::int64_t>& range) {
  const auto parts = fields.child(name);
  for (const auto& key : parts.keys()) map[key] = parts.get(key, range);
}

inline void read_member(double& value, const Fields& fields, const char* name, MayBeNamed) {
  value = read_measured(fields.require(name), fields.pointer(name));
}

inline void read_member(std::vector<double>& list, const Fields& fields, const char* name,
                        MayBeNamed) {
  const auto& json = fields.require(name);
  const auto pointer = fields.pointer(name);
  if (!json.is_array()) throw FieldError(pointer, "expected a list, got " + describe(json));
  for (const auto& one : json)
    list.push_back(read_measured(one, fmt::format("{}/{}", pointer, list.size())));
}

inline void read_member(nlohmann::json& list, const Fields& fields, const char* name, Objects) {
  fields.each(name, [](const Fields&) {});
  list = fields.require(name);
}

inline void read_member(std::string& text, const Fields& fields, const char* name,
                        const TextRule& rule) {
  text = fields.get<std::string>(name);
  if (!rule.holds(text))
    throw FieldError(fields.pointer(name),
                     fmt::format("expected {}, got {}", rule.expected, describe(text)));
}

template <class T, class... Rule>
void MemberWriter::operator()(const char* name, const T& member, const Rule&...) {
  json_[name] = as_json(member);
}

template <class T, class... Rule>
void MemberWriter::rarely(const char* name, const T& member, const Rule&...) {
  if constexpr (requires { member.empty(); }) {
    if (!member.empty()) (*this)(name, member);
  } else if (member) {
    (*this)(name, member);
  }
}

template <class T, class... Rule>
void MemberReader::needs(const char* name, T& member, const Rule&... rule) {
  fields_.require(name);
  if constexpr (kIsOptional<T>)
    read_member(member.emplace(), fields_, name, rule...);
  else
    read_member(member, fields_, name, rule...);
}

// Lists.

// A step may take more of them than kMostMeasured.
inline constexpr Range<std::int64_t> kFlops{0, std::int64_t{1} << 60};
inline constexpr Range<std::int64_t> kPerSecond{1, std::int64_t{1} << 60};
// What was asked of an allocator may be more than anything has.
inline constexpr Range<std::int64_t> kCount{.least = 0};
inline constexpr Range<double> kTolerance{.least = 0};

inline constexpr TextRule kSafeName{is_file_name, "a safe file name"};
inline constexpr TextRule kPathInside{
    [](const std::string& path) { return path.empty() || is_path_inside(path); },
    "a path inside the run's folder"};

template <Of<Selection> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("id", one.id);
  visit("options", one.options);
}

template <Of<PluginBuild> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("kind", one.kind);
  visit.needs("id", one.id);
  visit("file", one.file);
  visit("sha256", one.sha256);
}

template <Of<PhaseMemory> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("peak_allocated_bytes", one.peak_allocated_bytes, kMeasured);
  visit("peak_requested_bytes", one.peak_requested_bytes, kMeasured);
}

template <Of<SpaceMemory> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("peak_allocated_bytes", one.peak_allocated_bytes, kMeasured);
  visit("peak_requested_bytes", one.peak_requested_bytes, kMeasured);
  visit("peak_reserved_bytes", one.peak_reserved_bytes, kMeasured);
}

template <Of<Period> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("strategy", one.strategy);
  visit.needs("steps", one.steps, kMeasured);
}

template <Of<Memory> One, class Visit>
void members(One& one, Visit& visit) {
  visit("space", one.space);
  visit.needs("peak_allocated_bytes", one.peak_allocated_bytes, kMeasured);
  visit.needs("peak_requested_bytes", one.peak_requested_bytes, kMeasured);
  visit("peak_reserved_bytes", one.peak_reserved_bytes, kMeasured);
  visit("at_peak", one.at_peak, kMeasured);
  visit("peak_phase", one.peak_phase);
  visit("peak_step", one.peak_step, kMeasured);
  visit("steps", one.steps, kMeasured);
  visit("phases", one.phases);
  visit("spaces", one.spaces);
  visit("context_bytes", one.context_bytes, kMeasured);
  visit("worker_peak_rss_bytes", one.worker_peak_rss_bytes, kMeasured);
  visit.rarely("least_memory_bytes", one.least_memory_bytes, kMeasured);
  visit.rarely("replays_steps", one.replays_steps);
  visit.rarely("period", one.period);
}

template <Of<NcclCalls> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("call", one.call);
  visit.needs("calls", one.calls, kMeasured);
  visit("bytes", one.bytes, kMeasured);
}

template <Of<Rank> One, class Visit>
void members(One& one, Visit& visit) {
  visit("rank", one.rank, kMeasured);
  visit("memory", one.memory);
  visit("trace", one.trace, kPathInside);
  visit.rarely("nccl_calls", one.nccl_calls);
}

template <Of<DeviceWork> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("kernel_launches", one.kernel_launches, kMeasured);
  visit.needs("copies_to_device", one.copies_to_device, kMeasured);
  visit.needs("copies_to_device_bytes", one.copies_to_device_bytes, kMeasured);
  visit.needs("copies_to_host", one.copies_to_host, kMeasured);
  visit.needs("copies_to_host_bytes", one.copies_to_host_bytes, kMeasured);
  visit.needs("copies_in_device", one.copies_in_device, kMeasured);
  visit.needs("copies_in_device_bytes", one.copies_in_device_bytes, kMeasured);
}

template <Of<WorkCounts> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("operators", one.operators, kMeasured);
  visit.needs("flops", one.flops, kFlops);
  visit.needs("recomputed_flops", one.recomputed_flops, kFlops);
  visit("flops_by_precision", one.flops_by_precision, kFlops);
  visit.needs("read_bytes", one.read_bytes, kMeasured);
  visit.needs("written_bytes", one.written_bytes, kMeasured);
  visit.in_place("kernel_launches", one.device);
}

template <Of<StepBound> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("least_step_ns", one.least_step_ns, kMeasured);
  visit.needs("memory_bytes_per_second", one.memory_bytes_per_second, kPerSecond);
  visit("flops_per_second", one.flops_per_second, kPerSecond);
}

template <Of<StepWork> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("step", one.step, kMeasured);
  members(one.total, visit);
  visit("phases", one.phases);
  visit("without_formula", one.without_formula, kMeasured);
  visit("bound", one.bound);
}

template <Of<StepTimes> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("min", one.min, kMeasured);
  visit.needs("median", one.median, kMeasured);
  visit.needs("p90", one.p90, kMeasured);
  visit.needs("count", one.count, kMeasured);
}

template <Of<TimingRound> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("round", one.round, kMeasured);
  visit.needs("place", one.place, kMeasured);
  visit.needs("step_times_ns", one.step_times_ns, kMeasured);
  visit("other_busy_cores", one.other_busy_cores, kMeasuredRate);
}

template <Of<Throughput> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("step_ns", one.step_ns);
  visit.needs("samples_per_second", one.samples_per_second, kMeasuredRate);
  visit("tokens_per_second", one.tokens_per_second, kMeasuredRate);
  visit("clock", one.clock);
  visit("threads", one.threads, kMeasured);
  visit("step_times_ns", one.step_times_ns, kMeasured);
  visit("rounds", one.rounds);
}

template <Of<Equivalence> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("promise", one.promise);
  if constexpr (!std::is_const_v<One>)
    one.different_problem = one.promise == "different_problem";  // where the file does not say
  visit("different_problem", one.different_problem);
  visit("reference_case", one.reference_case);
  visit.needs("verdict", one.verdict);
  visit("max_abs_difference", one.max_abs_difference, MayBeNamed{});
  visit("tolerance", one.tolerance, kTolerance);
  visit("relative_tolerance", one.relative_tolerance, kTolerance);
  visit("reason", one.reason);
  visit.rarely("without_gradient", one.without_gradient);
}

template <Of<OutOfMemory> One, class Visit>
void members(One& one, Visit& visit) {
  visit("requested_bytes", one.requested_bytes, kCount);
  visit("allocated_bytes", one.allocated_bytes, kCount);
  visit("limit_bytes", one.limit_bytes, kCount);
  visit("reserved_bytes", one.reserved_bytes, kCount);
  visit("largest_free_block_bytes", one.largest_free_block_bytes, kCount);
  visit("retries", one.retries, kCount);
  visit("phase", one.phase);
  visit("step", one.step, Range<std::int64_t>{.least = -1});
  // Before the first step there is none; files of schema 1.1 and older say -1 then.
  if constexpr (!std::is_const_v<One>) one.step = std::max<std::int64_t>(one.step, 0);
  visit("module", one.module);
  visit("op", one.op);
  visit("needed_bytes", one.needed_bytes, kCount);
  visit("needed_allocated_bytes", one.needed_allocated_bytes, kCount);
  visit("needed_note", one.needed_note);
  visit.rarely("least_memory_bytes", one.least_memory_bytes, kCount);
}

template <Of<SecondGuess> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("runs", one.runs);
  visit("peak_bytes", one.peak_bytes);
  visit("same", one.same);
  visit("problem", one.problem);
}

template <Of<EstimateError> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("less_bytes", one.less_bytes, kCount);
  visit.needs("more_bytes", one.more_bytes, kCount);
  visit.needs("more_reserved_bytes", one.more_reserved_bytes, kCount);
}

template <Of<Verdict> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("kind", one.kind);
  visit("reasons", one.reasons);
  visit("conditions", one.conditions);
  visit("notes", one.notes);
  visit("advice", one.advice);
  visit("workspace_room_bytes", one.workspace_room_bytes, kCount);
  visit.rarely("estimate", one.estimate);
  visit.rarely("second_guess", one.second_guess);
}

template <Of<Emulation> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("card", one.card);
  visit("refused_calls", one.refused_calls);
  visit("unmodelled", one.unmodelled, kCount);
  visit("read_backs", one.read_backs, Objects{});
  visit("verdict", one.verdict);
}

template <class One, class Visit>
requires(Of<One, WorkerResult> || Of<One, CaseResult>) void members(One& one, Visit& visit) {
  constexpr bool kIsCase = Of<One, CaseResult>;
  if constexpr (kIsCase) {
    visit.needs("id", one.spec.id);
    visit.needs("slug", one.spec.slug, kSafeName);
    visit.setting(one.spec);
    visit.rarely("global_batch_size", one.spec.global_batch_size, kMeasured);
    visit("added_for", one.added_for);
  }
  visit.needs("status", one.status);
  visit("reason", one.reason);
  if constexpr (kIsCase) visit.derived("emulated", is_emulated(one));
  visit("memory", one.memory);
  visit("work", one.work);
  visit("throughput", one.throughput);
  if constexpr (kIsCase) visit("throughput_reason", one.throughput_reason);
  visit("equivalence", one.equivalence);
  visit("out_of_memory", one.out_of_memory);
  visit("emulation", one.emulation);
  visit("losses", one.losses, MayBeNamed{});
  visit("ranks", one.ranks);
  if constexpr (kIsCase) visit("plugins", one.plugins);
  visit("settings", one.settings);
  visit("environment", one.environment);
  if constexpr (kIsCase) visit("wall_ns", one.wall_ns, kMeasured);
}

template <Of<PluginUse> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("selection", one.selection);
  visit.needs("options", one.options);
  visit.needs("path", one.path);
}

template <Of<ProgramCommand> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("arguments", one.arguments);
  visit.needs("environment", one.environment);
  visit.needs("folder", one.folder);
  visit.needs("typed_folder", one.typed_folder);
  visit.needs("timeout_s", one.timeout_s);
}

// But for its setting.
template <Of<Job> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("model", one.model_plugin);
  visit.needs("strategies", one.strategy_plugins);
  visit.needs("mode", one.mode);
  visit.needs("case_id", one.case_id);
  visit.needs("steps", one.steps);
  visit.needs("warmup", one.warmup);
  visit("memory_limit_bytes", one.memory_limit_bytes);
  visit("assume", one.assume);
  visit("second_guesses", one.second_guesses);
  visit("threads", one.threads);
  visit.needs("result_path", one.result_path);
  visit("trace_path", one.trace_path);
  visit("write_parameters_path", one.write_parameters_path);
  visit("read_parameters_path", one.read_parameters_path);
  visit.needs("promise", one.promise);
  visit.rarely("program", one.program);
}

template <Of<Progress> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("phase", one.phase);
  visit("step", one.step);
  visit("steps", one.steps);
  visit("allocated_bytes", one.allocated_bytes);
  visit("peak_bytes", one.peak_bytes);
}

template <Of<Published> One, class Visit>
void members(One& one, Visit& visit) {
  visit.needs("model", one.model);
  visit("strategy", one.strategy);
  visit("dtype", one.dtype);
  visit("batch_size", one.batch_size, kMeasured);
  visit("sequence_length", one.sequence_length, kMeasured);
  visit.needs("metric", one.metric);
  visit.needs("value", one.value, kMeasuredRate);
  visit.needs("unit", one.unit);
  visit.needs("source", one.source);
  visit("url", one.url);
  visit("note", one.note);
  visit.rarely("device", one.device);
  visit.rarely("rounded_to", one.rounded_to, kMeasuredRate);
  visit.rarely("versions", one.versions);
  visit.rarely("grade", one.grade);
  if (std::is_const_v<One> && one.grade.empty()) return;
  visit.rarely("cause", one.cause);
  visit.rarely("explanation", one.explanation);
}

// But for its cases, which may be texts.
template <Of<Run> One, class Visit>
void members(One& one, Visit& visit) {
  visit("schema_version", one.schema_version);
  visit("title", one.title);
  visit("created", one.created);
  visit("status", one.status);
  visit("command", one.command);
  visit("suite", one.suite);
  visit("reference", one.reference);
  visit.needs("environment", one.environment);
  visit("settings", one.settings);
  visit("published", one.published);
  visit.derived("cases", nlohmann::ordered_json::array());
  visit("pending", one.pending);
}

}  // namespace peakbench::records
