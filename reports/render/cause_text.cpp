#include "reports/render/cause_text.h"

#include <fmt/format.h>

#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::reports {
namespace {

using analysis::Cause;

std::string tensors_text(std::int64_t count) {
  return count == 1 ? "1 tensor" : grouped(count) + " tensors";
}

// Empty where nothing is known.
std::string place(const Cause& cause) {
  if (cause.where.empty()) return cause.op.empty() ? "" : "by " + printable(cause.op);
  return printable(cause.where) + (cause.op.empty() ? "" : ", by " + printable(cause.op));
}

// "bf16 -> fp32", where both sides have one and not the same; else empty.
std::string pair_text(const std::set<std::string>& base, const std::set<std::string>& now) {
  if (base.size() != 1 || now.size() != 1 || *base.begin() == *now.begin()) return "";
  return printable(*base.begin()) + " -> " + printable(*now.begin());
}

// How many, of the same number on both sides, and what about them is another.
std::string pair_of_many(const Cause& cause) {
  const auto tensors = tensors_text(cause.now.tensors);
  if (const auto dtypes = pair_text(cause.base.dtypes, cause.now.dtypes); !dtypes.empty())
    return dtypes + ", " + tensors;
  if (const auto shapes = pair_text(cause.base.shapes, cause.now.shapes); !shapes.empty())
    return shapes + ", " + tensors;
  const bool larger = cause.block_difference() > 0;
  if (cause.requested_difference() == 0)
    return fmt::format("{} in {}{} {} for the same bytes", tensors,
                       cause.now.tensors == 1 ? "a " : "", larger ? "larger" : "smaller",
                       cause.now.tensors == 1 ? "block" : "blocks");
  return fmt::format("{}, {}", tensors, cause.requested_difference() > 0 ? "larger" : "smaller");
}

std::string with_commas(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "in no module" : text;
}

std::string numbers(const Cause& cause) {
  const auto before = cause.base.tensors, after = cause.now.tensors;
  if (before == 0 && after == 0) return "";
  if (before == 0) return tensors_text(after) + " more";
  if (after == 0) return tensors_text(before) + " fewer";
  if (before != after)
    return fmt::format("{} in place of {}", tensors_text(after), grouped(before));
  return pair_of_many(cause);
}

}  // namespace

std::string cause_text(const Cause& cause) { return with_commas({place(cause), numbers(cause)}); }

std::string held_text(const Cause& cause) {
  const auto dtype = cause.now.dtypes.size() == 1 ? printable(*cause.now.dtypes.begin()) : "";
  return with_commas(
      {place(cause), dtype, cause.now.tensors == 0 ? "" : tensors_text(cause.now.tensors)});
}

}  // namespace peakbench::reports
