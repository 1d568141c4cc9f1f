// The order for one task, as its machine reads it: cases of a plan with everything they depend on.
// So that machine reads neither the suite nor the manifests.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/case_states.h"
#include "planning/plan.h"
#include "records/run.h"

namespace peakbench::cluster {

struct TaskOrder {
  std::string run_folder;  // absolute; the files of cases go there
  nlohmann::json build;    // what the machine's Peakbench must be: build_of()
  // Of the plan's plugins, which the machine must have as they are here: SHA-256 by path.
  std::map<std::string, std::string> plugins;
  planning::Plan plan;  // of this task's cases alone
  records::Run known;   // of these, what is measured; its `pending` what is not
};

// For a task of these cases, with what is known of them. `host`: this machine's environment.
TaskOrder order_for(const planning::Plan& plan, const launch::CaseStates& states,
                    const launch::Cases& cases, const std::string& run_folder,
                    const nlohmann::json& host);

// The fields of `environment` that say which program this is: two machines must have the same.
nlohmann::json build_of(const nlohmann::json& environment);

// "libtorch is \"2.11.0\" here, and \"2.10.0\" where the run was begun"; empty: the same.
std::string other_build(const nlohmann::json& here, const nlohmann::json& there);

// "PATH has the sha256 A here, and B where the run was begun"; empty: the plugins are the same.
std::string other_plugin(const TaskOrder& order);

void write_order(const std::string& path, const TaskOrder& order);
// Throws RunFileError that names the file and the field.
TaskOrder read_order(const std::string& path);

}  // namespace peakbench::cluster
