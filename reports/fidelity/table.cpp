#include "reports/fidelity/table.h"

#include <fmt/format.h>

#include <cmath>

#include "reports/fidelity/view.h"
#include "reports/render/template.h"
#include "text/table.h"

namespace peakbench::fidelity {

double difference(const Record& record) {
  return static_cast<double>(record.emulated.value().bytes) / published_bytes(record.figure) - 1;
}

bool is_within_rounding(const Record& record) {
  const double apart =
      static_cast<double>(record.emulated.value().bytes) - published_bytes(record.figure);
  return std::abs(apart) <= rounding_bytes(record.figure);
}

std::string cause_of(const Record& record) {
  if (record.figure.grade == result::kComputed) return "";
  if (std::abs(difference(record)) <= kAgreement || is_within_rounding(record)) return "";
  return record.figure.cause.empty() ? "unknown" : record.figure.cause;
}

std::string page(const Records& records, const PageOptions& options) {
  const reports::Templates templates(options.template_directory,
                                     options.builtin_template_directory);
  return templates.render("markdown/fidelity.md.mustache", page_view(records),
                          reports::Escape::kMarkdown);
}

std::string to_text(const Records& records, int width) {
  std::vector<TableColumn> columns = {{"configuration"},
                                      {"publisher", 3},
                                      {"card", 5},
                                      {"kind", 4},
                                      {"published", 1, true},
                                      {"emulated, bytes", 2, true},
                                      {"difference", 0, true},
                                      {"peak in", 6},
                                      {"cause", 7}};
  std::vector<std::vector<std::string>> rows;
  for (const auto& source : page_view(records).sources) {
    for (const auto* figures : {&source.figures, &source.not_measured}) {
      for (const auto& figure : *figures) {
        rows.push_back({figure.configuration, source.name, figure.card, figure.metric,
                        figure.published + " " + figure.unit, figure.bytes,
                        figure.measured ? figure.difference + "%" : "not measured", figure.phase,
                        figure.cause});
      }
    }
  }
  return table_text(std::move(columns), std::move(rows), width);
}

}  // namespace peakbench::fidelity
