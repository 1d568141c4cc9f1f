#include "records/case_json.h"

#include <stdexcept>

#include "records/members.h"

namespace peakbench::records {

using nlohmann::json;
using nlohmann::ordered_json;

void read_word(const Fields& fields, const char* name, JobMode& mode) {
  const auto text = fields.get<std::string>(name);
  if (text != "memory" && text != "throughput")
    throw FieldError(fields.pointer(name), "expected memory or throughput, got \"" + text + "\"");
  mode = text == "memory" ? JobMode::kMemory : JobMode::kThroughput;
}

void read_word(const Fields& fields, const char* name, VerdictKind& kind) {
  try {
    kind = verdict_kind_from(fields.get<std::string>(name));
  } catch (const std::invalid_argument& error) {
    throw FieldError(fields.pointer(name), error.what());
  }
}

void read_word(const Fields& fields, const char* name, Status& status) {
  const auto text = fields.get<std::string>(name);
  try {
    status = status_from_string(text);
  } catch (const std::invalid_argument&) {
    throw FieldError(
        fields.pointer(name),
        "expected ok, out_of_memory, timeout, crashed, unsupported, conflict, no_effect, "
        "host_failure or interrupted, got \"" +
            text + "\"");
  }
}

ordered_json to_json(const Selection& selection) { return as_json(selection); }
ordered_json to_json(const Memory& memory) { return as_json(memory); }
ordered_json to_json(const StepWork& work) { return as_json(work); }
ordered_json to_json(const Equivalence& equivalence) { return as_json(equivalence); }
ordered_json to_json(const OutOfMemory& facts) { return as_json(facts); }
ordered_json to_json(const Emulation& emulation) { return as_json(emulation); }
ordered_json to_json(const Verdict& verdict) { return as_json(verdict); }
ordered_json to_json(const Published& figure) { return as_json(figure); }
ordered_json to_json(const CaseResult& result) { return as_json(result); }
json losses_to_json(const std::vector<double>& losses) { return as_json(losses); }

Selection read_selection(const Fields& fields) { return record_from<Selection>(fields); }
Equivalence read_equivalence(const Fields& fields) { return record_from<Equivalence>(fields); }
Verdict read_verdict(const Fields& fields) { return record_from<Verdict>(fields); }

CaseResult read_case(const Fields& fields) {
  auto result = record_from<CaseResult>(fields);
  const auto& spec = result.spec;
  if (!facts_of(spec.kind).has_stack && !spec.strategies.empty())
    throw FieldError(fields.pointer("strategies"),
                     "expected none: a " + to_string(spec.kind) + " has no stack");
  return result;
}

std::vector<double> read_losses(const Fields& fields) {
  std::vector<double> losses;
  MemberReader{fields}("losses", losses, MayBeNamed{});
  return losses;
}

Status read_status(const Fields& fields, const std::string& key) {
  Status status{};
  read_word(fields, key.c_str(), status);
  return status;
}

json to_json(const Job& job) {
  ordered_json object;
  append_json(object, job);
  MemberWriter writer(object);
  members(job, writer);
  return object;
}

// The setting's model and strategies are in their plugins' places.
Job job_from_json(const json& object) {
  const Fields fields(object);
  auto job = record_from<Job>(fields);
  for (const auto& row : axes())
    if (row.axis != Axis::kModel && row.axis != Axis::kStrategy) row.read(fields, row, job);
  job.model = job.model_plugin.selection;
  for (const auto& use : job.strategy_plugins) job.strategies.push_back(use.selection);
  job.strategies = without_plain_baseline(std::move(job.strategies));
  return job;
}

json to_json(const WorkerResult& result) { return as_json(result); }
WorkerResult worker_result_from_json(const json& object) {
  return record_from<WorkerResult>(Fields(object));
}

json to_json(const Progress& progress) { return as_json(progress); }
Progress progress_from_json(const json& object) { return record_from<Progress>(Fields(object)); }

}  // namespace peakbench::records
