#include "reports/history/export.h"

#include <fmt/format.h>

#include "errors/errors.h"
#include "json/fields.h"
#include "json/parse_json.h"

namespace peakbench::history {
namespace {

using nlohmann::ordered_json;

constexpr int kLineVersion = 1;

std::string line_text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

ordered_json to_json(const RunRow& run) {
  return {{"number", run.number},
          {"added", run.added},
          {"created", run.created},
          {"title", run.title},
          {"suite", run.suite},
          {"status", run.status},
          {"branch", run.labels.branch},
          {"commit", run.labels.commit},
          {"verdict", run.labels.verdict},
          {"note", run.labels.note},
          {"cases", run.cases},
          {"ok_cases", run.ok_cases},
          {"libtorch", run.conditions.libtorch},
          {"libtorch_cuda", run.conditions.libtorch_cuda},
          {"driver", run.conditions.driver},
          {"steps", run.conditions.steps},
          {"peakbench", run.peakbench},
          {"stored_bytes", run.stored_bytes}};
}

std::string line_of(const History& history, const RunRow& run) {
  ordered_json line{{"history_line", kLineVersion}, {"number", run.number},
                    {"added", run.added},           {"branch", run.labels.branch},
                    {"commit", run.labels.commit},  {"verdict", run.labels.verdict},
                    {"note", run.labels.note}};
  line["run"] = to_json(history.record(run.number));
  line["parts"] = analysis::to_json(history.parts(run.number));
  return line_text(line);
}

Line read_line(const std::string& text) {
  const auto json = parse_json(text);
  const Fields fields(json);
  if (!fields.find("history_line"))
    throw ConfigError("no line of a history; expected what `peakbench history export` writes");
  if (fields.get<std::int64_t>("history_line") > kLineVersion)
    throw ConfigError("written by a newer Peakbench; use that one");
  Line line;
  line.labels = {fields.get_or<std::string>("branch", ""), fields.get_or<std::string>("commit", ""),
                 fields.get_or<std::string>("verdict", ""), fields.get_or<std::string>("note", "")};
  line.run = result::run_from_json(fields.require("run"));
  if (const auto* parts = fields.find("parts")) line.parts = analysis::parts_from_json(*parts);
  return line;
}

}  // namespace peakbench::history
