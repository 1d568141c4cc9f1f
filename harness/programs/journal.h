// Reads what a traced process left (recording/journal.h): a trace with its phases decided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "programs/journal_files.h"
#include "recording/journal.h"
#include "records/case.h"
#include "trace/trace.h"

namespace peakbench::programs {

struct Journal {
  std::int32_t pid = 0;
  std::int32_t rank = -1;  // -1: unknown
  recording::RankSource rank_source = recording::RankSource::kNone;
  recording::Stopped stopped = recording::Stopped::kNot;
  trace::Trace trace;
  std::vector<records::NcclCalls> nccl_calls = {};  // of an emulated card
  std::int64_t recorded_bytes = 0;                  // in its file
  // Events at which the allocator's own figure was not what the events before it add up to.
  std::uint64_t disagreements = 0;
};

struct JournalReading {
  std::string device = {};  // of the case
  bool emulated = false;
  bool has_times = false;
  // Whether the program failed: a trace then ends where memory ran out last, if nothing began after
  // that.
  bool failed = false;
  std::optional<std::int64_t> available_bytes = std::nullopt;  // of memory; else the machine's
};

// Throws ConfigError with the path if the file is invalid, is corrupted, or is too large for the
// machine's memory. read_trace() would accept the result, once it is written.
Journal read_journal(const std::filesystem::path& path, const JournalReading& reading);

// Maximum size of a journal that can be read in this much memory; 0: unknown.
std::int64_t most_recorded_bytes(std::int64_t available_bytes);

// What the processes of a program left in a folder.
struct Recorded {
  // Those that have events, by rank: of one rank the process that joined a group first, then by
  // process id. Those of unknown rank are last.
  std::vector<Journal> journals = {};
  std::vector<Untraced> unread = {};  // of the others, those whose recording was lost, and why
  bool any_silent = false;            // of the others, one that allocated nothing
};
Recorded read_journals(const std::filesystem::path& folder, const JournalReading& reading);

}  // namespace peakbench::programs
