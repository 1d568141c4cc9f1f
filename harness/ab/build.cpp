#include "ab/build.h"

#include <fmt/format.h>

#include <filesystem>

#include "errors/errors.h"
#include "files/file.h"
#include "inventory/hook.h"
#include "manifest/manifest.h"
#include "result/axes.h"
#include "result/device.h"

namespace peakbench::ab {
namespace {

namespace fs = std::filesystem;

void check_devices(const plan::Request& request) {
  for (const auto& id : request.lists.at(result::Axis::kDevice))
    if (const auto device = result::recorded_device(id); !device.has_times)
      throw ConfigError(fmt::format("--device {}: {}; time on cpu or cuda:0", id, device.no_times));
}

std::string worker_of(const std::string& folder) {
  const auto worker = (fs::path(folder) / "bin/peakbench-worker").string();
  if (!files::is_there(worker))
    throw ConfigError(fmt::format(
        "{}: no bin/peakbench-worker there. Name the folder that Peakbench is installed in, or "
        "a build folder like build/release.",
        folder));
  return worker;
}

manifest::Found plugins_of(const BuildOrder& order) {
  std::vector<manifest::Folder> folders{
      {(fs::path(order.folder) / "lib/peakbench/plugins").string(), "the build"}};
  folders.insert(folders.end(), order.plugins.begin(), order.plugins.end());
  return manifest::discover(folders);
}

}  // namespace

Build open_build(const BuildOrder& order, const std::function<void(const std::string&)>& left_out) {
  check_devices(order.request);
  Build build;
  build.runner = std::make_unique<launch::ProcessRunner>(worker_of(order.folder));
  const auto plugins = plugins_of(order);
  for (const auto& problem : plugins.problems) left_out(problem);
  build.plan = plan::make_plan(order.request, plugins, inventory::device_hook(""));
  for (const auto& planned : build.plan.cases)
    if (planned.decided)
      throw ConfigError(fmt::format("{} in {}: {}", planned.spec.id, order.folder, planned.reason));
  return build;
}

// A stack that is there twice is planned once, and the builds' models may have other defaults.
void check_pairs(const std::vector<plan::PlannedCase>& base,
                 const std::vector<plan::PlannedCase>& now) {
  if (base.size() != now.size())
    throw ConfigError(fmt::format(
        "BASE has {} cases and NEW {}, so they cannot be compared one by one. Name each stack "
        "once.",
        base.size(), now.size()));
  for (std::size_t i = 0; i < base.size(); ++i)
    if (!same_but(base[i].spec, now[i].spec, result::Axis::kStrategy))
      throw ConfigError(fmt::format(
          "{} in BASE and {} in NEW differ in more than their strategies. Name what their "
          "defaults differ in, like the sequence length (--seq).",
          base[i].spec.id, now[i].spec.id));
}

}  // namespace peakbench::ab
