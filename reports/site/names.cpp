#include "reports/site/names.h"

#include <fmt/format.h>
#include <zlib.h>

#include "reports/render/text.h"

namespace peakbench::site {

std::string safe_name(const std::string& text) {
  const auto hash =
      crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(text.data()), text.size());
  return fmt::format("{}-{:08x}", reports::file_stem(text), hash);
}

std::string trend_page(const history::Series& series) {
  const std::string separator(1, '\n');
  return "trends/" +
         safe_name(series.case_id + separator + series.card + separator + series.device_options) +
         ".html";
}

std::string report_page(std::int64_t run) { return fmt::format("runs/{}/index.html", run); }

std::string runs_page(std::size_t number) {
  return number == 1 ? "runs/index.html" : fmt::format("runs/page-{}.html", number);
}

std::string run_anchor(std::int64_t run) { return fmt::format("run-{}", run); }

}  // namespace peakbench::site
