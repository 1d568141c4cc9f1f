// NVRTC: source text goes in and is not compiled; what comes out is a module that loads and does
// nothing. Errors in the source are therefore not found.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/entry.h"

using namespace peakbench::emulator;

namespace {

constexpr int kInvalidProgram = 4;
constexpr char kPtx[] =
    "// a module of an emulated card\n.version 8.0\n.target sm_75\n.address_size 64\n";

struct Program {
  std::unordered_map<std::string, std::string>
      names;  // expression -> lowered name; addresses stay valid
};

struct Programs {
  std::mutex mutex;
  std::unordered_map<void*, Program> known;
};

Programs& programs() {
  static auto* const programs = new Programs;
  return *programs;
}

template <typename Work>
int with(void* program, Work&& work) {
  std::lock_guard lock(programs().mutex);
  auto found = programs().known.find(program);
  if (found == programs().known.end()) return kInvalidProgram;
  work(found->second);
  return kSuccess;
}

int code_size(void* program, std::size_t* out) {
  return with(program, [&](Program&) { *out = sizeof kPtx; });
}

int code(void* program, char* out) {
  return with(program, [&](Program&) { std::memcpy(out, kPtx, sizeof kPtx); });
}

}  // namespace

PEAKBENCH_ENTRY int nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return kNowhere;
  *major = PEAKBENCH_CUDA_MAJOR;
  *minor = cuda_version(PEAKBENCH_CUDA_MAJOR) % 1000 / 10;
  return kSuccess;
}

PEAKBENCH_ENTRY int nvrtcCreateProgram(void** out, const char*, const char*, int,
                                       const char* const*, const char* const*) {
  if (const int status = give_handle(out); status != kSuccess) return status;
  std::lock_guard lock(programs().mutex);
  programs().known[*out] = {};
  return kSuccess;
}

PEAKBENCH_ENTRY int nvrtcDestroyProgram(void** program) {
  if (!program) return kInvalidProgram;
  std::lock_guard lock(programs().mutex);
  const bool known = programs().known.erase(*program);
  *program = nullptr;
  return known ? kSuccess : kInvalidProgram;
}

PEAKBENCH_ENTRY int nvrtcCompileProgram(void* program, int, const char* const*) {
  return with(program, [](Program&) {});
}

PEAKBENCH_ENTRY int nvrtcAddNameExpression(void* program, const char* expression) {
  return with(program, [&](Program& known) {
    known.names.try_emplace(expression, "emulated_kernel_" + std::to_string(known.names.size()));
  });
}

PEAKBENCH_ENTRY int nvrtcGetLoweredName(void* program, const char* expression, const char** out) {
  return with(program, [&](Program& known) {
    *out = known.names.try_emplace(expression, "emulated_kernel").first->second.c_str();
  });
}

PEAKBENCH_ENTRY int nvrtcGetPTXSize(void* program, std::size_t* out) {
  return code_size(program, out);
}
PEAKBENCH_ENTRY int nvrtcGetPTX(void* program, char* out) { return code(program, out); }
PEAKBENCH_ENTRY int nvrtcGetCUBINSize(void* program, std::size_t* out) {
  return code_size(program, out);
}
PEAKBENCH_ENTRY int nvrtcGetCUBIN(void* program, char* out) { return code(program, out); }

PEAKBENCH_ENTRY int nvrtcGetProgramLogSize(void* program, std::size_t* out) {
  return with(program, [&](Program&) { *out = 1; });
}
PEAKBENCH_ENTRY int nvrtcGetProgramLog(void* program, char* out) {
  return with(program, [&](Program&) { *out = 0; });
}

PEAKBENCH_ENTRY const char* nvrtcGetErrorString(int error) {
  return error == kSuccess ? "NVRTC_SUCCESS" : "an error of the emulated NVRTC";
}
