// The scopes of a trace.sqlite. For the room's own use.
#pragma once

#include <cstddef>
#include <vector>

#include "base/database.h"
#include "trace/trace.h"

namespace peakbench::trace {

// Throws Damage for what no recorder writes, sqlite::DatabaseError.
std::vector<ScopeMark> read_scopes(const sqlite::Database& database, std::size_t events);

}  // namespace peakbench::trace
