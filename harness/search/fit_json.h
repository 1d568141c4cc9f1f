// The answer as JSON (docs/how-to/fit.md lists the fields).
#pragma once

#include <nlohmann/json.hpp>

#include "search/cell.h"

namespace peakbench::search {

// Of the answer: what the cell found takes, and the card has beside that and the context.
struct Room {
  std::optional<std::int64_t> takes_bytes;  // the least memory, else what was reserved
  std::optional<std::int64_t> left_bytes;   // less than 0: it lacks
};
Room room_of(const Cell& cell, const CellAnswer& answer);

nlohmann::ordered_json to_json(const Cell& cell, const CellAnswer& answer);

}  // namespace peakbench::search
