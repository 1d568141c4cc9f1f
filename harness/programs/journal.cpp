#include "programs/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/errors.h"
#include "base/numbers.h"
#include "launch/machine.h"
#include "programs/inferred_names.h"
#include "programs/phases.h"
#include "programs/ranges.h"
#include "programs/snapshot.h"
#include "trace/phases.h"
#include "trace/trace_file.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;
using recording::Record;
using recording::Tag;
using trace::EventKind;

// Of a block and of a space at once, as run.json can hold it; of all that was ever handed out.
constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 50, kMostCounted = std::int64_t{1} << 60;
constexpr std::int64_t kLatestNs = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kMemoryForByte = 3;  // of a journal, while it is read: 239 bytes an event
constexpr std::int64_t kAlwaysRead = 64 << 20;

[[noreturn]] void fail(const std::string& what) { throw ConfigError(what); }

// Texts of one kind, numbered as they are first used.
class Words {
 public:
  explicit Words(std::vector<std::string>& words) : words_(words) {}
  std::int32_t index(std::int32_t text, const std::string& word) {
    const auto [found, is_new] =
        by_text_.try_emplace(text, static_cast<std::int32_t>(words_.size()));
    if (is_new) words_.push_back(word);
    return found->second;
  }

 private:
  std::vector<std::string>& words_;
  std::unordered_map<std::int32_t, std::int32_t> by_text_;
};

class Reader {
 public:
  Reader(JournalFile& file, const JournalReading& reading, Journal& journal)
      : file_(file),
        reading_(reading),
        journal_(journal),
        trace_(journal.trace),
        files_(trace_.files),
        functions_(trace_.functions),
        modules_(trace_.modules),
        operators_(trace_.operators),
        ranges_(trace_.ranges) {
    trace_.device = reading.device;
    trace_.emulated = reading.emulated;
    trace_.counts_build = true;
  }

  void read() {
    while (file_.left() > 0) take(file_.next());
    finish();
  }

 private:
  void take(const Record& record) {
    if (record.thread < 0) fail("it has a thread below 0");
    switch (record.tag) {
      case Tag::kText:
        return take_text(record);
      case Tag::kSpace:
        return take_space(record);
      case Tag::kFrame:
        return take_frame(record);
      case Tag::kEvent:
        return take_event(record);
      case Tag::kWhere:
        return take_where(record);
      case Tag::kMark:
        return take_mark(record);
      case Tag::kRange:
        return take_range(record);
      case Tag::kName:
        return take_name(record);
      case Tag::kFinal:
        return take_final(record);
    }
    fail("it has a record of no kind");
  }

  void take_mark(const Record& record) {
    if (record.kind >= recording::kMarkCount) fail("it has a mark of no kind");
    const auto mark = static_cast<recording::Mark>(record.kind);
    if (mark == recording::Mark::kCopyBegins || mark == recording::Mark::kCopyEnds)
      return copies_.push_back(copy_of(record, mark));
    if (mark == recording::Mark::kJoins) return take_joined(record);
    marks_.push_back({.event = trace_.events.size(),
                      .mark = mark,
                      .thread = record.thread,
                      .value = record.mark.value,
                      .call = record.mark.call});
    if (mark == recording::Mark::kBackwardBegins) ranges_.begin_backward(record.thread);
    if (mark == recording::Mark::kBackwardEnds) ranges_.end_backward(record.thread);
  }

  CopyMark copy_of(const Record& record, recording::Mark mark) const {
    const auto& [copy, call, storage] = record.mark;
    if (copy < 0 || copy >= recording::kCopyCount) fail("it has a copy of no kind");
    const auto source = live_.find(storage);
    return {.event = trace_.events.size(),
            .ends = mark == recording::Mark::kCopyEnds,
            .thread = record.thread,
            .copy = static_cast<recording::Copy>(copy),
            .source = source == live_.end() ? std::nullopt : std::optional(source->second)};
  }

  // Until the allocation for it comes.
  void take_joined(const Record& record) {
    auto& sources = joining_[record.thread];
    if (record.mark.value == 0) sources.clear();
    if (const auto source = live_.find(record.mark.storage); source != live_.end())
      sources.push_back(source->second);
  }

  void take_range(const Record& record) {
    if (record.kind >= recording::kRangeSourceCount) fail("it has a range of nobody");
    const auto& range = record.range;
    if (range.name == trace::kNone) return ranges_.end(range.number);
    const auto& name = text(range.name);
    if (is_named_by_program(trace_, static_cast<recording::RangeSource>(record.kind), name,
                            frame(range.stack)))
      ranges_.begin(record.thread, range.number, name);
  }

  // Of a stack, or trace::kNone.
  std::int32_t frame(std::int64_t number) const {
    if (number < trace::kNone || number >= static_cast<std::int64_t>(trace_.frames.size()))
      fail("it lacks a frame");
    return static_cast<std::int32_t>(number);
  }

  void take_text(const Record& head) {
    const auto size = static_cast<std::size_t>(head.text.bytes);
    if (head.text.bytes < 0 || size > recording::kLongestText ||
        head.text.number != static_cast<std::int32_t>(texts_.size()))
      fail("it has a lost text");
    std::string text;
    while (text.size() < size) {
      const auto piece = file_.next();
      text.append(reinterpret_cast<const char*>(&piece),
                  std::min(sizeof piece, size - text.size()));
    }
    texts_.push_back(std::move(text));
  }
  const std::string& text(std::int64_t number) const {
    if (number < 0 || static_cast<std::size_t>(number) >= texts_.size()) fail("it lacks a text");
    return texts_[static_cast<std::size_t>(number)];
  }
  template <class Word>
  std::int32_t word(Word& words, std::int64_t number) {
    return number == trace::kNone ? trace::kNone
                                  : words.index(static_cast<std::int32_t>(number), text(number));
  }

  void take_space(const Record& record) {
    if (record.space != static_cast<std::int16_t>(trace_.spaces.size())) fail("it lacks a space");
    trace_.spaces.push_back(text(record.named_space.name));
    spaces_.emplace_back();
  }

  void take_frame(const Record& record) {
    const auto& [number, parent, file, function, line] = record.frame;
    if (number != static_cast<std::int32_t>(trace_.frames.size())) fail("it lacks a frame");
    trace_.frames.push_back(
        {.parent = frame(parent),
         .file = files_.index(static_cast<std::int32_t>(file), text(file)),
         .function = functions_.index(static_cast<std::int32_t>(function), text(function)),
         .line = static_cast<std::int32_t>(std::clamp<std::int64_t>(line, 0, 1 << 30))});
  }

  // What is known of a space while its events go by.
  struct Space {
    std::optional<std::uint64_t> unsized;  // the last allocation, its block's size not yet known
    std::int64_t total_before = 0;         // it was counted
    std::int64_t allocated = 0;
  };

  Space& space_of(const Record& record) {
    if (record.space < 0 || static_cast<std::size_t>(record.space) >= spaces_.size())
      fail("it has an event of no space");
    return spaces_[static_cast<std::size_t>(record.space)];
  }

  // The allocator's count says how large the block was that it gave last.
  void size_last(Space& space, std::int64_t total) {
    if (!space.unsized) return;
    auto& event = trace_.events[*space.unsized];
    const auto least = rounded_block(event.requested_bytes);
    const auto counted = total - space.total_before;
    event.block_bytes = total >= 0 && counted >= event.requested_bytes ? counted : least;
    count(space, event.block_bytes);
    space.unsized.reset();
  }

  static void count(Space& space, std::int64_t bytes) {
    if (bytes > kMostAtOnce - space.allocated) fail("it has sizes that no card has");
    space.allocated += bytes;
  }

  // -1: not known.
  static void check_size(std::int64_t bytes, std::int64_t most = kMostAtOnce) {
    if (bytes < -1 || bytes > most) fail("it has a size that no card has");
  }

  void take_event(const Record& record) {
    if (record.kind >= trace::kEventKindCount) fail("it has an event of no kind");
    const auto& told = record.event;
    const bool failed = record.kind == static_cast<int>(EventKind::kOutOfMemory);
    for (const auto bytes : {told.block_bytes, told.current_bytes}) check_size(bytes);
    check_size(told.total_bytes, kMostCounted);
    if (!failed) check_size(told.requested_bytes);  // else it may be anything
    if (told.pool < 0) fail("it has an event of no pool");
    auto& space = space_of(record);
    size_last(space, told.total_bytes);
    trace::Event event;
    event.kind = static_cast<EventKind>(record.kind);
    event.space = record.space;
    event.thread = record.thread;
    event.range = ranges_.at(record.thread);
    event.pool = told.pool > 0 ? told.pool - 1 : trace::kNone;
    event.address = told.address;
    event.module = word(modules_, told.module);
    event.requested_bytes = std::max<std::int64_t>(told.requested_bytes, 0);
    event.block_bytes = std::max<std::int64_t>(told.block_bytes, 0);
    if (reading_.has_times) event.time_ns = std::clamp<std::int64_t>(told.time_ns, 0, kLatestNs);
    const auto number = trace_.events.size();
    switch (event.kind) {
      case EventKind::kAlloc:
        if (told.block_bytes < 0) {
          space.unsized = number;
          space.total_before = told.total_bytes;
          event.block_bytes = event.requested_bytes;  // until it is known
        } else {
          if (event.block_bytes < event.requested_bytes) fail("it has a block that is too small");
          count(space, event.block_bytes);
        }
        begin_life(event, number);
        unplaced_[event.thread].push_back(number);
        break;
      case EventKind::kFreeRequested:
      case EventKind::kFree:
        if (!end_life(event, space)) return;
        break;
      case EventKind::kOutOfMemory:
        unplaced_[event.thread].push_back(number);
        break;
      default:
        event.block_bytes = event.requested_bytes;
    }
    if (told.current_bytes >= 0 && told.current_bytes != space.allocated) ++journal_.disagreements;
    trace_.events.push_back(event);
  }

  // Nothing is made at address 0.
  void begin_life(const trace::Event& event, std::uint64_t number) {
    if (event.address == 0 ? event.requested_bytes > 0
                           : !live_.try_emplace(event.address, number).second)
      fail("it has an allocation where another one is alive");
  }

  // False for memory that was allocated before the tracer came.
  bool end_life(trace::Event& event, Space& space) {
    const auto found = live_.find(event.address);
    if (found == live_.end()) return false;
    const auto& allocation = trace_.events[found->second];
    if (allocation.space != event.space) fail("it has a free in another space");
    event.requested_bytes = allocation.requested_bytes;
    event.block_bytes = allocation.block_bytes;
    const bool first = requested_.insert(found->second).second;
    if (first) space.allocated -= event.block_bytes;
    if (!first && event.kind == EventKind::kFreeRequested)
      fail("it has memory that is freed twice");
    if (event.kind == EventKind::kFree) {
      requested_.erase(found->second);
      live_.erase(found);
    }
    return true;
  }

  void take_where(const Record& record) {
    const auto op = word(operators_, record.where.op);
    const auto module = word(modules_, record.where.module);
    const auto stack = frame(record.where.stack), hook = frame(record.where.hook);
    auto& events = unplaced_[record.thread];
    for (const auto number : events) {
      auto& event = trace_.events[number];
      event.stack = stack;
      event.op = op;
      if (module != trace::kNone) event.module = module;
      if (hook >= 0) hooks_[number] = hook;
      if (auto& sources = joining_[record.thread]; !sources.empty() && is_joined(event))
        joins_.push_back({.result = number, .sources = std::exchange(sources, {})});
    }
    events.clear();
  }

  bool is_joined(const trace::Event& event) const {
    return event.kind == EventKind::kAlloc && event.op != trace::kNone &&
           trace_.operators[static_cast<std::size_t>(event.op)] == "aten::cat";
  }

  void take_name(const Record& record) {
    if (record.kind >= trace::kRoleCount) fail("it has a name of no role");
    const auto& told = record.name;
    const auto found = live_.find(told.address);
    if (found == live_.end()) return;
    const auto role = static_cast<trace::Role>(record.kind);
    if (role == trace::Role::kCommunication) {  // the weakest of names: decided at the end
      communicated_.push_back(
          {found->second, trace_.events.size(), text(told.shape), text(told.dtype)});
      return;
    }
    auto& names = names_[found->second];
    for (const auto index : names) {
      auto& known = trace_.names[index];
      if (known.role != role) continue;
      if (known.name.empty()) known.name = text(told.name);
      return;
    }
    names.push_back(trace_.names.size());
    trace_.names.push_back(
        {found->second, role, text(told.name), text(told.shape), text(told.dtype)});
  }

  void take_final(const Record& record) {
    const auto& told = record.final;
    for (const auto bytes :
         {told.peak_allocated_bytes, told.peak_reserved_bytes, told.current_bytes})
      check_size(bytes);
    check_size(told.total_bytes, kMostCounted);
    auto& space = space_of(record);
    size_last(space, told.total_bytes);
    if (told.current_bytes != space.allocated) ++journal_.disagreements;
  }

  void finish() {
    for (auto& space : spaces_) size_last(space, -1);
    if (const auto why = trace::why_not_readable(trace_); !why.empty()) fail("it has " + why);
    end_at_out_of_memory();
    trace_.scopes = scopes_of(marks_, step_ends(marks_), built(), !reading_.failed);
    add_copies(trace_, copies_);
    trace::decide_phases(trace_);
    drop_inputs_that_were_made();
    name_communication(trace_, communicated_, hooks_);
    name_joined(trace_, joins_);
    choose_own_space();
  }

  void end_at_out_of_memory() {
    if (!reading_.failed) return;
    auto last = trace_.events.size();
    while (last > 0 && trace_.events[last - 1].kind != EventKind::kOutOfMemory) --last;
    if (last == 0) return;
    const auto begins = [](recording::Mark mark) {
      return mark == recording::Mark::kForwardBegins || mark == recording::Mark::kBackwardBegins ||
             mark == recording::Mark::kUpdateBegins || mark == recording::Mark::kEvaluationBegins;
    };
    const auto goes_on = [&](const TimedMark& mark) {
      return mark.event > last && begins(mark.mark);
    };
    if (std::ranges::any_of(marks_, goes_on)) return;
    for (auto i = last; i < trace_.events.size(); ++i)
      if (trace_.events[i].kind == EventKind::kAlloc) return;  // it was caught
    trace_.events.resize(last);
    std::erase_if(trace_.names, [&](const trace::Name& name) { return name.event >= last; });
    std::erase_if(marks_, [&](const TimedMark& mark) { return mark.event >= last; });
    std::erase_if(copies_, [&](const CopyMark& mark) { return mark.event >= last; });
    std::erase_if(joins_, [&](const Join& join) { return join.result >= last; });
  }

  // Behind the last parameter or buffer that was made before a model was first called.
  std::uint64_t built() const {
    const auto call = std::ranges::find_if(marks_, [](const TimedMark& mark) {
      return mark.mark == recording::Mark::kForwardBegins ||
             mark.mark == recording::Mark::kEvaluationBegins ||
             mark.mark == recording::Mark::kGenerationBegins;
    });
    const auto first_call = call == marks_.end() ? trace_.events.size() : call->event;
    std::uint64_t built = 0;
    bool any = false;
    for (const auto& name : trace_.names) {
      if (name.role != trace::Role::kParameter && name.role != trace::Role::kBuffer) continue;
      if (name.event >= first_call) continue;
      built = std::max(built, name.event + 1);
      any = true;
    }
    return any ? built : first_call;
  }

  // What a model is called with is its input, unless a model made it.
  void drop_inputs_that_were_made() {
    std::erase_if(trace_.names, [&](const trace::Name& name) {
      if (name.role != trace::Role::kInput) return false;
      return trace_.events[name.event].module != trace::kNone;
    });
  }

  // The card that the program used most.
  void choose_own_space() {
    std::int64_t most = -1;
    for (std::size_t i = 0; i < spaces_.size(); ++i) {
      const bool card = trace_.spaces[i] != "cpu";
      std::int64_t bytes = 0, peak = 0;
      std::unordered_map<std::uint64_t, std::int64_t> live;
      for (const auto& event : trace_.events) {
        if (static_cast<std::size_t>(event.space) != i) continue;
        if (event.kind == EventKind::kAlloc) {
          live[event.address] = event.block_bytes;
          peak = std::max(peak, bytes += event.block_bytes);
        } else if (event.kind == EventKind::kFree) {
          bytes -= live[event.address];
          live.erase(event.address);
        }
      }
      if (card && peak > 0) peak += std::int64_t{1} << 60;  // before any CPU
      if (peak > most) {
        most = peak;
        trace_.own_space = static_cast<int>(i);
      }
    }
  }

  JournalFile& file_;
  const JournalReading& reading_;
  Journal& journal_;
  trace::Trace& trace_;
  Words files_, functions_, modules_, operators_;
  Ranges ranges_;
  std::vector<std::string> texts_;
  std::vector<Space> spaces_;
  std::vector<TimedMark> marks_;
  std::vector<CopyMark> copies_;
  std::vector<Join> joins_;
  std::unordered_map<std::int32_t, std::vector<std::uint64_t>> joining_;  // sources, by thread
  std::vector<Communicated> communicated_;
  std::unordered_map<std::uint64_t, std::int32_t> hooks_;  // event -> stack, of backward's hooks
  std::unordered_map<std::uint64_t, std::uint64_t> live_;  // address -> its allocation
  std::set<std::uint64_t> requested_;                      // allocations asked to be freed
  std::unordered_map<std::int32_t, std::vector<std::uint64_t>> unplaced_;  // by thread
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> names_;
};

void refuse_too_large(std::int64_t bytes, const JournalReading& reading) {
  if (bytes <= kAlwaysRead && !reading.available_bytes) return;
  const auto available = reading.available_bytes.value_or(launch::host_memory().available_bytes);
  if (available == 0 || bytes <= available / kMemoryForByte) return;
  const auto size = [](std::int64_t count) { return size_text(static_cast<std::uint64_t>(count)); };
  fail(fmt::format("reading its recording needs about {} of memory, and the machine has {} left",
                   size(bytes * kMemoryForByte), size(available)));
}

// Throws ConfigError without the path.
Journal read(const fs::path& path, const JournalReading& reading) {
  JournalFile file(path);
  const auto& header = file.header();
  Journal journal;
  journal.pid = header.pid;
  journal.rank = std::max(header.rank, -1);
  journal.rank_source = header.rank_source;
  journal.stopped = header.stopped;
  journal.recorded_bytes = static_cast<std::int64_t>(header.records * sizeof(Record));
  refuse_too_large(journal.recorded_bytes, reading);
  Reader(file, reading, journal).read();
  return journal;
}

}  // namespace

std::int64_t most_recorded_bytes(std::int64_t available_bytes) {
  constexpr std::int64_t kMost = std::int64_t{16} << 30;
  if (available_bytes == 0) return kMost;  // not known
  return std::clamp(available_bytes / (kMemoryForByte + 1), kAlwaysRead, kMost);
}

Journal read_journal(const fs::path& path, const JournalReading& reading) {
  try {
    return read(path, reading);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

Recorded read_journals(const fs::path& folder, const JournalReading& reading) {
  Recorded recorded;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != recording::kSuffix) continue;
    const auto unread = [&](const std::string& why) {
      recorded.unread.push_back({.pid = process_of(entry.path()), .why = why});
    };
    try {
      auto journal = read(entry.path(), reading);
      if (!journal.trace.events.empty())
        recorded.journals.push_back(std::move(journal));
      else if (journal.stopped != recording::Stopped::kNot)
        unread("the disk had no space for its recording");
      else
        recorded.any_silent = true;
    } catch (const ConfigError& error) {
      unread(error.what());
    }
  }
  const auto order = [](const Journal& one) {
    return std::tuple(one.rank < 0, one.rank,
                      one.rank_source != recording::RankSource::kProcessGroup, one.pid);
  };
  std::ranges::sort(recorded.journals, {}, order);
  std::ranges::sort(recorded.unread, {}, &Untraced::pid);
  return recorded;
}

}  // namespace peakbench::programs
