#include "device/cuda/emulation.h"

#include <dlfcn.h>

namespace peakbench::device {
namespace {

// Exported by the stand-ins: the process's ledger so far, as JSON. The text stays valid until the
// thread asks again.
using ReportFunction = const char* (*)();

ReportFunction report_function() {
  return reinterpret_cast<ReportFunction>(::dlsym(RTLD_DEFAULT, "peakbench_emulator_report"));
}

}  // namespace

bool is_emulated() { return report_function() != nullptr; }

std::optional<result::Emulation> emulation_report() {
  const ReportFunction report = report_function();
  if (report == nullptr) return std::nullopt;
  const auto json = nlohmann::json::parse(report());
  result::Emulation emulation;
  emulation.refused_calls = json.value("refused_calls", std::vector<std::string>{});
  emulation.unmodelled = json.value("unmodelled", std::map<std::string, std::int64_t>{});
  emulation.read_backs = json.value("read_backs", nlohmann::json::array());
  return emulation;
}

}  // namespace peakbench::device
