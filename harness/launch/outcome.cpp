#include "launch/outcome.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/numbers.h"
#include "base/printable.h"

namespace peakbench::launch {
namespace {

constexpr std::size_t kMostFrames = 4, kLongestName = 200;

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

// "sgd.so+0x12ab _ZN3Sgd6updateEv".
std::string frame_in_words(const std::string& frame) {
  const auto space = frame.find(' ');
  if (space == std::string::npos) return frame;
  return fmt::format("{} ({})", bounded(demangled(frame.substr(space + 1)), kLongestName),
                     frame.substr(0, space));
}

}  // namespace

CrashSite crash_site_from_json(const nlohmann::json& json) {
  const auto text = [&](const char* key) { return bounded(json.at(key).get<std::string>()); };
  CrashSite site{text("path"), text("plugin"), text("call"), text("place"), {}};
  for (const auto& frame : json.at("frames")) {
    if (site.frames.size() == kMostFrames) break;
    site.frames.push_back(bounded(frame.get<std::string>(), 2 * kLongestName + 100));
  }
  return site;
}

std::string in_words(const CrashSite& site) {
  std::string words;
  if (!site.path.empty()) words += " in " + site.path;
  if (!site.plugin.empty()) words += ": " + site.plugin;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) words += (words.empty() ? " " : ", ") + part;
  };
  add(site.call.empty() ? "" : "in " + site.call);
  add(site.place.empty() || !words.empty() ? site.place : "in " + site.place);
  for (std::size_t i = 0; i < site.frames.size(); ++i)
    words += (i == 0 ? "; at " : ", from ") + frame_in_words(site.frames[i]);
  return words;
}

namespace {

using records::Status;
using records::WorkerResult;

constexpr std::size_t kTailLines = 6;
constexpr std::size_t kTailBytes = 800;
constexpr std::string_view kBetweenLines = " | ";

std::string where(const Evidence& evidence) {
  const auto& last = evidence.last;
  if (evidence.is_program) return "";  // its steps are its own
  if (!last) return "; it had not reported any progress";
  if (last->steps == 0) return fmt::format("; it was last seen in {}", last->phase);
  return fmt::format("; it was last seen in {} of step {} of {}", last->phase, last->step + 1,
                     last->steps);
}

WorkerResult failed(Status status, std::string reason) {
  WorkerResult result;
  result.status = status;
  result.reason = std::move(reason);
  return result;
}

std::string limit_text(const Evidence& evidence) { return gib_text(evidence.rss_limit_bytes, 2); }

std::string tail_of(const Evidence& evidence) {
  return evidence.log_tail.empty() ? ""
                                   : fmt::format(" [{}: {}]", evidence.log_name, evidence.log_tail);
}

WorkerResult over_memory(const Evidence& evidence) {
  auto result = failed(Status::kOutOfMemory,
                       fmt::format("the worker was stopped when its resident memory passed {}{}",
                                   limit_text(evidence), where(evidence)));
  records::OutOfMemory facts;
  facts.limit_bytes = evidence.rss_limit_bytes;
  if (evidence.last) {
    facts.allocated_bytes = evidence.last->allocated_bytes;
    facts.phase = evidence.last->phase;
    facts.step = evidence.last->step;
  }
  result.out_of_memory = facts;
  return result;
}

// What the linker and a library's threads say of the machine as they end the process, before or
// beside the worker's own code.
bool is_of_machine(const std::string& log_tail) {
  static constexpr std::array kWords{
      "error while loading shared libraries", "libgomp: Thread creation failed",
      "terminate called after throwing an instance of 'std::bad_alloc'"};
  return std::ranges::any_of(
      kWords, [&](const char* words) { return log_tail.find(words) != std::string::npos; });
}

std::string ended_by_machine(int signal) {
  switch (signal) {
    case SIGKILL:
      return ", from outside. The kernel does this too when memory runs out: see dmesg";
    case SIGTERM:
      return ", from outside";
    case SIGXFSZ:
      return "; raise the limit on the size of files (ulimit -f)";
    case SIGXCPU:
      return "; raise the limit on processor time (ulimit -t)";
    default:
      return "";
  }
}

// Empty: the machine did nothing.
std::string machine_did(const Evidence& evidence) {
  const auto& end = evidence.end;
  if (!end.start_error.empty()) return end.start_error;
  if (!evidence.host_failure.empty() && end.signal == 0 &&
      end.exit_code == records::kHostFailureExit)
    return evidence.host_failure;
  if (!evidence.read_error.empty()) return evidence.read_error;
  if (end.stopped == process::Stop::kMemory && !evidence.memory_is_device)
    return fmt::format(
        "the worker was stopped when it took {} of this machine's memory{}; free memory, or raise "
        "--memory-limit",
        limit_text(evidence), where(evidence));
  if (end.signal == SIGKILL && evidence.kernel_ran_out)
    return "the kernel ended the worker because the machine's memory ran out" + where(evidence) +
           "; free memory";
  if (const auto words = ended_by_machine(end.signal); !words.empty())
    return fmt::format("the worker was killed by {}{}{}", signal_name(end.signal), where(evidence),
                       words);
  if (!evidence.written && end.exit_code + end.signal != 0 && is_of_machine(evidence.log_tail))
    return fmt::format("the worker could not continue{}", where(evidence)) + tail_of(evidence);
  return "";
}

WorkerResult timed_out(const Evidence& evidence) {
  if (evidence.is_program)
    return failed(
        Status::kTimeout,
        printable(fmt::format("stopped after {} s (timeout_s, or --timeout)", evidence.timeout_s) +
                  tail_of(evidence)));
  return failed(Status::kTimeout, fmt::format("stopped after {} s (--timeout){}",
                                              evidence.timeout_s, where(evidence)));
}

// What python/peakbench/bench.py said last of what it cannot go on with, in one sentence.
std::string_view said_by_bench(const std::string& log_tail) {
  constexpr std::string_view kSays = "peakbench: ";
  if (log_tail.starts_with(kSays)) return std::string_view(log_tail).substr(kSays.size());
  const auto line = fmt::format("{}{}", kBetweenLines, kSays);
  const auto at = log_tail.rfind(line);
  return at == std::string::npos ? "" : std::string_view(log_tail).substr(at + line.size());
}

// As the system and PyTorch's store say it.
bool port_was_taken(const std::string& log_tail) {
  return log_tail.find("ddress already in use") != std::string::npos ||
         log_tail.find("EADDRINUSE") != std::string::npos;
}

// What a program printed last says more of its failure than its exit code.
WorkerResult as_written(const Evidence& evidence) {
  auto result = *evidence.written;
  if (!evidence.is_program ||
      (result.status != Status::kCrashed && result.status != Status::kUnsupported))
    return result;
  if (port_was_taken(evidence.log_tail)) {
    result.reason = printable(
        "the port at which its processes meet was taken (address already in use): give the "
        "program another one, as torchrun's --master-port" +
        tail_of(evidence));
    return result;
  }
  const auto said = said_by_bench(evidence.log_tail);
  result.reason = printable(said.empty() ? result.reason + tail_of(evidence) : std::string(said));
  return result;
}

std::string crash(const Evidence& evidence) {
  const auto& end = evidence.end;
  if (end.signal != 0) {
    const auto site = evidence.crash ? in_words(*evidence.crash) : "";
    return fmt::format("the worker was killed by {}{}", signal_name(end.signal),
                       site.empty() ? where(evidence) : site);
  }
  if (evidence.written)
    return fmt::format("the worker exited with code {} after it had written its result",
                       end.exit_code);
  if (!evidence.read_problem.empty())
    return fmt::format("the worker's result cannot be read: {}", evidence.read_problem);
  return fmt::format("the worker exited with code {} without a result{}", end.exit_code,
                     where(evidence));
}

}  // namespace

WorkerResult outcome(const Evidence& evidence) {
  const auto& end = evidence.end;
  if (end.stopped == process::Stop::kTimeout) return timed_out(evidence);
  if (end.stopped == process::Stop::kMemory && evidence.memory_is_device)
    return over_memory(evidence);
  if (evidence.written && end.signal == 0 && end.exit_code == 0) return as_written(evidence);
  if (end.signal == SIGKILL && evidence.kernel_ran_out && evidence.memory_is_device)
    return failed(Status::kOutOfMemory,
                  "the kernel ended the worker because the machine's memory ran out" +
                      where(evidence) + "; lower --memory-limit or the batch size");
  if (const auto what = machine_did(evidence); !what.empty())
    return failed(Status::kHostFailure, printable(what));
  auto result = evidence.written.value_or(WorkerResult{});
  result.status = Status::kCrashed;
  result.reason = printable(crash(evidence) + tail_of(evidence));
  return result;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  if (name == nullptr) return fmt::format("signal {}", number);
  std::string words = sigdescr_np(number);
  std::transform(words.begin(), words.begin() + 1, words.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("SIG{} ({})", name, words);
}

std::string log_tail(const std::string& printed) {
  // torchrun reports of its processes, at length, after what they said themselves.
  constexpr std::string_view kTorchrun = " torch/distributed/elastic/multiprocessing/api.py:";
  const auto report = printed.find(kTorchrun);
  const auto before_report =
      report == std::string::npos ? report : printed.rfind('\n', report) + 1;  // 0: it is all
  std::istringstream text(
      printed.substr(0, std::min(printed.rfind(records::kCrashMark), before_report)));
  std::deque<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back(line);
    if (lines.size() > kTailLines) lines.pop_front();
  }
  std::string joined;
  for (const auto& line : lines) {
    if (!joined.empty()) joined += kBetweenLines;
    joined += line;
  }
  if (joined.size() > kTailBytes) joined = "..." + joined.substr(joined.size() - kTailBytes);
  return joined;
}

std::int64_t kernel_memory_kills() {
  std::ifstream file("/proc/vmstat");
  std::int64_t count = 0;
  for (std::string name; file >> name >> count;)
    if (name == "oom_kill") return count;
  return 0;
}

}  // namespace peakbench::launch
