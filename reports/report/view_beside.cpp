// Memory that a case takes beside its device's own: pinned host memory of an offload, the host's,
// another card's. Without it an offload would look free.
#include <algorithm>

#include "reports/analysis/environment.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/report/view_group.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;

// A few counters on the host are no offload.
bool is_more_than_a_little(std::int64_t bytes, std::int64_t peak) {
  constexpr std::int64_t kMiB = 1 << 20;
  return bytes >= kMiB || (bytes > 0 && bytes >= peak / 100);
}

std::int64_t taken(const CaseResult& result, const std::string& space) {
  if (!result.memory) return 0;
  const auto found = result.memory->spaces.find(space);
  return found == result.memory->spaces.end() ? 0 : found->second.peak_allocated_bytes;
}

std::string column_of(const std::string& space) { return space == "cpu" ? "host" : space; }

std::string words_for(const std::string& space) {
  if (space == "pinned") return "pinned host memory";
  return space == "cpu" ? "host memory" : "on " + space;
}

}  // namespace

std::set<std::string> spaces_beside(const CaseResult& result) {
  std::set<std::string> spaces;
  if (!result.memory) return spaces;
  for (const auto& [space, memory] : result.memory->spaces)
    if (space != own_space(result) &&
        is_more_than_a_little(memory.peak_allocated_bytes, result.memory->peak_allocated_bytes))
      spaces.insert(space);
  return spaces;
}

std::string beside_text(const CaseResult& result) {
  std::string text;
  for (const std::string& space : spaces_beside(result))
    text += (text.empty() ? "" : " and ") + gib(taken(result, space)) + " GiB " + words_for(space);
  return printable(text);
}

void add_beside(const Group& group, GroupView& view) {
  std::set<std::string> spaces;
  for (const CaseResult* result : group.cases) spaces.merge(spaces_beside(*result));
  for (const std::string& space : spaces) {
    const auto label = printable(column_of(space));
    view.beside.push_back({printable(space), label});
    for (std::size_t i = 0; i < group.cases.size(); ++i) {
      const auto bytes = taken(*group.cases[i], space);
      const bool known = group.cases[i]->memory.has_value();
      view.rows[i].beside.push_back({label, known ? gib(bytes) : "", known ? grouped(bytes) : ""});
    }
  }
}

}  // namespace peakbench::reports
