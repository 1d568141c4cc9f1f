#include "core/copy_calls.h"

#include <string>

#include "core/exchange.h"
#include "core/own_ledger.h"
#include "core/pytorch.h"
#include "core/streams.h"

namespace peakbench::emulator {
namespace {

bool is_on_device(const void* address) {
  const auto kind = find_place(address).kind;
  return kind == MemoryKind::device || kind == MemoryKind::mapping;
}

bool is_left_to_replay(const CopyCall& call, const void* to) {
  if (!capture_of(call.stream)) return false;
  if (!is_on_device(to)) enter(Fact::captured_copy);
  return true;
}

// Whether values have to follow a write there.
bool is_programs_own(const CopyCall& call, const void* to) {
  return !is_pytorchs(call.code) && is_on_device(to);
}

void follow_copy(void* to, const void* from, std::uint64_t bytes) {
  if (is_on_device(from)) return follow_move(to, from, bytes);
  follow_bytes(to, bytes, [&] { return std::string(static_cast<const char*>(from), bytes); });
}

std::string repeated(std::uint32_t value, unsigned element_bytes, std::uint64_t bytes) {
  std::string out(bytes, '\0');
  for (std::uint64_t i = 0; i < bytes; ++i)
    out[i] = static_cast<char>(value >> (8 * (i % element_bytes)));
  return out;
}

}  // namespace

MemoryResult asked_copy(const CopyCall& call, void* to, const void* from, std::uint64_t bytes,
                        DeviceEnds ends) {
  if (is_left_to_replay(call, to)) return MemoryResult::ok;
  const auto result = copy_bytes(to, from, bytes, ends);
  if (result == MemoryResult::ok && bytes && is_programs_own(call, to))
    follow_copy(to, from, bytes);
  return result;
}

MemoryResult asked_copy_of_rows(const CopyCall& call, void* to, std::uint64_t to_pitch,
                                const void* from, std::uint64_t from_pitch, std::uint64_t width,
                                std::uint64_t height, DeviceEnds ends) {
  if (is_left_to_replay(call, to)) return MemoryResult::ok;
  const auto result = copy_rows(to, to_pitch, from, from_pitch, width, height, ends);
  if (result != MemoryResult::ok || !width || !height || !is_programs_own(call, to)) return result;
  for (std::uint64_t row = 0; row < height; ++row)
    follow_copy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  return result;
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
