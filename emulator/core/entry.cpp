#include "core/entry.h"

#include <atomic>

namespace peakbench::emulator {
namespace {

std::atomic<PeakbenchWorkspaceListener> workspace_listener{nullptr};

}  // namespace

void tell_of_workspace(const void* address, const char* library) {
  const auto listener = workspace_listener.load(std::memory_order_acquire);
  if (listener && address) listener(address, library);
}

}  // namespace peakbench::emulator

extern "C" int peakbench_emulator_give_handle(void** out) {
  return peakbench::emulator::give_handle(out);
}

extern "C" void peakbench_emulator_watch_workspaces(PeakbenchWorkspaceListener listener) {
  peakbench::emulator::workspace_listener = listener;
}
