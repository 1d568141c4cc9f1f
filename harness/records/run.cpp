#include "records/run.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "records/case_json.h"
#include "records/members.h"

namespace peakbench::records {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr const char* kFileName = "run.json";

std::string path_in(const std::string& directory) {
  return (std::filesystem::path(directory) / kFileName).string();
}

int major_of(const std::string& version) {
  int major = -1;
  const char* end = version.data() + version.size();
  const auto [rest, error] = std::from_chars(version.data(), end, major);
  const bool number = error == std::errc() && rest != end && *rest == '.';
  return number ? major : -1;
}

void check_version(const Fields& fields) {
  if (!fields.find("schema_version"))
    throw FieldError("/schema_version", "missing; this is no Peakbench run file");
  const auto version = fields.get<std::string>("schema_version");
  const int major = major_of(version), ours = major_of(kSchemaVersion);
  if (major < 1)
    throw FieldError("/schema_version", fmt::format("expected a version such as {}, got \"{}\"",
                                                    kSchemaVersion, version));
  if (major > ours)
    throw FieldError("/schema_version", fmt::format("{} is newer than this Peakbench reads ({}.x); "
                                                    "use a newer Peakbench",
                                                    version, ours));
}

// An error names the case, too: its place in the list says little.
CaseResult read_named_case(const Fields& fields) {
  try {
    return read_case(fields);
  } catch (const RunFileError& error) {
    const auto* id = fields.find("id");
    if (!id || !id->is_string()) throw;
    throw RunFileError(fmt::format("{} (case {})", error.what(), id->get<std::string>()));
  }
}

}  // namespace

ordered_json to_json(const Run& run) {
  auto object = as_json(run);
  for (const auto& result : run.cases) object["cases"].push_back(to_json(result));
  return object;
}

Run run_from_json(const json& json) {
  const Fields fields(json);
  check_version(fields);
  auto run = record_from<Run>(fields);
  fields.require("cases");
  fields.each("cases", [&](const Fields& item) { run.cases.push_back(read_named_case(item)); });
  return run;
}

void write_run(const Run& run, const std::string& directory) {
  files::write_json_file(path_in(directory), to_json(run));
}

// As deep as an element of `cases` is. A newline is never part of a text, where JSON writes it
// escaped.
std::string case_text(const CaseResult& result) {
  constexpr std::string_view kIndent = "    ";
  std::string text(kIndent);
  for (const char c : json_text(to_json(result))) {
    text += c;
    if (c == '\n') text += kIndent;
  }
  text.resize(text.size() - kIndent.size() - 1);  // the newline at the end
  return text;
}

void write_run(const Run& run, const std::vector<const std::string*>& cases,
               const std::string& directory) {
  std::string text = json_text(as_json(run));
  if (!cases.empty()) {
    std::string list;
    for (const auto* one : cases) list += (list.empty() ? "\n" : ",\n") + *one;
    constexpr std::string_view kNoCases = "\n  \"cases\": []";
    text.insert(text.find(kNoCases) + kNoCases.size() - 1, list + "\n  ");
  }
  files::write_file_atomically(path_in(directory), text);
}

Run read_run(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path file(path);
  if (fs::is_directory(file, ignored)) file /= kFileName;
  if (const auto why = files::why_hidden(file.string()); !why.empty())
    throw RunFileError(fmt::format("{}: cannot be read: {}", file.string(), why));
  if (!fs::exists(file, ignored)) {
    const bool folder = file != fs::path(path);
    throw RunFileError(folder ? fmt::format("{}: this folder holds no run.json; name one that "
                                            "`peakbench run --out` made",
                                            path)
                              : fmt::format("{}: no such file or folder", path));
  }
  const json content = files::read_json_file(file.string());
  try {
    return run_from_json(content);
  } catch (const RunFileError& error) {
    throw RunFileError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

namespace {

FitCell cell_from(const Fields& fields) {
  FitCell cell;
  cell.id = fields.get_or<std::string>("id", "");
  cell.row = fields.get<std::string>("row");
  cell.card = fields.get<std::string>("card");
  cell.state = fields.get<std::string>("state");
  cell.reason = fields.get_or<std::string>("reason", "");
  cell.largest = fields.maybe<std::int64_t>("largest");
  cell.card_memory_bytes = fields.get<std::int64_t>("card_memory_bytes");
  cell.against = fields.get_or<std::vector<std::string>>("against", {});
  if (const auto fails = fields.maybe_child("fails"))
    cell.fails = fails->get_or<std::string>("reason", "");
  const auto memory = fields.maybe_child("memory");
  if (!memory) return cell;
  const auto least = memory->maybe<std::int64_t>("least_memory_bytes");
  cell.is_least = least.has_value();
  cell.takes_bytes = least ? least : memory->maybe<std::int64_t>("peak_reserved_bytes");
  cell.left_bytes = memory->maybe<std::int64_t>("left_bytes");
  return cell;
}

}  // namespace

// Two runs may begin in one second; they have other cases then.
bool is_of(const FitGrid& grid, const Run& run) {
  return grid.run_created == run.created &&
         std::ranges::all_of(grid.cells, [&](const FitCell& cell) {
           return !cell.largest || find_case(run, cell.id) != nullptr;
         });
}

std::optional<FitGrid> read_fit_grid(const std::string& folder) {
  const auto path = (std::filesystem::path(folder) / kFitFile).string();
  if (!files::is_there(path)) return std::nullopt;
  const auto json = files::read_json_file(path);
  try {
    const Fields fields(json);
    FitGrid grid;
    grid.run_created = fields.get_or<std::string>("run_created", "");
    grid.answer = fields.get<std::string>("answer");
    grid.label = fields.get_or<std::string>("label", "");
    fields.each("cells", [&](const Fields& cell) { grid.cells.push_back(cell_from(cell)); });
    return grid;
  } catch (const FieldError& error) {
    throw RunFileError(path + ": " + error.what());
  }
}

}  // namespace peakbench::records
