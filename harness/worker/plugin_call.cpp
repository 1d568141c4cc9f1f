#include "worker/plugin_call.h"

namespace peakbench::worker {
namespace {

thread_local const Owner* current = nullptr;

}  // namespace

const Owner* current_owner() { return current; }

CurrentOwner::CurrentOwner(const Owner& owner) : previous_(std::exchange(current, &owner)) {}
CurrentOwner::~CurrentOwner() { current = previous_; }

}  // namespace peakbench::worker
