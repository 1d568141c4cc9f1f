#include "inventory/ask_worker.h"

#include <chrono>

#include "launch/outcome.h"
#include "text/printable.h"

namespace peakbench::inventory {

WorkerSaid ask_worker(const std::string& worker, const std::vector<std::string>& arguments,
                      const process::Environment& environment) {
  process::ProcessSpec spec;
  spec.arguments = {worker};
  spec.arguments.insert(spec.arguments.end(), arguments.begin(), arguments.end());
  spec.environment = environment;
  spec.log_path = "/dev/null";  // its last words are enough, and there may be no other place
  spec.timeout = std::chrono::seconds(60);
  const auto end = process::run_process(
      spec, [](const std::string&) {}, [] { return false; });
  WorkerSaid said;
  said.text = end.last_words;
  said.end = printable(end.start_error.empty() ? launch::log_tail(said.text) : end.start_error);
  said.wall_ns = end.wall_ns;
  return said;
}

}  // namespace peakbench::inventory
