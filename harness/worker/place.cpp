#include "worker/place.h"

#include <atomic>
#include <map>

#include "trace/lifetimes.h"

namespace peakbench::worker {
namespace {

// One job a process. Atomic, because a hook in backward may fail on another thread.
std::atomic<trace::Phase> phase{trace::Phase::kBuild};
std::atomic<std::int64_t> step{trace::kNone}, steps{0};
std::string failed_module, failed_op;           // written and read by the main thread
std::map<std::string, std::string> changed_by;  // a module's path, and the strategy

std::string step_in_words() {
  if (step == trace::kNone) return {};
  return "step " + std::to_string(step + 1) + " of " + std::to_string(steps) + ", " +
         trace::to_string(phase);
}

std::string module_in_words() {
  const auto found = changed_by.find(failed_module);
  return found == changed_by.end() ? failed_module
                                   : failed_module + " (changed by " + found->second + ")";
}

void append(std::string& words, const std::string& what, const std::string& name) {
  if (name.empty()) return;
  words += (words.empty() ? "" : ", ") + what + name;
}

}  // namespace

void set_place(trace::Phase now, std::int64_t of_step, std::int64_t of_steps) {
  phase.store(now, std::memory_order_relaxed);
  step.store(of_step, std::memory_order_relaxed);
  steps.store(of_steps, std::memory_order_relaxed);
}

Place place_now() { return {phase, step, steps}; }

void note_changed_module(const std::string& module, const std::string& strategy) {
  changed_by[module] = strategy;
}

void note_failure(const std::string& module, const std::string& op) {
  failed_module = module;
  failed_op = op;
}

std::string place_in_words() {
  std::string words = step_in_words();
  append(words, "module ", module_in_words());
  append(words, "operator ", failed_op);
  return words;
}

}  // namespace peakbench::worker
