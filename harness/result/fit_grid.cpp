#include "result/fit_grid.h"

#include <algorithm>
#include <filesystem>

#include "files/file.h"
#include "json/fields.h"

namespace peakbench::result {
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

}  // namespace peakbench::result
