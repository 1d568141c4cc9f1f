#include "launch/open_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "errors/errors.h"
#include "launch/environment.h"
#include "launch/run_folder.h"

namespace peakbench::launch {
namespace {

std::string now_utc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

result::Run new_run(const plan::Plan& plan, const OpenOptions& options) {
  result::Run run;
  run.title = plan.request.title;
  run.created = now_utc();
  run.suite = plan.request.suite_file;
  run.reference = plan.reference;
  run.environment = host_environment(plan);
  run.published = plan.request.published;
  run.command = options.command;
  run.settings = settings_of(plan.request);
  return run;
}

}  // namespace

result::Run open_run(const plan::Plan& plan, const RunFolder& folder, const OpenOptions& options) {
  folder.refuse_links();
  if (!folder.holds_run()) folder.refuse_strangers();
  if (options.overwrite && folder.holds_run()) folder.clear();
  if (!folder.holds_run()) return new_run(plan, options);
  if (!options.resume)
    throw ConfigError(fmt::format(
        "{} holds a run already. {} another folder with --out, or delete it with --overwrite.",
        folder.path(), options.is_resumable ? "Continue it with --resume, choose" : "Choose"));
  auto run = read_matching_run(folder.path(), plan);
  run.settings = settings_of(plan.request);  // a longer timeout may be why it is resumed
  return run;
}

}  // namespace peakbench::launch
