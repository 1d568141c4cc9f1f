#include "cluster/task_order.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "launch/plugin_builds.h"
#include "launch/run_folder.h"
#include "planning/selection.h"
#include "records/axes.h"
#include "records/case_json.h"
#include "records/run_facts.h"

namespace peakbench::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

std::vector<std::string> build_facts() {
  return names_where(records::FactOf::kEnvironment, &records::RunFact::is_build);
}

// A task may begin in another folder.
records::PluginUse with_absolute_path(records::PluginUse use) {
  if (!use.path.empty()) use.path = fs::absolute(use.path).string();
  return use;
}

// A planned case is a job but for what becomes of it.
ordered_json to_json(const planning::PlannedCase& planned) {
  records::Job job;
  static_cast<records::Setting&>(job) = planned.spec;
  job.case_id = planned.spec.id;
  job.model_plugin = with_absolute_path(planned.model);
  for (const auto& use : planned.strategies)
    job.strategy_plugins.push_back(with_absolute_path(use));
  job.promise = planned.promise;
  ordered_json reference = ordered_json::array();
  for (const auto& selection : planned.reference) reference.push_back(records::to_json(selection));
  return {{"job", records::to_json(job)},
          {"slug", planned.spec.slug},
          {"added_for", planned.added_for},
          {"decided", planned.decided ? ordered_json(to_string(*planned.decided)) : ordered_json()},
          {"reason", planned.reason},
          {"reference", std::move(reference)}};
}

planning::PlannedCase read_planned(const Fields& fields) {
  auto job = records::job_from_json(fields.require("job"));
  planning::PlannedCase planned;
  static_cast<records::Setting&>(planned.spec) = job;
  planned.spec.id = job.case_id;
  planned.spec.slug = fields.get<std::string>("slug");
  planned.added_for = fields.get_or<std::string>("added_for", "");
  if (fields.find("decided")) planned.decided = records::read_status(fields, "decided");
  planned.reason = fields.get_or<std::string>("reason", "");
  planned.model = std::move(job.model_plugin);
  planned.strategies = std::move(job.strategy_plugins);
  planned.promise = std::move(job.promise);
  fields.each("reference", [&](const Fields& selection) {
    planned.reference.push_back(records::read_selection(selection));
  });
  return planned;
}

void note_plugins(const planning::PlannedCase& planned,
                  std::map<std::string, std::string>& plugins) {
  if (planned.decided) return;
  const auto note = [&](const records::PluginUse& use) {
    const auto path = with_absolute_path(use).path;
    if (!path.empty()) plugins.try_emplace(path, launch::content_hash(path));
  };
  note(planned.model);
  for (const auto& use : planned.strategies) note(use);
}

ordered_json to_json(const planning::Request& request) {
  return {{"title", request.title},
          {"suite", request.suite_file},
          {"steps", request.steps},
          {"warmup", request.warmup},
          {"repetitions", request.repetitions},
          {"timeout_s", request.timeout_s},
          {"memory_limit_bytes", request.memory_limit_bytes},
          {"threads", request.threads},
          {"seed", request.seed},
          {"assume", request.assume},
          {"second_guesses", request.second_guesses}};
}

planning::Request read_request(const Fields& fields) {
  planning::Request request;
  request.title = fields.get<std::string>("title");
  request.suite_file = fields.get<std::string>("suite");
  request.steps = fields.get<std::int64_t>("steps");
  request.warmup = fields.get<std::int64_t>("warmup");
  request.repetitions = fields.get<std::int64_t>("repetitions");
  request.timeout_s = fields.get<std::int64_t>("timeout_s");
  request.memory_limit_bytes = fields.get<std::int64_t>("memory_limit_bytes");
  request.threads = fields.get<std::int64_t>("threads");
  request.seed = fields.get<std::uint64_t>("seed");
  request.assume = fields.get_or<std::string>("assume", "");
  request.second_guesses = fields.get_or<std::int64_t>("second_guesses", 0);
  return request;
}

TaskOrder order_from(const json& content) {
  const Fields fields(content);
  TaskOrder order;
  order.run_folder = fields.get<std::string>("run_folder");
  order.build = fields.get<json>("build");
  order.plugins = fields.get_or<std::map<std::string, std::string>>("plugins", {});
  order.plan.request = read_request(fields.child("request"));
  order.plan.reference = fields.get<std::string>("reference");
  fields.each("cases", [&](const Fields& one) { order.plan.cases.push_back(read_planned(one)); });
  order.known = records::run_from_json(fields.require("known"));
  return order;
}

}  // namespace

TaskOrder order_for(const planning::Plan& plan, const launch::CaseStates& states,
                    const launch::Cases& cases, const std::string& run_folder, const json& host) {
  TaskOrder order;
  order.run_folder = fs::absolute(run_folder).lexically_normal().string();
  order.build = build_of(host);
  order.plan.request = plan.request;
  order.plan.reference = plan.reference;
  auto& known = order.known;
  known.title = plan.request.title;
  known.reference = plan.reference;
  known.status = "interrupted";
  known.environment = order.build;
  known.settings = launch::settings_of(plan.request);
  known.settings.erase("gate");
  for (const auto index : cases) {
    order.plan.cases.push_back(plan.cases[index]);
    note_plugins(plan.cases[index], order.plugins);
    if (states.pending.contains(index)) known.pending.push_back(plan.cases[index].spec.id);
    const auto& measured = states.results[index];
    if (!measured) continue;
    known.cases.push_back(*measured);
    if (measured->throughput)
      known.environment["cpu"] = measured->environment.value("cpu", host.at("cpu"));
  }
  return order;
}

json build_of(const json& environment) {
  json build = json::object();
  for (const auto& name : build_facts())
    if (environment.contains(name)) build[name] = environment.at(name);
  return build;
}

std::string other_build(const json& here, const json& there) {
  for (const auto& name : build_facts()) {
    const auto ours = here.value(name, json()), theirs = there.value(name, json());
    if (ours != theirs)
      return fmt::format("{} is {} here, and {} where the run was begun", name, ours.dump(),
                         theirs.dump());
  }
  return "";
}

std::string other_plugin(const TaskOrder& order) {
  for (const auto& [path, there] : order.plugins)
    if (const auto here = launch::content_hash(path); here != there)
      return fmt::format("{} has the sha256 {} here, and {} where the run was begun", path,
                         records::short_hash(here), records::short_hash(there));
  return "";
}

void write_order(const std::string& path, const TaskOrder& order) {
  ordered_json content{{"run_folder", order.run_folder},
                       {"build", ordered_json(order.build)},
                       {"plugins", order.plugins},
                       {"request", to_json(order.plan.request)},
                       {"reference", order.plan.reference}};
  content["cases"] = ordered_json::array();
  for (const auto& planned : order.plan.cases) content["cases"].push_back(to_json(planned));
  content["known"] = records::to_json(order.known);
  // Not durable: the job is not submitted after a crash.
  files::write_file_atomically(path, json_text(content), false);
}

TaskOrder read_order(const std::string& path) {
  const auto content = files::read_json_file(path);
  try {
    return order_from(content);
  } catch (const RunFileError& error) {
    throw RunFileError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace peakbench::cluster
