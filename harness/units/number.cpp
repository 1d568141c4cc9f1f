#include "units/number.h"

#include <fmt/format.h>

#include <charconv>

namespace peakbench {
namespace {

template <class Number>
std::string words(const Range<Number>& range, const char* what) {
  const Range<Number> any;
  if (range.least > any.least && range.most < any.most)
    return fmt::format("{} from {} to {}", what, range.least, range.most);
  if (range.least > any.least) return fmt::format("{} of {} or more", what, range.least);
  if (range.most < any.most) return fmt::format("{} of {} or less", what, range.most);
  return what;
}

}  // namespace

std::optional<double> number_from_text(std::string_view text, Range<double> range) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool whole = error == std::errc() && rest == end;
  return whole && range.holds(value) ? std::optional<double>(value) : std::nullopt;
}

std::string words_of(Range<std::int64_t> range) { return words(range, "an integer"); }

std::string words_of(Range<double> range) { return words(range, "a finite number"); }

}  // namespace peakbench
