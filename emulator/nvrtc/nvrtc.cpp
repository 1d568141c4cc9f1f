// NVRTC: source text goes in and is not compiled; what comes out is a module that loads and does
// nothing. Errors in the source are therefore not found.
#include <cstdlib>
#include <cstring>
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

Handles<Program>& programs() {
  static auto* const programs = new Handles<Program>(kInvalidProgram);
  return *programs;
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
  return programs().create(out);
}

PEAKBENCH_ENTRY int nvrtcDestroyProgram(void** program) {
  if (!program) return kInvalidProgram;
  const int status = programs().destroy(*program);
  *program = nullptr;
  return status;
}

PEAKBENCH_ENTRY int nvrtcCompileProgram(void* program, int, const char* const*) {
  return programs().with(program, [](Program&) {});
}

PEAKBENCH_ENTRY int nvrtcAddNameExpression(void* program, const char* expression) {
  return programs().with(program, [&](Program& known) {
    known.names.try_emplace(expression, "emulated_kernel_" + std::to_string(known.names.size()));
  });
}

PEAKBENCH_ENTRY int nvrtcGetLoweredName(void* program, const char* expression, const char** out) {
  return programs().with(program, [&](Program& known) {
    *out = known.names.try_emplace(expression, "emulated_kernel").first->second.c_str();
  });
}

PEAKBENCH_ENTRY int nvrtcGetPTXSize(void* program, std::size_t* out) {
  return programs().with(program, [&](Program&) { *out = sizeof kPtx; });
}
PEAKBENCH_ENTRY int nvrtcGetPTX(void* program, char* out) {
  return programs().with(program, [&](Program&) { std::memcpy(out, kPtx, sizeof kPtx); });
}
PEAKBENCH_ALSO(nvrtcGetCUBINSize, nvrtcGetPTXSize);
PEAKBENCH_ALSO(nvrtcGetCUBIN, nvrtcGetPTX);

PEAKBENCH_ENTRY int nvrtcGetProgramLogSize(void* program, std::size_t* out) {
  return programs().with(program, [&](Program&) { *out = 1; });
}
PEAKBENCH_ENTRY int nvrtcGetProgramLog(void* program, char* out) {
  return programs().with(program, [&](Program&) { *out = 0; });
}

PEAKBENCH_ENTRY const char* nvrtcGetErrorString(int error) {
  return error == kSuccess ? "NVRTC_SUCCESS" : "an error of the emulated NVRTC";
}
