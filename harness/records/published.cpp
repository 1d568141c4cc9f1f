#include "records/published.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/numbers.h"
#include "records/device.h"
#include "records/setting.h"

namespace peakbench::records {

namespace {

bool is_one_of(const std::string& text, std::span<const char* const> names) {
  return std::ranges::any_of(names, [&](const char* name) { return text == name; });
}

std::optional<WrongField> wrong_name(const char* field, const std::string& text,
                                     std::span<const char* const> names) {
  if (text.empty() || is_one_of(text, names)) return std::nullopt;
  return WrongField{field, fmt::format("expected {}, got \"{}\"", fmt::join(names, ", "), text)};
}

// What nothing can be compared without.
std::optional<WrongField> missing_for_grade(const Published& figure) {
  if (figure.grade.empty()) return std::nullopt;
  if (!is_of_memory(figure))
    return WrongField{
        "metric",
        fmt::format("\"{}\" cannot be graded: an emulated card has no times", figure.metric)};
  if (figure.device.empty())
    return WrongField{"device", "missing; a graded figure names the card it was measured on"};
  return std::nullopt;
}

std::optional<WrongField> wrong_device(const Published& figure) {
  if (figure.device.empty()) return std::nullopt;
  const auto kind = recorded_device(figure.device).kind;
  if (kind == DeviceKind::kEmulated) return std::nullopt;
  return WrongField{"device", fmt::format("expected an emulated card, like {}, got \"{}\"",
                                          emulated_device("a100-80gb"), figure.device)};
}

// One in the last digit that is printed, in the figure's unit.
double last_digit(const std::string& digits) {
  const auto point = digits.find('.');
  const auto decimals = point == std::string::npos ? 0 : digits.size() - point - 1;
  return std::pow(10.0, -static_cast<double>(decimals));
}
std::string digits_of(const Published& figure) {
  return fmt::format("{}", figure.value);  // the shortest that reads back as the same
}

// Nobody but the source rounds: a figure is not called coarser than it is printed.
std::optional<WrongField> wrong_rounding(const Published& figure) {
  if (!figure.rounded_to) return std::nullopt;
  if (!(*figure.rounded_to > 0))
    return WrongField{"rounded_to", "expected a figure above 0, in the figure's unit"};
  const auto digits = digits_of(figure);
  // The last digit, or what single precision keeps of the figure.
  const double coarsest = std::max(last_digit(digits), std::ldexp(figure.value, -22));
  if (*figure.rounded_to <= coarsest * (1 + 1e-9)) return std::nullopt;
  return WrongField{"rounded_to",
                    fmt::format("{} is coarser than the last digit of \"{} {}\", which the "
                                "source prints",
                                *figure.rounded_to, digits, figure.unit)};
}

std::optional<WrongField> wrong_value(const Published& figure) {
  if (!(figure.value > 0))
    return WrongField{"value", "missing, or 0; a published figure is above 0"};
  if (figure.unit.empty()) return WrongField{"unit", "missing; a published figure needs it"};
  if (!is_of_memory(figure)) {
    if (!figure.rounded_to) return std::nullopt;
    return WrongField{"rounded_to", "is of figures of memory"};
  }
  if (!bytes_of(1, figure.unit))
    return WrongField{"unit", fmt::format("expected {}, got \"{}\"", kMemoryUnits, figure.unit)};
  return wrong_rounding(figure);
}

std::optional<WrongField> wrong_cause(const Published& figure) {
  if (figure.cause.empty() && figure.explanation.empty()) return std::nullopt;
  if (figure.grade.empty())
    return WrongField{figure.cause.empty() ? "explanation" : "cause",
                      "is of graded figures; add a grade"};
  if (figure.cause.empty())
    return WrongField{"cause", "missing; an explanation needs the cause that it explains"};
  if (figure.explanation.empty())
    return WrongField{"explanation", "missing; a cause needs a sentence that says what was seen"};
  return std::nullopt;
}

bool names_model(const Published& figure, const CaseSpec& spec) {
  return figure.model == spec.model.id || figure.model == selection_text(spec.model);
}

}  // namespace

std::optional<WrongField> wrong_field_of(const Published& figure) {
  if (!is_of_memory(figure) && figure.metric != "throughput")
    return WrongField{"metric", fmt::format("expected {} or throughput, got \"{}\"",
                                            fmt::join(kMemoryMetrics, ", "), figure.metric)};
  if (auto wrong = wrong_value(figure)) return wrong;
  if (auto wrong = wrong_name("grade", figure.grade, kGrades)) return wrong;
  if (auto wrong = wrong_name("cause", figure.cause, kCauses)) return wrong;
  if (auto wrong = wrong_device(figure)) return wrong;
  if (auto wrong = missing_for_grade(figure)) return wrong;
  return wrong_cause(figure);
}

bool is_of_memory(const Published& figure) { return is_one_of(figure.metric, kMemoryMetrics); }

bool is_about(const Published& figure, const CaseSpec& spec) {
  return names_model(figure, spec) &&
         (figure.strategy.empty() || figure.strategy == stack_text(spec.strategies)) &&
         (figure.device.empty() || figure.device == spec.device ||
          recorded_device(spec.device).kind != DeviceKind::kEmulated) &&
         (figure.dtype.empty() || figure.dtype == spec.dtype) &&
         (!figure.batch_size || figure.batch_size == spec.batch_size) &&
         (!figure.sequence_length || figure.sequence_length == spec.sequence_length);
}

std::optional<std::int64_t> bytes_of_kind(const Memory& memory, const std::string& metric) {
  if (metric == "peak_reserved") return memory.peak_reserved_bytes;
  return memory.peak_allocated_bytes;
}

}  // namespace peakbench::records
