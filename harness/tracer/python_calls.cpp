// What the Python side calls (python/peakbench_tracing.py): plain C, and for what is called for
// every module, functions of Python's own kind, which cost a tenth of ctypes'.
#include <dlfcn.h>

#include <cstdlib>

#include "record/cpu_allocator.h"
#include "tracer/tracer.h"

namespace peakbench::tracer {
namespace {

// Of Python's stable interface (methodobject.h).
struct MethodDef {
  const char* name;
  void* (*call)(void* self, void* argument);
  int flags;
  const char* doc;
};
constexpr int kOneArgument = 0x0008;  // METH_O

long number_of(void* object) {
  static const auto convert =
      reinterpret_cast<long (*)(void*)>(dlsym(RTLD_DEFAULT, "PyLong_AsLong"));
  return convert(object);
}
void* with_reference(void* object) {
  static const auto keep = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "Py_IncRef"));
  keep(object);
  return object;
}

void* enter(void*, void* module) {
  Tracer::one().enter_module(static_cast<std::int32_t>(number_of(module)));
  return with_reference(module);
}
void* leave(void*, void* module) {
  Tracer::one().exit_module();
  return with_reference(module);
}
// value * 256 + mark
void* mark(void*, void* what) {
  const auto number = number_of(what);
  Tracer::one().mark(static_cast<Mark>(number % 256), static_cast<std::int32_t>(number / 256));
  return with_reference(what);
}

MethodDef methods[] = {{"enter", enter, kOneArgument, nullptr},
                       {"leave", leave, kOneArgument, nullptr},
                       {"mark", mark, kOneArgument, nullptr}};

}  // namespace
}  // namespace peakbench::tracer

#define PEAKBENCH_EXPORT extern "C" __attribute__((visibility("default")))
using peakbench::tracer::Tracer;

// 1: recording. The journal is as the environment says.
PEAKBENCH_EXPORT int peakbench_tracer_start(int rank) {
  using namespace peakbench::tracer;
  const char* folder = std::getenv(kFolderVariable);
  const char* times = std::getenv(kTimesVariable);
  const char* most = std::getenv(kMostVariable);
  if (!folder || !Tracer::one().open(folder, rank, times && *times == '1',
                                     most ? std::strtoull(most, nullptr, 10) : 0))
    return 0;
  listen_to_operators();
  const char* cpu = std::getenv(kCpuVariable);
  if (cpu && *cpu == '1')
    peakbench::record::trace_cpu_allocator(Tracer::one(), 0, peakbench::record::CpuMemory::kDevice);
  return 1;
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
                            static_cast<peakbench::tracer::RangeSource>(source));
}
PEAKBENCH_EXPORT void peakbench_tracer_end_range(std::uint64_t number) {
  Tracer::one().end_range(number);
}

PEAKBENCH_EXPORT int peakbench_tracer_text(const char* text) {
  return Tracer::one().journal().text(text);
}
PEAKBENCH_EXPORT void peakbench_tracer_name(std::uint64_t address, int role, int name, int shape,
                                            int dtype) {
  Tracer::one().name(address, static_cast<peakbench::trace::Role>(role), name, shape, dtype);
}
// A new reference to one of the functions above; null for another name.
PEAKBENCH_EXPORT void* peakbench_tracer_function(const char* name) {
  using namespace peakbench::tracer;
  static const auto make = reinterpret_cast<void* (*)(MethodDef*, void*, void*)>(
      dlsym(RTLD_DEFAULT, "PyCFunction_NewEx"));
  for (auto& method : methods)
    if (std::string_view(method.name) == name) return make(&method, nullptr, nullptr);
  return nullptr;
}
