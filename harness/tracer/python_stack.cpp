#include "tracer/python_stack.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace peakbench::tracer {
namespace {

// Of Python's C interface, found in the process itself: one library serves every version.
struct Python {
  int (*is_initialized)();
  int (*is_finalizing)();
  int (*is_held)();
  int (*ensure)();
  void (*release)(int);
  void* (*thread)();
  void* (*thread_frame)(void*);
  void* (*back)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  int (*instruction)(void*);  // from 3.11 on
  void* (*attribute)(void*, const char*);
  const char* (*utf8)(void*);
  void (*keep)(void*);
  void (*drop)(void*);
  void (*clear_error)();

  bool whole() const {
    return is_initialized && is_held && ensure && release && thread && thread_frame && back &&
           code && line && attribute && utf8 && keep && drop && clear_error;
  }
};

template <typename Function>
void look_up(Function& out, const char* name) {
  out = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

const Python& python() {
  static const Python found = [] {
    Python p{};
    look_up(p.is_initialized, "Py_IsInitialized");
    look_up(p.is_finalizing, "Py_IsFinalizing");
    if (!p.is_finalizing) look_up(p.is_finalizing, "_Py_IsFinalizing");
    look_up(p.is_held, "PyGILState_Check");
    look_up(p.ensure, "PyGILState_Ensure");
    look_up(p.release, "PyGILState_Release");
    look_up(p.thread, "PyGILState_GetThisThreadState");
    look_up(p.thread_frame, "PyThreadState_GetFrame");
    look_up(p.back, "PyFrame_GetBack");
    look_up(p.code, "PyFrame_GetCode");
    look_up(p.line, "PyFrame_GetLineNumber");
    look_up(p.instruction, "PyFrame_GetLasti");
    look_up(p.attribute, "PyObject_GetAttrString");
    look_up(p.utf8, "PyUnicode_AsUTF8");
    look_up(p.keep, "Py_IncRef");
    look_up(p.drop, "Py_DecRef");
    look_up(p.clear_error, "PyErr_Clear");
    return p;
  }();
  return found;
}

struct Instruction {
  void* code;
  int at;  // the instruction, or the line where Python does not say

  bool operator==(const Instruction&) const = default;
};

struct FrameKey {
  std::int32_t parent;
  Instruction place;

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

std::int32_t text_of(JournalWriter& journal, void* code, const char* attribute) {
  const Python& p = python();
  void* const text = p.attribute(code, attribute);
  const char* const utf8 = text ? p.utf8(text) : nullptr;
  if (!utf8) p.clear_error();
  const auto number = journal.text(utf8 ? utf8 : "?");
  if (text) p.drop(text);
  return number;
}

constexpr std::size_t kDeepest = 256;  // of what lies further out, nothing is said

struct Walked {
  std::array<Instruction, kDeepest> places;
  std::array<int, kDeepest> lines;
  std::size_t count = 0;
};

// The innermost first. Frames are only held for as long as they are looked at: what a frame keeps
// alive is the program's memory.
void walk(const Python& p, Walked& out) {
  void* frame = p.thread_frame(p.thread());
  while (frame != nullptr) {
    if (out.count < kDeepest) {
      void* const code = p.code(frame);
      const int line = p.instruction ? -1 : p.line(frame);
      out.places[out.count] = {code, p.instruction ? p.instruction(frame) : line};
      out.lines[out.count++] = line;
      p.drop(code);
    }
    void* const outer = p.back(frame);
    p.drop(frame);
    frame = outer;
  }
}

// Of a frame that is new: found again by its depth, as frames are not held.
int line_at(const Python& p, std::size_t depth) {
  void* frame = p.thread_frame(p.thread());
  for (; depth > 0 && frame != nullptr; --depth) {
    void* const outer = p.back(frame);
    p.drop(frame);
    frame = outer;
  }
  const int line = frame ? p.line(frame) : 0;
  if (frame) p.drop(frame);
  return line;
}

std::int32_t stack_with_python(JournalWriter& journal) {
  const Python& p = python();
  thread_local Walked walked;
  walked.count = 0;
  walk(p, walked);
  std::int32_t parent = -1;
  for (std::size_t i = walked.count; i-- > 0;) {
    const FrameKey key{parent, walked.places[i]};
    const auto found = seen().find(key);
    if (found != seen().end()) {
      parent = found->second;
      continue;
    }
    p.keep(key.place.code);
    const int line = walked.lines[i] >= 0 ? walked.lines[i] : line_at(p, i);
    parent = journal.frame(parent, text_of(journal, key.place.code, "co_filename"),
                           text_of(journal, key.place.code, "co_name"), std::max(line, 0));
    seen().emplace(key, parent);
  }
  return parent;
}

}  // namespace

bool holds_python() {
  const Python& p = python();
  return p.whole() && p.is_initialized() && p.is_held() == 1 && p.thread() != nullptr;
}

std::int32_t python_stack(JournalWriter& journal) {
  const Python& p = python();
  if (!p.whole() || !p.is_initialized()) return -1;
  if (p.is_finalizing && p.is_finalizing()) return -1;
  if (p.thread() == nullptr) return -1;  // a thread of LibTorch's own
  const int held = p.ensure();
  const auto stack = stack_with_python(journal);
  p.release(held);
  return stack;
}

}  // namespace peakbench::tracer
