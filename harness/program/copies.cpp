#include "program/copies.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace peakbench::program {

void add_copies(trace::Trace& trace, const std::vector<CopyMark>& marks) {
  using trace::ScopeKind;
  std::unordered_set<std::uint64_t> parameters;
  for (const auto& name : trace.names)
    if (name.role == trace::Role::kParameter) parameters.insert(name.event);
  std::map<std::int32_t, std::vector<std::optional<ScopeKind>>> open;  // by thread, innermost last
  std::vector<trace::ScopeMark> scopes;
  for (const auto& mark : marks) {
    auto& copies = open[mark.thread];
    std::optional<ScopeKind> kind;
    if (mark.ends) {
      if (copies.empty()) continue;
      kind = copies.back();
      copies.pop_back();
    } else {
      if (mark.copy == tracer::Copy::kLarger)
        kind = ScopeKind::kLargerCopy;
      else if (mark.source && parameters.contains(*mark.source))
        kind = ScopeKind::kFrozenCopy;
      copies.push_back(kind);
    }
    if (kind)
      scopes.push_back(
          {.event = mark.event, .kind = *kind, .ends = mark.ends, .thread = mark.thread});
  }
  const auto middle = trace.scopes.insert(trace.scopes.end(), scopes.begin(), scopes.end());
  std::ranges::inplace_merge(trace.scopes, middle, {}, &trace::ScopeMark::event);
}

}  // namespace peakbench::program
