// The answer as JSON (docs/fit.md lists the fields).
#pragma once

#include <nlohmann/json.hpp>

#include "search/cell.h"

namespace peakbench::search {

// Of the answer: what the cell found takes, and the card has beside that.
struct Room {
  std::optional<std::int64_t> takes_bytes;  // the least memory, else what was reserved
  std::optional<std::int64_t> left_bytes;   // of the card, beside it; less than 0: it lacks
  // A CUDA context takes more than is left, as far as it was measured on such a card.
  bool less_than_context = false;
};
Room room_of(const Cell& cell, const CellAnswer& answer);

nlohmann::ordered_json to_json(const Cell& cell, const CellAnswer& answer);

}  // namespace peakbench::search
