#include "interpreter/python_api.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

namespace peakbench::interpreter {
namespace {

template <typename Function>
void look_up(Function& out, const char* name) {
  out = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

Python look_up_all() {
  Python p{};
  look_up(p.is_initialized, "Py_IsInitialized");
  look_up(p.is_finalizing, "Py_IsFinalizing");
  if (!p.is_finalizing) look_up(p.is_finalizing, "_Py_IsFinalizing");
  look_up(p.is_held, "PyGILState_Check");
  look_up(p.ensure, "PyGILState_Ensure");
  look_up(p.release, "PyGILState_Release");
  look_up(p.thread, "PyGILState_GetThisThreadState");
  look_up(p.keep, "Py_IncRef");
  look_up(p.drop, "Py_DecRef");
  look_up(p.clear_error, "PyErr_Clear");
  look_up(p.fetch_error, "PyErr_Fetch");
  look_up(p.restore_error, "PyErr_Restore");
  look_up(p.thread_frame, "PyThreadState_GetFrame");
  look_up(p.back, "PyFrame_GetBack");
  look_up(p.code, "PyFrame_GetCode");
  look_up(p.line, "PyFrame_GetLineNumber");
  look_up(p.instruction, "PyFrame_GetLasti");
  look_up(p.line_at, "PyCode_Addr2Line");
  look_up(p.code_type, "PyCode_Type");
  look_up(p.attribute, "PyObject_GetAttrString");
  look_up(p.is_true, "PyObject_IsTrue");
  look_up(p.is_instance_of, "PyType_IsSubtype");
  look_up(p.differs, "PyObject_RichCompareBool");
  look_up(p.text, "PyObject_Str");
  look_up(p.utf8, "PyUnicode_AsUTF8");
  look_up(p.number, "PyLong_AsUnsignedLongLong");
  look_up(p.call, "PyObject_Vectorcall");
  look_up(p.call_with, "PyObject_CallFunctionObjArgs");
  look_up(p.call_format, "PyObject_CallFunction");
  look_up(p.iterator, "PyObject_GetIter");
  look_up(p.next, "PyIter_Next");
  look_up(p.new_reference, "PyWeakref_NewRef");
  look_up(p.referent, "PyWeakref_GetObject");
  look_up(p.strong_referent, "PyWeakref_GetRef");
  look_up(p.dict_next, "PyDict_Next");
  look_up(p.dict_item, "PyDict_GetItemString");
  look_up(p.new_dict, "PyDict_New");
  look_up(p.clear_dict, "PyDict_Clear");
  look_up(p.dict_at, "PyDict_GetItem");
  look_up(p.of_system, "PySys_GetObject");
  look_up(p.list_size, "PyList_Size");
  look_up(p.list_item, "PyList_GetItem");
  look_up(p.tuple_size, "PyTuple_Size");
  look_up(p.tuple_item, "PyTuple_GetItem");
  look_up(p.dict_type, "PyDict_Type");
  look_up(p.list_type, "PyList_Type");
  look_up(p.tuple_type, "PyTuple_Type");
  look_up(p.function_type, "PyFunction_Type");
  look_up(p.none, "_Py_NoneStruct");
  look_up(p.disable_collector, "PyGC_Disable");
  look_up(p.enable_collector, "PyGC_Enable");
  look_up(p.interpreter, "PyInterpreterState_Get");
  look_up(p.compile, "Py_CompileString");
  look_up(p.evaluate, "PyEval_EvalCode");
  look_up(p.evaluator, "_PyInterpreterState_GetEvalFrameFunc");
  look_up(p.set_evaluator, "_PyInterpreterState_SetEvalFrameFunc");
  look_up(p.plain_evaluator, "_PyEval_EvalFrameDefault");
  return p;
}

}  // namespace

const Python& python() {
  static const Python found = look_up_all();
  return found;
}

bool holds_python() {
  const Python& p = python();
  return p.is_held && p.is_initialized && p.is_initialized() && p.is_held() == 1;
}

bool python_is_ending() {
  const auto is_finalizing = python().is_finalizing;
  return is_finalizing && is_finalizing();
}

bool is_a(void* object, void* type) {
  void* const own = type_of(object);
  return own == type || python().is_instance_of(own, type) != 0;
}

std::string utf8_of(void* object, const char* otherwise) {
  const char* const found = object ? python().utf8(object) : nullptr;
  if (found) return found;
  python().clear_error();
  return otherwise;
}

namespace {

// struct gc_generation of Include/internal/pycore_gc.h (pycore_interp_structs.h), three of them.
struct Generation {
  void *next, *previous;
  int threshold, count;
};
constexpr std::size_t kLooked = std::size_t{1} << 20;  // of the interpreter's state

int* count_place = nullptr;

// As far as there is memory.
std::vector<char> bytes_from(void* start) {
  std::vector<char> bytes(kLooked);
  const iovec here{bytes.data(), bytes.size()};
  std::vector<iovec> there;
  constexpr std::size_t kPage = 4096;
  auto* const from = static_cast<char*>(start);
  const auto in_page = reinterpret_cast<std::uintptr_t>(from) % kPage;
  there.push_back({from, kPage - in_page});
  for (std::size_t at = kPage - in_page; at + kPage <= kLooked; at += kPage)
    there.push_back({from + at, kPage});
  const auto got = process_vm_readv(getpid(), &here, 1, there.data(), there.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

void find_collector_count(int first, int second, int third) {
  const Python& p = python();
  if (!p.interpreter || !p.disable_collector || !p.enable_collector) return;
  auto* const state = static_cast<char*>(p.interpreter());
  const auto bytes = bytes_from(state);
  for (std::size_t at = 0; at + 3 * sizeof(Generation) <= bytes.size(); at += sizeof(void*)) {
    std::array<Generation, 3> generations;
    std::memcpy(generations.data(), bytes.data() + at, sizeof generations);
    if (generations[0].threshold != first || generations[1].threshold != second ||
        generations[2].threshold != third)
      continue;
    count_place = &reinterpret_cast<Generation*>(state + at)->count;
    return;
  }
}

void set_collector_count(int count) {
  if (count_place) *count_place = count;
}

CollectorHeld::CollectorHeld()
    : ran_(python().disable_collector && python().disable_collector() != 0) {}
CollectorHeld::~CollectorHeld() {
  if (ran_) python().enable_collector();
}

UncountedObjects::UncountedObjects() : count_(count_place ? *count_place : 0) {}
UncountedObjects::~UncountedObjects() { set_collector_count(count_); }

}  // namespace peakbench::interpreter
