#include "tracer/python_stack.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "interpreter/python_api.h"
#include "interpreter/python_cells.h"
#include "interpreter/python_frames.h"

namespace peakbench::tracer {

using namespace interpreter;
namespace {

struct FrameKey {
  std::int32_t parent;
  PythonFrame place;

  bool operator==(const FrameKey&) const = default;
};

struct FrameHash {
  std::size_t operator()(const FrameKey& key) const {
    auto hash = reinterpret_cast<std::uintptr_t>(key.place.code) >> 4U;
    hash = hash * 31 + static_cast<std::uintptr_t>(key.place.at);
    return (hash * 31 + static_cast<std::uintptr_t>(key.parent)) * 0x9E3779B97F4A7C15ULL;
  }
};

// Guarded by Python's lock. A code object that was seen is kept, so that its address stays its own.
using Frames = std::unordered_map<FrameKey, std::int32_t, FrameHash>;
Frames& seen() {
  static auto* const all = new Frames;
  return *all;
}

std::int32_t file_of(JournalWriter& journal, void* code) {
  const auto file = attribute(code, "co_filename");
  const auto cell = file ? cell_of(file.get()) : "";
  return journal.text(cell.empty() ? utf8_of(file.get(), "?") : cell);
}

std::int32_t function_of(JournalWriter& journal, void* code) {
  return journal.text(utf8_of(attribute(code, "co_name").get(), "?"));
}

constexpr std::size_t kDeepest = 256;  // of what lies further out, nothing is said

std::int32_t stack_with_python(JournalWriter& journal) {
  thread_local std::array<PythonFrame, kDeepest> frames;
  const auto count = python_frames(frames.data(), frames.size());
  std::int32_t parent = -1;
  for (std::size_t i = count; i-- > 0;) {
    const FrameKey key{parent, frames[i]};
    const auto found = seen().find(key);
    if (found != seen().end()) {
      parent = found->second;
      continue;
    }
    python().keep(key.place.code);
    parent = journal.frame(parent, file_of(journal, key.place.code),
                           function_of(journal, key.place.code), std::max(line_of(key.place), 0));
    seen().emplace(key, parent);
  }
  return parent;
}

}  // namespace

std::int32_t python_stack(JournalWriter& journal) {
  const Python& p = python();
  if (!p.knows_frames() || !p.is_initialized() || python_is_ending()) return -1;
  if (p.thread() == nullptr) return -1;  // a thread of LibTorch's own
  const int held = p.ensure();
  const auto stack = stack_with_python(journal);
  p.release(held);
  return stack;
}

}  // namespace peakbench::tracer
