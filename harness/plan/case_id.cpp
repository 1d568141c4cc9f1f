#include "plan/case_id.h"

#include <fmt/format.h>

#include <cstdint>

namespace peakbench::plan {
namespace {

// FNV-1a: short, and fixed for ever by its definition.
std::uint32_t hash(const std::string& text) {
  std::uint32_t value = 2166136261u;
  for (const unsigned char c : text) value = (value ^ c) * 16777619u;
  return value;
}

bool is_safe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '=' || c == '-';
}

}  // namespace

std::string case_id(const result::CaseSpec& spec) {
  auto id = fmt::format("{}/{}/{}/{}/b{}", selection_text(spec.model), stack_text(spec.strategies),
                        spec.device, spec.dtype, spec.batch_size);
  if (spec.sequence_length) id += fmt::format("/s{}", *spec.sequence_length);
  return id;
}

std::string slug(const std::string& case_id) {
  constexpr std::size_t kLongest = 100, kHash = 9;
  std::string name;
  for (const char c : case_id.substr(0, kLongest - kHash)) name += is_safe(c) ? c : '-';
  return fmt::format("{}-{:08x}", name, hash(case_id));
}

}  // namespace peakbench::plan
