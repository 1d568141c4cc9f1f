#include "core/copies.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/callers.h"
#include "core/exchange.h"
#include "core/machine.h"
#include "core/own_ledger.h"
#include "core/state.h"
#include "core/streams.h"
#include "core/values_hook.h"

namespace peakbench::emulator {

// Copies and fills: bytes exist on the host and in small device allocations; elsewhere on the
// device there are none.

bool may_be_anothers(const State& s, const Range& range) {
  return s.allocator == Allocator::unwatched && !range.pool;
}

namespace {

// One end of a copy. `range` is null on the host (unified memory included: the host can touch it).
struct End {
  char* at;
  Range* range = nullptr;
  std::uint64_t offset = 0;

  bool on_device() const { return range != nullptr; }
  bool has_bytes() const { return !range || range->kept; }
};

// What lies at an address that `fits`.
End find_end(State& s, const void* address) {
  End end{static_cast<char*>(const_cast<void*>(address))};
  auto found = find_range(s, address);
  if (found == s.memory.ranges.end() || !found->second.on_device()) return end;
  end.range = &found->second;
  end.offset = reinterpret_cast<std::uint64_t>(address) - found->first;
  return end;
}

// How many of the bytes lie in the same range. A tensor in an expandable segment goes on in the
// next mapping.
std::uint64_t run_length(const End& end, std::uint64_t bytes) {
  return end.range ? std::min(bytes, end.range->bytes - end.offset) : bytes;
}

void keep_as_copied(State& s, const End& to, const End& from, std::uint64_t bytes) {
  if (!to.on_device() || !to.range->kept) return;
  if (!from.on_device()) return to.range->kept->put(to.offset, bytes, s.device_work);
  to.range->kept->copy(to.offset, from.range->kept.get(), from.offset, bytes);
}

// What the host is given when it reads these bytes.
Answer answer_of(State& s, const End& from, std::uint64_t bytes) {
  const auto since = from.range->kept ? from.range->kept->since(from.offset, bytes) : std::nullopt;
  if (!since) return Answer::zeros;
  if (*since == s.device_work) return Answer::kept;
  return may_be_anothers(s, *from.range) ? Answer::zeros : Answer::uncertain;
}

// Zeros where nothing is known: what lies there may be an earlier tensor's.
void copy_known(State& s, const End& to, const End& from, std::uint64_t bytes) {
  clear_host(s, to.at, bytes);
  if (!from.range->kept) return;
  const bool any_age = !may_be_anothers(s, *from.range);
  for (const KeptBytes::Piece& piece : from.range->kept->pieces(from.offset, bytes)) {
    if (!any_age && piece.when != s.device_work) continue;
    const auto at = piece.offset - from.offset;
    std::memcpy(to.at + at, from.at + at, piece.bytes);
  }
}

Answer copy_run(State& s, const End& to, const End& from, std::uint64_t bytes) {
  // What is known of the source is asked first: the two may overlap.
  const bool read_back = from.on_device() && !to.on_device();
  const Answer answer = read_back ? answer_of(s, from, bytes) : Answer::kept;
  keep_as_copied(s, to, from, bytes);
  if (!to.has_bytes()) return answer;
  if (read_back && answer == Answer::zeros) {
    copy_known(s, to, from, bytes);
  } else if (from.has_bytes()) {
    std::memmove(to.at, from.at, bytes);
  } else {
    clear_host(s, to.at, bytes);
  }
  return answer;
}

void count_copy(Ledger& ledger, const End& to, const End& from, std::uint64_t bytes) {
  if (to.on_device() && from.on_device()) {
    ++ledger.copies_in_device;
    ledger.copies_in_device_bytes += bytes;
  } else if (to.on_device()) {
    ++ledger.copies_to_device;
    ledger.copies_to_device_bytes += bytes;
  } else if (from.on_device()) {
    ++ledger.copies_to_host;
    ledger.copies_to_host_bytes += bytes;
  }
}

enum class Fit { whole, past_end, nothing_there };

// Whether so many bytes lie in what begins there: nothing is copied before that is known of all of
// them. Of host memory that CUDA does not know, only what it runs into is seen.
Fit fit(State& s, const void* address, std::uint64_t bytes) {
  auto& ranges = s.memory.ranges;
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (at + bytes < at) return Fit::past_end;
  auto range = find_range(s, address);
  if (range == ranges.end()) {
    if (s.memory.addresses.holds(at)) return Fit::nothing_there;
    const auto next = ranges.lower_bound(at);
    const bool runs_into = next != ranges.end() && next->first < at + bytes &&
                           next->second.kind != MemoryKind::registered;
    return runs_into ? Fit::past_end : Fit::whole;
  }
  // Registered memory is a part of something larger.
  if (range->second.kind == MemoryKind::registered) return Fit::whole;
  auto end = range->first + range->second.bytes;
  while (end < at + bytes) {
    // A tensor in an expandable segment goes on in the next mapping.
    const bool mapping = range->second.kind == MemoryKind::mapping;
    ++range;
    if (!mapping || range == ranges.end() || range->first != end ||
        range->second.kind != MemoryKind::mapping)
      return Fit::past_end;
    end += range->second.bytes;
  }
  return Fit::whole;
}

// The same of both ends.
Fit fit(State& s, const void* to, const void* from, std::uint64_t bytes, DeviceEnds ends) {
  const auto is_unknown = [&](const void* address) {
    return find_range(s, address) == s.memory.ranges.end();
  };
  if ((ends.to && is_unknown(to)) || (ends.from && is_unknown(from))) return Fit::nothing_there;
  return std::max(fit(s, to, bytes), fit(s, from, bytes));
}

// Names the call in the ledger, without the lock.
MemoryResult misfit(const char* what, Fit fit) {
  enter(fit == Fit::past_end ? Fact::copy_past_end : Fact::copy_to_nothing,
        {.function = find_caller().function, .what = what});
  return MemoryResult::invalid_value;
}

struct Outcome {
  bool read_back = false;
  Answer answer = Answer::kept;  // the worst of all runs
};

Outcome copy_locked(State& s, char* to, const char* from, std::uint64_t bytes) {
  Outcome outcome;
  for (std::uint64_t done = 0; done < bytes;) {
    const End target = find_end(s, to + done), source = find_end(s, from + done);
    const auto run = std::min(run_length(target, bytes - done), run_length(source, bytes - done));
    if (done == 0) count_copy(*s.ledger, target, source, bytes);
    outcome.read_back |= source.on_device() && !target.on_device();
    outcome.answer = std::max(outcome.answer, copy_run(s, target, source, run));
    done += run;
  }
  return outcome;
}

// What is copied: see asked_copy_of_rows.
struct Rows {
  const char* what;  // the call, in words
  void* to;
  std::uint64_t to_pitch;
  const void* from;
  std::uint64_t from_pitch, width, height;
  DeviceEnds ends;

  char* target(std::uint64_t row) const { return static_cast<char*>(to) + row * to_pitch; }
  const char* source(std::uint64_t row) const {
    return static_cast<const char*>(from) + row * from_pitch;
  }
};

Rows one_row(void* to, const void* from, std::uint64_t bytes, DeviceEnds ends) {
  return {"a copy", to, bytes, from, bytes, bytes, 1, ends};
}

MemoryResult copy(const Rows& rows) {
  if (!rows.width || !rows.height) return MemoryResult::ok;
  if (!rows.to || !rows.from || rows.to_pitch < rows.width || rows.from_pitch < rows.width)
    return MemoryResult::invalid_value;
  State& s = state();
  Outcome all;
  Fit fits = Fit::whole;
  {
    std::lock_guard lock(s.mutex);
    for (std::uint64_t row = 0; row < rows.height && fits == Fit::whole; ++row)
      fits = fit(s, rows.target(row), rows.source(row), rows.width, rows.ends);
    for (std::uint64_t row = 0; row < rows.height && fits == Fit::whole; ++row) {
      const Outcome one = copy_locked(s, rows.target(row), rows.source(row), rows.width);
      all.read_back |= one.read_back;
      all.answer = std::max(all.answer, one.answer);
    }
  }
  if (fits != Fit::whole) return misfit(rows.what, fits);
  if (!all.read_back) return MemoryResult::ok;
  // Whoever knows values is asked first. Both without the lock: values are computed by PyTorch's
  // operators, and finding names for the call stack may load libraries.
  Answer answers = Answer::kept;
  auto kind = ReadKind::bytes;
  for (std::uint64_t row = 0; row < rows.height; ++row) {
    Answer answer = all.answer;
    kind = ask_reader(rows.target(row), rows.source(row), rows.width, answer);
    answers = std::max(answers, answer);
  }
  enter_read_back(*s.ledger, rows.width * rows.height, answers, kind);
  return MemoryResult::ok;
}

}  // namespace

bool is_whole(const void* address, std::uint64_t bytes, const char* call) {
  State& s = state();
  Fit fits;
  {
    std::lock_guard lock(s.mutex);
    fits = fit(s, address, bytes);
  }
  if (fits != Fit::whole) misfit(call, fits);
  return fits == Fit::whole;
}

MemoryResult copy_bytes(void* to, const void* from, std::uint64_t bytes) {
  return copy(one_row(to, from, bytes, {}));
}

namespace {

void fill_locked(State& s, char* to, std::uint32_t value, unsigned element_bytes,
                 std::uint64_t bytes) {
  for (std::uint64_t done = 0; done < bytes;) {
    const End target = find_end(s, to + done);
    const auto run = run_length(target, bytes - done);
    for (std::uint64_t i = 0; target.has_bytes() && i < run; ++i)
      target.at[i] = static_cast<char>(value >> (8 * ((done + i) % element_bytes)));
    if (target.on_device() && target.range->kept)
      target.range->kept->put(target.offset, run, s.device_work);
    done += run;
  }
}

MemoryResult fill_bytes(void* to, std::uint32_t value, unsigned element_bytes,
                        std::uint64_t count) {
  if (!count) return MemoryResult::ok;
  if (!to || count > ~std::uint64_t{0} / element_bytes) return MemoryResult::invalid_value;
  const auto bytes = count * element_bytes;
  State& s = state();
  Fit fits;
  {
    std::lock_guard lock(s.mutex);
    fits = fit(s, to, bytes);
    // Unlike a copy, a fill of memory that CUDA does not know of is an error.
    if (find_range(s, to) == s.memory.ranges.end()) fits = Fit::nothing_there;
    if (fits == Fit::whole) fill_locked(s, static_cast<char*>(to), value, element_bytes, bytes);
  }
  return fits == Fit::whole ? MemoryResult::ok : misfit("a fill", fits);
}

bool is_left_to_replay(const CopyCall& call, const void* to) {
  if (!capture_of(call.stream)) return false;
  if (!find_place(to).is_on_device()) enter(Fact::captured_copy);
  return true;
}

// Whether values have to follow a write there.
bool is_programs_own(const CopyCall& call, const void* to) {
  return !is_pytorchs(call.code) && find_place(to).is_on_device();
}

void follow_copy(void* to, const void* from, std::uint64_t bytes) {
  if (find_place(from).is_on_device()) return follow_move(to, from, bytes);
  follow_bytes(to, bytes, [&] { return std::string(static_cast<const char*>(from), bytes); });
}

std::string repeated(std::uint32_t value, unsigned element_bytes, std::uint64_t bytes) {
  std::string out(bytes, '\0');
  for (std::uint64_t i = 0; i < bytes; ++i)
    out[i] = static_cast<char>(value >> (8 * (i % element_bytes)));
  return out;
}

MemoryResult asked(const CopyCall& call, const Rows& rows) {
  if (is_left_to_replay(call, rows.to)) return MemoryResult::ok;
  const auto result = copy(rows);
  if (result != MemoryResult::ok || !rows.width || !rows.height || !is_programs_own(call, rows.to))
    return result;
  for (std::uint64_t row = 0; row < rows.height; ++row)
    follow_copy(rows.target(row), rows.source(row), rows.width);
  return result;
}

}  // namespace

MemoryResult asked_copy(const CopyCall& call, void* to, const void* from, std::uint64_t bytes,
                        DeviceEnds ends) {
  return asked(call, one_row(to, from, bytes, ends));
}

MemoryResult asked_copy_of_rows(const CopyCall& call, void* to, std::uint64_t to_pitch,
                                const void* from, std::uint64_t from_pitch, std::uint64_t width,
                                std::uint64_t height, DeviceEnds ends) {
  return asked(call, {"a copy of rows", to, to_pitch, from, from_pitch, width, height, ends});
}

MemoryResult asked_fill(const CopyCall& call, void* to, std::uint32_t value, unsigned element_bytes,
                        std::uint64_t count) {
  if (is_left_to_replay(call, to)) return MemoryResult::ok;
  const auto result = fill_bytes(to, value, element_bytes, count);
  const auto bytes = count * element_bytes;
  if (result == MemoryResult::ok && count && is_programs_own(call, to))
    follow_bytes(to, bytes, [&] { return repeated(value, element_bytes, bytes); });
  return result;
}

}  // namespace peakbench::emulator
