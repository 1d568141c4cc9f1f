#include "core/copies.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "runtime/errors.h"

// Variables of device code in the program, registered before main.

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

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

// Address of a registered variable, allocated at the first question; null for an unknown one.
void* symbol_address(const void* host_variable) {
  std::lock_guard lock(symbols().mutex);
  auto found = symbols().known.find(host_variable);
  if (found == symbols().known.end()) return nullptr;
  if (!found->second.at) found->second.at = std::calloc(1, found->second.bytes);
  return found->second.at;
}

// Whether an address lies in one that was asked for.
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

}  // namespace

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

// Copies and fills. Everything is done at once; which side is the device's is seen from the
// addresses, whatever the caller says of the direction.

namespace {

// The host waits for a copy to memory of its own that is not page-locked.
bool waits(const void* to, cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost && !find_place(to).is_locked();
}

// A variable of device code is memory of the host here.
DeviceEnds ends_of(cudaMemcpyKind kind, const void* to, const void* from) {
  const bool onto = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool off = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return {onto && !is_symbol(to), off && !is_symbol(from)};
}

cudaError_t copy(const CopyCall& call, void* to, const void* from, size_t bytes,
                 cudaMemcpyKind kind, bool waiting) {
  const auto work = [&] {
    const auto error = error_of(asked_copy(call, to, from, bytes, ends_of(kind, to, from)));
    if (waiting && error == cudaSuccess &&
        !(find_place(to).is_on_device() && find_place(from).is_on_device()))
      told_of_stream(call.stream);
    return error;
  };
  return waiting ? waiting_entry(work) : working_entry(work);
}

cudaError_t copy_2d(const CopyCall& call, void* to, size_t to_pitch, const void* from,
                    size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return entry([&] {
    return error_of(asked_copy_of_rows(call, to, to_pitch, from, from_pitch, width, height,
                                       ends_of(kind, to, from)));
  });
}

cudaError_t fill(const CopyCall& call, void* to, int value, size_t bytes) {
  return working_entry(
      [&] { return error_of(asked_fill(call, to, static_cast<unsigned char>(value), 1, bytes)); });
}

cudaError_t fill_2d(const CopyCall& call, void* to, size_t pitch, int value, size_t width,
                    size_t height) {
  return entry([&] {
    for (size_t row = 0; row < height; ++row) {
      const auto result = asked_fill(call, static_cast<char*>(to) + row * pitch,
                                     static_cast<unsigned char>(value), 1, width);
      if (result != MemoryResult::ok) return error_of(result);
    }
    return cudaSuccess;
  });
}

// Calls `copy` with where so many bytes lie in the symbol.
template <typename Copy>
cudaError_t with_symbol(const void* symbol, size_t bytes, size_t offset, Copy&& copy) {
  return entry([&] {
    auto* const base = static_cast<char*>(symbol_address(symbol));
    if (!base) return cudaErrorInvalidSymbol;
    const auto size = symbol_bytes(symbol);
    if (offset <= size && bytes <= size - offset) return error_of(copy(base + offset));
    enter(Fact::symbol_past_end);
    return cudaErrorInvalidValue;
  });
}

cudaError_t copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset) {
  return with_symbol(symbol, bytes, offset, [&](char* to) { return copy_bytes(to, from, bytes); });
}

cudaError_t copy_from_symbol(const CopyCall& call, void* to, const void* symbol, size_t bytes,
                             size_t offset) {
  return with_symbol(symbol, bytes, offset,
                     [&](char* from) { return asked_copy(call, to, from, bytes); });
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                                       cudaMemcpyKind kind) {
  return copy(PEAKBENCH_CALL(), to, from, bytes, kind, true);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                            cudaMemcpyKind kind, cudaStream_t stream) {
  return copy(PEAKBENCH_CALL(stream), to, from, bytes, kind, waits(to, kind));
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return copy(PEAKBENCH_CALL(), to, from, bytes, cudaMemcpyDeviceToDevice, true);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                                cudaStream_t stream) {
  return copy(PEAKBENCH_CALL(stream), to, from, bytes, cudaMemcpyDeviceToDevice, false);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from,
                                         size_t from_pitch, size_t width, size_t height,
                                         cudaMemcpyKind kind) {
  return copy_2d(PEAKBENCH_CALL(), to, to_pitch, from, from_pitch, width, height, kind);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                              size_t from_pitch, size_t width, size_t height,
                                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d(PEAKBENCH_CALL(stream), to, to_pitch, from, from_pitch, width, height, kind);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes,
                                               size_t offset, cudaMemcpyKind) {
  return copy_to_symbol(symbol, from, bytes, offset);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from,
                                                    size_t bytes, size_t offset, cudaMemcpyKind,
                                                    cudaStream_t) {
  return copy_to_symbol(symbol, from, bytes, offset);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes,
                                                 size_t offset, cudaMemcpyKind) {
  return copy_from_symbol(PEAKBENCH_CALL(), to, symbol, bytes, offset);
}
PEAKBENCH_ENTRY cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes,
                                                      size_t offset, cudaMemcpyKind,
                                                      cudaStream_t stream) {
  return copy_from_symbol(PEAKBENCH_CALL(stream), to, symbol, bytes, offset);
}
PEAKBENCH_ENTRY cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return fill(PEAKBENCH_CALL(), to, value, bytes);
}
PEAKBENCH_ENTRY cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes,
                                            cudaStream_t stream) {
  return fill(PEAKBENCH_CALL(stream), to, value, bytes);
}
PEAKBENCH_ENTRY cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width,
                                         size_t height) {
  return fill_2d(PEAKBENCH_CALL(), to, pitch, value, width, height);
}
PEAKBENCH_ENTRY cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                                              size_t height, cudaStream_t stream) {
  return fill_2d(PEAKBENCH_CALL(stream), to, pitch, value, width, height);
}
