#include "core/python_place.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench::emulator {
namespace {

// Of Python's C interface (its stable part, but for the frames), found in the process itself: the
// stand-ins are built without Python and run under every version.
struct Python {
  int (*is_initialized)();
  int (*is_finalizing)();
  int (*is_held)();
  int (*ensure)();
  void (*release)(int);
  void* (*thread_frame)(void*);
  void* (*this_thread)();
  void* (*back)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  void* (*attribute)(void*, const char*);
  const char* (*utf8)(void*);
  void (*drop)(void*);
  void (*clear_error)();
  // From 3.11 on.
  int (*instruction)(void*);
  void* (*call)(void*, const char*, const char*, ...);
  void* (*next)(void*);
  void* (*item)(void*, std::ptrdiff_t);
  long (*number)(void*);

  bool whole() const {
    return is_initialized && ensure && release && thread_frame && this_thread && back && code &&
           line && attribute && utf8 && drop && clear_error;
  }
  bool knows_columns() const { return instruction && call && next && item && number; }
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
    look_up(p.thread_frame, "PyThreadState_GetFrame");
    look_up(p.this_thread, "PyThreadState_Get");
    look_up(p.back, "PyFrame_GetBack");
    look_up(p.code, "PyFrame_GetCode");
    look_up(p.line, "PyFrame_GetLineNumber");
    look_up(p.attribute, "PyObject_GetAttrString");
    look_up(p.utf8, "PyUnicode_AsUTF8");
    look_up(p.drop, "Py_DecRef");
    look_up(p.clear_error, "PyErr_Clear");
    look_up(p.instruction, "PyFrame_GetLasti");
    look_up(p.call, "PyObject_CallMethod");
    look_up(p.next, "PyIter_Next");
    look_up(p.item, "PyTuple_GetItem");
    look_up(p.number, "PyLong_AsLong");
    return p;
  }();
  return found;
}

bool is_of_pytorch(const char* file) {
  return std::strstr(file, "/site-packages/torch/") || std::strstr(file, "/dist-packages/torch/") ||
         std::strstr(file, "/lib/peakbench/") || file[0] == '<';
}

struct Position {
  long line = -1, column = -1;
};

// Of the expression that the frame evaluates. An instruction takes two bytes.
Position position_of(const Python& p, void* frame, void* code) {
  Position found;
  void* const positions = p.call(code, "co_positions", nullptr);
  void* position = nullptr;
  for (int left = positions ? p.instruction(frame) / 2 : -1; left >= 0; --left) {
    if (position) p.drop(position);
    position = p.next(positions);
    if (!position) break;
  }
  if (position) {  // line, last line, column, last column
    found = {p.number(p.item(position, 0)), p.number(p.item(position, 2))};
    p.drop(position);
  }
  if (positions) p.drop(positions);
  p.clear_error();
  return found;
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// int(, math.floor( and their like.
constexpr std::string_view kConversions[] = {"int(", "floor(", "ceil(", "trunc("};

// What begins at the column is such a call, or the first thing in one.
bool makes_integer_at(std::string_view line, std::size_t column) {
  const auto before = line.substr(0, column);
  auto called = line.substr(column);
  if (called.starts_with("math.")) called.remove_prefix(5);
  for (const auto conversion : kConversions) {
    if (called.starts_with(conversion)) return true;
    if (!before.ends_with(conversion)) continue;
    const auto ahead = before.substr(0, before.size() - conversion.size());
    if (ahead.empty() || !is_part_of_name(ahead.back())) return true;
  }
  return false;
}

// The lines of the file that was asked for last: a program reads at many of them.
std::string line_of(const char* file, long number) {
  static std::mutex mutex;
  static auto* const lines = new std::vector<std::string>;
  static auto* const of_file = new std::string;
  const std::lock_guard lock(mutex);
  if (*of_file != file) {
    *of_file = file;
    lines->clear();
    std::ifstream source(file);
    for (std::string line; std::getline(source, line);) lines->push_back(std::move(line));
  }
  const auto at = static_cast<std::size_t>(number) - 1;
  return number > 0 && at < lines->size() ? lines->at(at) : "";
}

bool may_make_integer(std::string_view line) {
  return std::ranges::any_of(kConversions, [&](std::string_view conversion) {
    return line.find(conversion) != std::string_view::npos;
  });
}

PythonUse find_use(const Python& p, void* frame, void* code, const char* file) {
  const long number = p.line(frame);
  const auto line = line_of(file, number);
  if (line.empty()) return {};
  PythonUse use;
  if (!p.knows_columns() || !may_make_integer(line)) return use;
  const auto at = position_of(p, frame, code);
  const auto column = static_cast<std::size_t>(at.column);
  use.makes_integer =
      at.line == number && at.column >= 0 && column < line.size() && makes_integer_at(line, column);
  return use;
}

// A loop reads at the same place again and again.
PythonUse use_of(const Python& p, void* frame, void* code, const char* file) {
  static std::mutex mutex;  // never held while the interpreter may run something
  static auto* const seen = new std::map<std::string, PythonUse>;
  const int instruction = p.instruction ? p.instruction(frame) : -1;
  const std::string key =
      std::string(file) + ":" + std::to_string(p.line(frame)) + ":" + std::to_string(instruction);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = seen->find(key); found != seen->end()) return found->second;
  }
  const auto use = find_use(p, frame, code, file);
  const std::lock_guard lock(mutex);
  return (*seen)[key] = use;
}

// Writes the frame's place; whether it is the program's own.
bool describe(const Python& p, void* frame, char* out, std::size_t size, PythonUse& use) {
  void* code = p.code(frame);
  void* name = code ? p.attribute(code, "co_filename") : nullptr;
  const char* file = name ? p.utf8(name) : nullptr;
  if (!file) p.clear_error();
  if (file) {
    const char* slash = std::strrchr(file, '/');
    std::snprintf(out, size, "%s:%d", slash ? slash + 1 : file, p.line(frame));
  }
  const bool own = file && !is_of_pytorch(file);
  if (own) use = use_of(p, frame, code, file);
  if (name) p.drop(name);
  if (code) p.drop(code);
  return own;
}

PythonUse walk(const Python& p, char* out, std::size_t size) {
  PythonUse use;
  void* frame = p.thread_frame(p.this_thread());
  while (frame) {
    const bool own = describe(p, frame, out, size, use);
    void* outer = own ? nullptr : p.back(frame);
    p.drop(frame);
    frame = outer;
  }
  return use;
}

}  // namespace

bool holds_python() {
  const Python& p = python();
  return p.is_held && p.is_initialized && p.is_initialized() && p.is_held() == 1;
}

bool python_is_ending() {
  const auto is_finalizing = python().is_finalizing;
  return is_finalizing && is_finalizing();
}

PythonUse find_python_place(char* out, std::size_t size) {
  out[0] = '\0';
  const Python& p = python();
  if (!p.whole() || !p.is_initialized()) return {};
  if (python_is_ending()) return {};
  const int held = p.ensure();
  const auto use = walk(p, out, size);
  p.release(held);
  return use;
}

}  // namespace peakbench::emulator
