#include "worker/plugin_call.h"

namespace peakbench::worker {
namespace {

thread_local Call current;

}  // namespace

Call current_call() { return current; }
const Owner* current_owner() { return current.owner; }

CurrentCall::CurrentCall(const Owner& owner, const char* call)
    : previous_(std::exchange(current, Call{&owner, call})) {}
CurrentCall::~CurrentCall() { current = previous_; }

}  // namespace peakbench::worker
