// A template of a user, shown with a run's view.
#include "reports/render/template.h"

#include <filesystem>

#include "readers/readers.h"
#include "records/run.h"
#include "reports/run/view.h"

namespace peakbench::hostile {
namespace {

records::Run small_run() {
  records::Run run;
  run.title = "Small";
  run.created = "2026-01-01T00:00:00Z";
  run.reference = "baseline";
  for (const char* strategy : {"baseline", "other"}) {
    records::CaseResult one;
    one.spec.id = std::string("tiny/") + strategy + "/cpu/fp32/b1";
    one.spec.slug = std::string("tiny-") + strategy;
    one.spec.model = {"tiny", nlohmann::json::object()};
    one.spec.strategies = {{strategy, nlohmann::json::object()}};
    one.spec.device = "cpu";
    one.spec.dtype = "fp32";
    records::Memory memory;
    memory.peak_allocated_bytes = memory.peak_requested_bytes = 1 << 20;
    memory.at_peak = {{"parameter", 1 << 20}};
    memory.peak_phase = "forward";
    one.memory = memory;
    run.cases.push_back(one);
  }
  return run;
}

}  // namespace

void read_template(const std::string& path) {
  static const auto view = reports::make_view({small_run()});
  const auto folder = std::filesystem::path(path).parent_path().string();
  const auto name = std::filesystem::path(path).filename().string();
  reports::Templates(folder, PEAKBENCH_TEMPLATES).render(name, view, reports::Escape::kHtml);
}

}  // namespace peakbench::hostile
