#include "cli/rows.h"

#include <fmt/format.h>

#include "reports/render/format.h"
#include "reports/report/view.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

std::string figures(const result::CaseResult& result) {
  std::string text;
  if (result.memory) {
    text += fmt::format("peak {} GiB allocated", reports::gib(result.memory->peak_allocated_bytes));
    if (const auto reserved = result.memory->peak_reserved_bytes)
      text += fmt::format(", {} reserved", reports::gib(*reserved));
    if (const auto beside = reports::beside_text(result); !beside.empty()) text += ", " + beside;
    text += "  ";
  }
  if (result.throughput)
    text += fmt::format("{} ms/step  {} samples/s  ",
                        reports::milliseconds(result.throughput->step_ns.median),
                        reports::decimal(result.throughput->samples_per_second, 3));
  return text;
}

}  // namespace

std::string counter(std::size_t place, std::size_t count) {
  const auto total = std::to_string(count);
  return fmt::format("[{:>{}}/{}]", place + 1, total.size(), total);
}

std::string case_row(std::size_t place, std::size_t count, const result::CaseResult& result) {
  auto row = fmt::format("{} {:<13}  {}{}{}\n", counter(place, count), to_string(result.status),
                         figures(result), printable(result.spec.id),
                         result.added_for.empty() ? "" : "  (added for " + result.added_for + ")");
  if (!result.reason.empty()) row += "    " + printable(result.reason) + "\n";
  return row;
}

std::string elided(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  // Not through the middle of a character.
  const auto inside = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  const auto tail = width < 8 ? 0 : (width - 3) / 2;
  auto head = width < 8 ? width : width - 3 - tail, rest = text.size() - tail;
  while (head > 0 && inside(head)) --head;
  while (inside(rest)) ++rest;
  return text.substr(0, head) + (width < 8 ? "" : "...") + text.substr(rest);
}

std::string duration(std::int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds % 3600 / 60);
}

}  // namespace peakbench::cli
