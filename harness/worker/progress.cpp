#include "worker/progress.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "base/printable.h"
#include "trace/lifetimes.h"

namespace peakbench::worker {
namespace {

int open_descriptor() {
  const char* text = std::getenv("PEAKBENCH_PROGRESS_FD");
  if (text == nullptr) return -1;
  std::signal(SIGPIPE, SIG_IGN);
  return std::atoi(text);
}

constexpr std::size_t kLongestReason = 600;  // however it is escaped, a pipe takes the line whole
constexpr int kPatienceMs = 1000;

int& the_descriptor() {
  static int descriptor = open_descriptor();
  return descriptor;
}

// Waits while the pipe is full, or drops the line: progress is not worth waiting.
void write_line(std::string_view line, int patience_ms = 0) {
  int& descriptor = the_descriptor();
  if (descriptor < 0) return;
  pollfd room{descriptor, POLLOUT, 0};
  if (patience_ms > 0) ::poll(&room, 1, patience_ms);
  if (::write(descriptor, line.data(), line.size()) < 0 && errno != EAGAIN) descriptor = -1;
}

}  // namespace

int progress_descriptor() { return the_descriptor(); }

void report(const records::Progress& progress) {
  write_line(records::to_json(progress).dump() + "\n");
}

void report_host_failure(const std::string& reason) {
  const nlohmann::json line{{records::kHostFailureKey, bounded(reason, kLongestReason)}};
  write_line(json_line(line) + "\n", kPatienceMs);
}

void report_host_failure_without_memory() {
  write_line("{\"host_failure\": \"the machine gave no memory; free some\"}\n", kPatienceMs);
}

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
