#include "recording/python_calls.h"

#include <ATen/core/grad_mode.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <unordered_map>

#include "interpreter/python_api.h"
#include "interpreter/python_frames.h"
#include "recording/cpu_allocator.h"
#include "recording/storage_names.h"
#include "recording/tracer.h"

namespace peakbench::recording {

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

// What Python calls: for every call of a module a function of C's, which makes no object of
// Python's; for what is rarer plain C, by ctypes (python/peakbench_tracing.py).

namespace {

using Arguments = void* const*;
using Vectorcall = void* (*)(void* callable, Arguments, std::size_t, void* names);
constexpr std::size_t kCounted = ~(std::size_t{1} << 63U);  // PY_VECTORCALL_ARGUMENTS_OFFSET

// Module.__call__ as PyTorch has it.
void* original_call = nullptr;

thread_local int calls = 0;         // of modules that this thread is in
thread_local bool told_of = false;  // of the outermost, that it began

void* none() {
  python().keep(python().none);
  return python().none;
}

constexpr std::size_t kOuterFunctions = 64;  // that may be generate()

bool is_generating() {
  std::array<PythonFrame, kOuterFunctions> frames;
  const auto count = python_frames(frames.data(), frames.size());
  return std::any_of(frames.begin(), frames.begin() + count, [](const PythonFrame& frame) {
    return utf8_of(attribute(frame.code, "co_name").get(), "") == "generate";
  });
}

bool is_training(void* module) {
  const auto training = attribute(module, "training");
  return training && python().is_true(training.get()) == 1 && at::GradMode::is_enabled();
}

void enter(void* module) {
  const CollectorHeld held;
  const NoTorchFunction unseen;
  const bool is_outermost = calls++ == 0;
  const auto number = number_of_module(module, is_outermost);
  if (is_outermost && name_model(module)) {  // a loss, an activation has no parameter
    told_of = true;
    Tracer::one().mark(is_training(module) ? Mark::kForwardBegins
                       : is_generating()   ? Mark::kGenerationBegins
                                           : Mark::kEvaluationBegins,
                       0);
  }
  Tracer::one().enter_module(number);
}

void leave(Arguments arguments, std::size_t count) {
  Tracer::one().exit_module();
  if (--calls > 0) return;
  const CollectorHeld held;
  const NoTorchFunction unseen;
  for (std::size_t i = 1; i < count; ++i) name_inputs(arguments[i]);
  if (std::exchange(told_of, false)) Tracer::one().mark(Mark::kCallEnds, 0);
}

// Stands in Module.__call__. The result may be an error, which is the program's.
void* call_module(void*, Arguments arguments, std::size_t count, void* names) {
  const Python& p = python();
  const auto given = count & kCounted;
  if (given == 0 || !Tracer::one().is_recording())
    return p.call(original_call, arguments, count, names);
  enter(arguments[0]);
  void* const result = p.call(original_call, arguments, count, names);
  void *kind = nullptr, *value = nullptr, *trace = nullptr;
  if (!result) p.fetch_error(&kind, &value, &trace);
  const auto by_name = names ? static_cast<std::size_t>(p.tuple_size(names)) : 0;
  leave(arguments, given + (result ? by_name : 0));
  if (!result) p.restore_error(kind, value, trace);
  return result;
}

// Of what is marked as long as it runs: the function, which is `self`.
template <Mark begins, Mark ends>
void* call_marked(void* self, Arguments arguments, std::size_t count, void* names) {
  Tracer::one().mark(begins, 0);
  void* const result = python().call(self, arguments, count, names);
  Tracer::one().mark(ends, 0);
  return result;
}

void* mark(void*, void* what) {
  Tracer::one().mark(static_cast<Mark>(python().number(what)), 0);
  return none();
}

void* before_update(void*, void* optimizer) {
  const CollectorHeld held;
  const NoTorchFunction unseen;
  name_updated();  // of a step that raised
  Tracer::one().mark(Mark::kUpdateBegins, name_before_update(optimizer));
  return none();
}

void* after_update(void*, void*) {
  const CollectorHeld held;
  const NoTorchFunction unseen;
  Tracer::one().mark(Mark::kUpdateEnds, 0);
  name_updated();
  return none();
}

// Of Python's stable interface (methodobject.h).
struct MethodDef {
  const char* name;
  void* call;
  int flags;
  const char* doc;
};
constexpr int kOneArgument = 0x0008, kFast = 0x0080, kKeywords = 0x0002;

template <typename Function>
MethodDef method(const char* name, Function* call, int flags) {
  return {name, reinterpret_cast<void*>(call), flags, nullptr};
}

MethodDef methods[] = {
    method("call", call_module, kFast | kKeywords),
    method("mark", mark, kOneArgument),
    method("before_update", before_update, kOneArgument),
    method("after_update", after_update, kOneArgument),
    method("backward", call_marked<Mark::kBackwardBegins, Mark::kBackwardEnds>, kFast | kKeywords),
};

}  // namespace
}  // namespace peakbench::recording

#define PEAKBENCH_EXPORT extern "C" __attribute__((visibility("default")))
using peakbench::recording::Tracer;

// 1: recording. The journal is as the environment says.
PEAKBENCH_EXPORT int peakbench_tracer_start() {
  using namespace peakbench::recording;
  const char* folder = std::getenv(kFolderVariable);
  const char* times = std::getenv(kTimesVariable);
  const char* most = std::getenv(kMostVariable);
  if (!folder || !Tracer::one().open(folder, times && *times == '1',
                                     most ? std::strtoull(most, nullptr, 10) : 0))
    return 0;
  listen_to_operators();
  const char* cpu = std::getenv(kCpuVariable);
  if (cpu && *cpu == '1')
    peakbench::recording::trace_cpu_allocator(Tracer::one(), 0,
                                              peakbench::recording::CpuMemory::kDevice);
  return 1;
}

PEAKBENCH_EXPORT void peakbench_tracer_join_group(int rank, int ranks) {
  Tracer::one().join_group(rank, ranks);
}

// nullptr, or why the card's allocator cannot be listened to.
PEAKBENCH_EXPORT const char* peakbench_tracer_attach_cuda() {
  static std::string problem;
  try {
    Tracer::one().attach_cuda();
    return nullptr;
  } catch (const std::exception& error) {
    problem = error.what();
    return problem.c_str();
  }
}

// The number that it ends by.
PEAKBENCH_EXPORT std::uint64_t peakbench_tracer_begin_range(const char* name, int source) {
  auto& tracer = Tracer::one();
  return tracer.begin_range(tracer.journal().text(name),
                            static_cast<peakbench::recording::RangeSource>(source));
}
PEAKBENCH_EXPORT void peakbench_tracer_end_range(std::uint64_t number) {
  Tracer::one().end_range(number);
}

PEAKBENCH_EXPORT void peakbench_tracer_know(void* tensor, void* parameter, void* module,
                                            void* parts_of) {
  peakbench::recording::set_python_side({tensor, parameter, module, parts_of});
}

// Module.__call__ is `original` for the program and for PyTorch's compiler; `called`, a Python
// function with the same effect, is what a module's call runs, by a function of C's.
PEAKBENCH_EXPORT void peakbench_tracer_watch_calls(void* called, void* original) {
  using namespace peakbench::recording;
  python().keep(original_call = original);
  const auto set = reinterpret_cast<void (*)(void*, Vectorcall)>(
      dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall"));
  if (set) return set(called, call_module);  // from 3.12 on
  // PyTypeObject::tp_vectorcall_offset (Include/cpython/object.h, the same in every version).
  constexpr std::size_t kOffsetAt = 7 * sizeof(void*);
  const auto at =
      *reinterpret_cast<std::ptrdiff_t*>(static_cast<char*>(python().function_type) + kOffsetAt);
  *reinterpret_cast<Vectorcall*>(static_cast<char*>(called) + at) = call_module;
}

// The state of an optimizer whose step was the last, and raised.
PEAKBENCH_EXPORT void peakbench_tracer_finish() { peakbench::recording::name_updated(); }

PEAKBENCH_EXPORT void peakbench_tracer_find_count(int first, int second, int third) {
  peakbench::recording::find_collector_count(first, second, third);
}
PEAKBENCH_EXPORT void peakbench_tracer_set_count(int count) {
  peakbench::recording::set_collector_count(count);
}

// A new reference to one of the functions above; null for another name.
PEAKBENCH_EXPORT void* peakbench_tracer_function(const char* name, void* self) {
  using namespace peakbench::recording;
  static const auto make = reinterpret_cast<void* (*)(MethodDef*, void*, void*)>(
      dlsym(RTLD_DEFAULT, "PyCFunction_NewEx"));
  for (auto& method : methods)
    if (std::string_view(method.name) == name) return make(&method, self, nullptr);
  return nullptr;
}
