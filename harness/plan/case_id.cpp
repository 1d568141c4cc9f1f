#include "plan/case_id.h"

#include <fmt/format.h>

#include "result/axes.h"
#include "text/fnv1a.h"

namespace peakbench::plan {
namespace {

bool is_safe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '=' || c == '-';
}

}  // namespace

std::string case_id(const result::Setting& setting) {
  std::string id;
  for (const auto& row : result::axes())
    if (const auto part = result::in_id(row, setting); !part.empty())
      id += (id.empty() ? "" : "/") + part;
  return id;
}

std::string id_in_one_build(result::Setting setting) {
  setting.torch.clear();
  setting.build.clear();
  return case_id(setting);
}

std::string slug(const std::string& case_id) {
  constexpr std::size_t kLongest = 100, kHash = 9;
  std::string name;
  for (const char c : case_id.substr(0, kLongest - kHash)) name += is_safe(c) ? c : '-';
  return fmt::format("{}-{:08x}", name, fnv1a_32(case_id));
}

}  // namespace peakbench::plan
