// Whether a run is as it was filed: checksums of what it consists of, written in the transaction
// that files it. They find what a disk or a copy did, not what a person did on purpose. For this
// module alone.
#pragma once

#include <cstdint>

#include "base/database.h"

namespace peakbench::trends {

enum class Sealed {
  kRow,      // its row in `runs`: labels, conditions
  kRecord,   // run.json
  kFigures,  // its cases, with the series that they are points of
  kParts,    // what was alive at its peaks; may be shared with other runs
};

// Columns in the checksum of a case's point, in `cases` and `series` (before its `sum`), then the
// axes of its series. The list never changes, because files store the sums. A new axis is in the
// case id and in `axes`. `figures` is in the sum only where it is set.
inline constexpr const char* kFigureColumns =
    "case_id, card, device_options, model, strategy, device, dtype, batch_size, sequence_length, "
    "emulated, cases.status, peak_allocated_bytes, peak_requested_bytes, peak_reserved_bytes, "
    "peak_phase, "
    "step_ns, samples_per_second, tokens_per_second, sum, axes, axes_sum, figures";
enum FigureColumn {
  kCaseId = 0,
  kStatus = 10,
  kAllocated,
  kRequested,
  kReserved,
  kPeakPhase,
  kStepTime,
  kSamples,
  kTokens,
  kSum,
  kAxes,
  kAxesSum,
  kFigures,
  kAfterFigures
};
// Of a row with these columns.
bool is_point_sound(const sqlite::Statement& row);

// Within the caller's transaction, after all of the run is written.
void seal(sqlite::Database& database, std::int64_t number);
// After a change of the row alone.
void seal_row(sqlite::Database& database, std::int64_t number);

// Reads the part completely, whatever state its pages are in.
bool is_sound(const sqlite::Database& database, std::int64_t number, Sealed what);

}  // namespace peakbench::trends
