#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace peakbench::recording {

// What a traced program leaves on disk while it runs: records of 64 bytes, one after another, that
// outlive the program however it ends. Written by journal.h, read by programs/journal.h. No
// LibTorch, no other module: both sides include it.

inline constexpr char kMagic[8] = {'P', 'B', 'T', 'R', 'A', 'C', 'E', '1'};
inline constexpr std::uint64_t kHeaderBytes = 4096;  // records begin behind it
inline constexpr const char* kSuffix = ".journal";
inline constexpr std::uint64_t kLongestText = 4096;
// An empty file of a forked process that has allocated of the CPU: it has no journal.
inline constexpr const char* kForkedSuffix = ".forked";

// Environment variables of a traced program.
inline constexpr const char* kFolderVariable = "PEAKBENCH_TRACE_FOLDER";  // the folder of journals
inline constexpr const char* kLibraryVariable =
    "PEAKBENCH_TRACE_LIBRARY";  // the library that records
inline constexpr const char* kTorchVariable =
    "PEAKBENCH_TRACE_TORCH";  // the version of PyTorch that the library is compiled for
inline constexpr const char* kCpuVariable =
    "PEAKBENCH_TRACE_CPU";  // whether the CPU's allocator is traced
inline constexpr const char* kTimesVariable = "PEAKBENCH_TRACE_TIMES";  // whether events have times
inline constexpr const char* kQuietVariable =
    "PEAKBENCH_TRACE_QUIET";  // no errors are printed in the program
inline constexpr const char* kMostVariable =
    "PEAKBENCH_TRACE_MOST";  // bytes of a journal; 0: 16 GiB

// Beside the journals, by process: the last line of what an uncaught exception of Python's printed.
inline constexpr const char* kRaisedSuffix = ".raised";

// Why recording stopped before the program did.
enum class Stopped : std::uint32_t { kNot, kNoSpace, kTooLarge };

// The source of a process's rank: RANK of its environment, which its own children inherit, or
// torch.distributed's default process group.
enum class RankSource : std::uint32_t { kNone, kEnvironment, kProcessGroup };

struct Header {
  char magic[8];
  std::uint64_t records;  // complete ones; the last thing written of each
  std::int32_t pid;
  std::int32_t rank;  // -1: unknown
  RankSource rank_source;
  Stopped stopped;
  std::uint32_t ended;  // 1: the program came to its end, and `kFinal` records are there
};
static_assert(sizeof(Header) <= kHeaderBytes);

// The kind of a record; the struct of the same name has its fields. Texts, frames and calls are
// numbered by the records that made them; -1: none.
enum class Tag : std::uint8_t {
  kText,
  kSpace,
  kFrame,
  kEvent,
  kWhere,
  kMark,
  kRange,
  kName,
  kFinal
};

// What a program does, as its thread does it.
enum class Mark : std::uint8_t {
  kForwardBegins,  // an outermost forward of a model, in training mode
  kEvaluationBegins,
  kGenerationBegins,
  kCallEnds,  // value: 1 where autograd recorded a graph in it
  kBackwardBegins,
  kBackwardEnds,
  kUpdateBegins,  // value: which optimizer
  kUpdateEnds,
  kSaveBegins,
  kSaveEnds,
  kRecomputationBegins,
  kRecomputationEnds,
  kCaptureBegins,  // of a CUDA graph
  kCaptureEnds,
  kDifferentiates,  // call: a backward runs a node that this call recorded
  kCopyBegins,      // to another floating-point dtype; value: Copy
  kCopyEnds,
  kJoins,  // torch.cat is called; value: 0 for the first storage reported, else 1
};
inline constexpr int kMarkCount = 18;

// What a copy to another dtype is: one to a larger dtype, or one to a smaller dtype of what needs
// no gradient.
enum class Copy : std::int32_t { kLarger, kSmallerOfFrozen };
inline constexpr int kCopyCount = 2;

// Who named a range. The numbers are those of python/peakbench_tracing.py.
enum class RangeSource : std::uint8_t { kRecordFunction, kNvtx, kPhase };
inline constexpr int kRangeSourceCount = 3;

// A text that others name by its number. It follows, padded to a multiple of the record size.
struct TextRecord {
  std::int32_t number, bytes;
};
// An allocator's address space, which the record's `space` numbers.
struct SpaceRecord {
  std::int32_t name;  // text
};
struct FrameRecord {
  std::int32_t number, parent;
  std::int64_t file, function, line;  // text, text, number of the line
};
// `kind`: trace::EventKind.
struct EventRecord {
  std::int32_t module;  // text
  std::int32_t pool;    // private pool, from 1, or 0
  std::uint64_t address;
  std::int64_t requested_bytes;
  std::int64_t block_bytes;  // -1: still unknown
  std::int64_t total_bytes,
      current_bytes;     // handed out since the beginning, and allocated now, both before an
                         // allocation and after a free; -1: unknown
  std::int64_t time_ns;  // since the beginning, if events have times
};
// Of this thread's allocations since its last one.
struct WhereRecord {
  std::int32_t stack, op;  // frame, text
  std::int64_t module;     // text
  std::int64_t hook;       // frame: of what Python runs within backward
};
// `kind`: Mark.
struct MarkRecord {
  std::int32_t value;
  std::int32_t call;      // that begins or ends, from 1
  std::uint64_t storage;  // of kCopyBegins, what is copied; of kJoins, one that is joined
};
// `kind`: RangeSource.
struct RangeRecord {
  std::int32_t name, stack;  // text, frame; of one that ends, the name is -1
  std::uint64_t number;
};
// `kind`: trace::Role.
struct NameRecord {
  std::int32_t name, shape;  // texts
  std::uint64_t address;
  std::int64_t dtype;  // text
};
// PyTorch's own counts at the end of the program.
struct FinalRecord {
  std::int64_t total_bytes, current_bytes, peak_allocated_bytes, peak_reserved_bytes;
};

// python/peakbench/_journal.py reads them, too.
struct Record {
  Tag tag;
  std::uint8_t kind;
  std::int16_t space;
  std::int32_t thread;
  union {
    std::byte bytes[56];
    TextRecord text;
    SpaceRecord named_space;
    FrameRecord frame;
    EventRecord event;
    WhereRecord where;
    MarkRecord mark;
    RangeRecord range;
    NameRecord name;
    FinalRecord final;
  };
};
static_assert(sizeof(Record) == 64);

// The journal of one process. Thread-safe; calls nothing of LibTorch or Python, because it is
// written under an allocator's lock.

class JournalWriter {
 public:
  // In the folder, named after the process. Nothing is recorded where there can be no such file.
  // `most_bytes`: then it is full; 0: 16 GiB.
  bool open(const std::string& folder, std::uint64_t most_bytes = 0);
  void set_rank(std::int32_t rank, RankSource source);

  void add(const Record& record);
  // The number of a text, written the first time.
  std::int32_t text(std::string_view text);
  std::int32_t frame(std::int32_t parent, std::int32_t file, std::int32_t function,
                     std::int32_t line);
  void end();  // the program's own
  // In a forked process, whose file is another's.
  void forget() {
    window_ = nullptr;
    is_forked_ = true;
  }
  // There: says once that it has something to trace.
  void mark_forked();
  bool is_open() const { return window_.load(std::memory_order_relaxed) != nullptr; }

 private:
  void add_locked(const Record& record);
  bool next_window();
  void stop(Stopped why);

  std::mutex mutex_;
  std::string folder_;
  std::atomic<bool> is_forked_{false};
  int file_ = -1;
  Header* header_ = nullptr;
  std::atomic<Record*> window_{nullptr};  // what is mapped of the file
  std::uint64_t in_window_ = 0, windows_ = 0, most_windows_ = 0;
  std::int32_t frames_ = 0;
  std::unordered_map<std::string, std::int32_t> texts_;
};

}  // namespace peakbench::recording
