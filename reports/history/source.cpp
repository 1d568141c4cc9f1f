#include "reports/history/source.h"

#include <fmt/format.h>

#include <cstdlib>

#include "reports/history/reference.h"
#include "result/run_paths.h"

namespace peakbench::history {
namespace {

Source from_history(const Reference& reference, const std::string& text, const std::string& file) {
  const auto history = History::open_to_read(file);
  const auto row = find_run(history, reference, text);
  const auto named = text.substr(text.find(':') + 1);
  const auto& commit = row.labels.commit;
  return {history.record(row.number), history.parts(row.number), "",
          fmt::format("{} (run {}{}{})", named.empty() ? "latest" : named, row.number,
                      commit.empty() ? "" : ", ", commit.substr(0, 12))};
}

}  // namespace

std::string history_file(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* variable = std::getenv(kHistoryVariable);
  return variable != nullptr && *variable != '\0' ? variable : kDefaultHistoryFile;
}

Source read_source(const std::string& reference, const std::string& history_file) {
  if (const auto wanted = reference_from(reference))
    return from_history(*wanted, reference, history_file);
  Source source;
  source.run = result::read_run(reference);
  source.folder = result::run_folder_of(reference);
  source.label = reference;
  return source;
}

}  // namespace peakbench::history
