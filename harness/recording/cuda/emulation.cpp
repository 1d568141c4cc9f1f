#include "recording/cuda/emulation.h"

#include <dlfcn.h>

#include "base/host_memory.h"
#include "recording/cuda/allocator_events.h"
#include "trace/trace.h"

namespace peakbench::recording {
namespace {

// Exported by the stand-ins: the process's ledger so far, as JSON. The text stays valid until the
// thread asks again.
using ReportFunction = const char* (*)();

ReportFunction report_function() {
  return reinterpret_cast<ReportFunction>(::dlsym(RTLD_DEFAULT, "peakbench_emulator_report"));
}

using AllocatedFunction = std::uint64_t (*)(int device);
using CudnnFunction = int (*)(int* tf32, int* deterministic, int* benchmark);

// Reads whose values are not known: answered with zeros, with plausible values, or with what was
// copied there before later device work that may have been meant to change it (`uncertain`).
nlohmann::json unknown_read_back(const nlohmann::json& row, std::int64_t uncertain,
                                 std::int64_t unknown) {
  return {{"bytes", row.at("bytes")},     {"count", unknown},
          {"uncertain", uncertain},       {"caller", row.at("function")},
          {"library", row.at("library")}, {"operator", row.at("operator")}};
}

}  // namespace

void tell_emulation_of_allocations() {
  if (const auto answer = reinterpret_cast<void (*)(AllocatedFunction, CudnnFunction)>(
          ::dlsym(RTLD_DEFAULT, "peakbench_emulator_ask_pytorch")))
    answer(recording::allocated_bytes, recording::cudnn_settings);
  const auto watch =
      reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "peakbench_emulator_watch_allocator"));
  const auto tell = reinterpret_cast<void (*)(std::uint64_t, std::uint64_t)>(
      ::dlsym(RTLD_DEFAULT, "peakbench_emulator_handed_out"));
  if (watch == nullptr || tell == nullptr) return;
  watch();
  recording::listen_to_allocator([tell](const recording::AllocatorEvent& event) {
    if (event.kind == trace::EventKind::kAlloc)
      tell(event.address, static_cast<std::uint64_t>(event.bytes));
  });
}

void listen_to_emulated_libraries(const Device::VisitWorkspace& visit) {
  using Listener = void (*)(const void* address, const char* library);
  const auto watch = reinterpret_cast<void (*)(Listener)>(
      ::dlsym(RTLD_DEFAULT, "peakbench_emulator_watch_workspaces"));
  if (watch == nullptr) return;
  // The stand-ins call it until the process ends.
  static auto* const listener = new Device::VisitWorkspace;
  *listener = visit;
  watch([](const void* address, const char* library) {
    (*listener)(reinterpret_cast<std::uint64_t>(address), library);
  });
}

bool runs_on_stand_ins() { return report_function() != nullptr; }

std::optional<records::Emulation> emulation_report() {
  const ReportFunction report = report_function();
  if (report == nullptr) return std::nullopt;
  const auto ledger = nlohmann::json::parse(report());
  records::Emulation emulation;
  for (const auto& row : ledger.at("refused")) {
    emulation.refused_calls.push_back(row.at("name").get<std::string>());
  }
  for (const auto& row : ledger.at("unmodelled")) {
    emulation.unmodelled[row.at("name").get<std::string>()] = row.at("calls").get<std::int64_t>();
  }
  for (const auto& row : ledger.at("read_backs")) {
    const auto uncertain = row.at("uncertain_calls").get<std::int64_t>();
    const auto unknown = uncertain + row.at("zero_calls").get<std::int64_t>() +
                         row.at("substitute_calls").get<std::int64_t>();
    if (unknown > 0) emulation.read_backs.push_back(unknown_read_back(row, uncertain, unknown));
  }
  return emulation;
}

std::string emulation_host_refusal() {
  const ReportFunction report = report_function();
  if (report == nullptr) return "";
  const auto ledger = nlohmann::json::parse(report());
  if (ledger.at("host_refusals").get<std::int64_t>() == 0) return "";
  return "the emulated card had enough memory, but " +
         no_memory_text(ledger.at("last_host_refused_bytes").get<std::int64_t>());
}

}  // namespace peakbench::recording
