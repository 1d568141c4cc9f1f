#include "core/python_place.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

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

  bool whole() const {
    return is_initialized && ensure && release && thread_frame && this_thread && back && code &&
           line && attribute && utf8 && drop && clear_error;
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
    look_up(p.thread_frame, "PyThreadState_GetFrame");
    look_up(p.this_thread, "PyThreadState_Get");
    look_up(p.back, "PyFrame_GetBack");
    look_up(p.code, "PyFrame_GetCode");
    look_up(p.line, "PyFrame_GetLineNumber");
    look_up(p.attribute, "PyObject_GetAttrString");
    look_up(p.utf8, "PyUnicode_AsUTF8");
    look_up(p.drop, "Py_DecRef");
    look_up(p.clear_error, "PyErr_Clear");
    return p;
  }();
  return found;
}

bool is_of_pytorch(const char* file) {
  return std::strstr(file, "/site-packages/torch/") || std::strstr(file, "/dist-packages/torch/") ||
         file[0] == '<';
}

// Writes the frame's place; whether it is the program's own.
bool describe(const Python& p, void* frame, char* out, std::size_t size) {
  void* code = p.code(frame);
  void* name = code ? p.attribute(code, "co_filename") : nullptr;
  const char* file = name ? p.utf8(name) : nullptr;
  if (!file) p.clear_error();
  if (file) {
    const char* slash = std::strrchr(file, '/');
    std::snprintf(out, size, "%s:%d", slash ? slash + 1 : file, p.line(frame));
  }
  const bool own = file && !is_of_pytorch(file);
  if (name) p.drop(name);
  if (code) p.drop(code);
  return own;
}

void walk(const Python& p, char* out, std::size_t size) {
  void* frame = p.thread_frame(p.this_thread());
  while (frame) {
    const bool own = describe(p, frame, out, size);
    void* outer = own ? nullptr : p.back(frame);
    p.drop(frame);
    frame = outer;
  }
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

void find_python_place(char* out, std::size_t size) {
  out[0] = '\0';
  const Python& p = python();
  if (!p.whole() || !p.is_initialized()) return;
  if (python_is_ending()) return;
  const int held = p.ensure();
  walk(p, out, size);
  p.release(held);
}

}  // namespace peakbench::emulator
