// Variables of device code in the program, registered before main.
#include "runtime/symbols.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace peakbench::emulator::runtime {
namespace {

struct Symbol {
  std::size_t bytes;
  void* at = nullptr;
};

// A symbol's bytes are ordinary host memory: a few kilobytes in a process, which on a real card
// belong to the context.
struct Symbols {
  std::mutex mutex;
  std::unordered_map<const void*, Symbol> known;
};

Symbols& symbols() {
  static auto* const symbols = new Symbols;
  return *symbols;
}

}  // namespace

void* symbol_address(const void* host_variable) {
  std::lock_guard lock(symbols().mutex);
  auto found = symbols().known.find(host_variable);
  if (found == symbols().known.end()) return nullptr;
  if (!found->second.at) found->second.at = std::calloc(1, found->second.bytes);
  return found->second.at;
}

bool is_symbol(const void* address) {
  std::lock_guard lock(symbols().mutex);
  return std::ranges::any_of(symbols().known, [&](const auto& one) {
    const auto* begin = static_cast<const char*>(one.second.at);
    return begin && address >= begin && address < begin + one.second.bytes;
  });
}

std::size_t symbol_bytes(const void* host_variable) {
  std::lock_guard lock(symbols().mutex);
  auto found = symbols().known.find(host_variable);
  return found == symbols().known.end() ? 0 : found->second.bytes;
}

}  // namespace peakbench::emulator::runtime

PEAKBENCH_ENTRY void __cudaRegisterVar(void**, char* host_variable, char*, const char*, int,
                                       size_t bytes, int, int) {
  std::lock_guard lock(symbols().mutex);
  symbols().known[host_variable] = {bytes};
}

PEAKBENCH_ENTRY cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    *out = symbol_address(symbol);
    return *out ? cudaSuccess : cudaErrorInvalidSymbol;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaGetSymbolSize(size_t* out, const void* symbol) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    *out = symbol_bytes(symbol);
    return *out ? cudaSuccess : cudaErrorInvalidSymbol;
  });
}
