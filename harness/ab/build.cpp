#include "ab/build.h"

#include <fmt/format.h>

#include <filesystem>

#include "errors/errors.h"
#include "files/file.h"
#include "inventory/hook.h"
#include "launch/host.h"
#include "manifest/manifest.h"
#include "result/axes.h"
#include "result/device.h"
#include "workers/choose.h"

namespace peakbench::ab {
namespace {

namespace fs = std::filesystem;

void check_devices(const plan::Request& request) {
  for (const auto& id : request.lists.at(result::Axis::kDevice))
    if (const auto device = result::recorded_device(id); !device.has_times)
      throw ConfigError(fmt::format("--device {}: {}; time on cpu or cuda:0", id, device.no_times));
}

// Of an installation or a build folder, and of a worker for another PyTorch (torch-2.15.0+cu132).
manifest::Worker worker_of(const BuildOrder& order) {
  const auto& folder = order.folder;
  if (workers::is_worker_folder(folder))
    return workers::worker_in(folder, launch::peakbench_version());
  manifest::Worker worker;
  worker.program = (fs::path(folder) / "bin/peakbench-worker").string();
  worker.plugins = (fs::path(folder) / "lib/peakbench/plugins").string();
  if (!files::is_there(worker.program))
    throw ConfigError(fmt::format(
        "{}: no bin/peakbench-worker there. Name the folder that Peakbench is installed in, or "
        "a build folder like build/release.",
        folder));
  return worker;
}

manifest::Found plugins_of(const BuildOrder& order, const manifest::Worker& worker) {
  std::vector<manifest::Folder> folders{{worker.plugins, "the build"}};
  folders.insert(folders.end(), order.plugins.begin(), order.plugins.end());
  return manifest::discover(folders, worker.stamp);
}

}  // namespace

Build open_build(const BuildOrder& order, const std::function<void(const std::string&)>& left_out) {
  check_devices(order.request);
  Build build;
  auto request = order.request;
  request.worker = worker_of(order);
  build.runner = std::make_unique<launch::ProcessRunner>(request.worker.program);
  const auto plugins = plugins_of(order, request.worker);
  for (const auto& problem : plugins.problems) left_out(problem);
  build.plan = plan::make_plan(request, plugins, inventory::device_hook("", request.worker));
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
