// What must be right of a trace's events and scopes together, wherever they come from. For the
// module's own use.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "trace/trace.h"

namespace peakbench::trace {

// Of consecutive events. Throws Damage.
class EventChecks {
 public:
  void add(const Event& event);
  void append(const EventChecks& next);  // of the events that follow

 private:
  void count_bytes(std::int64_t count);
  void follow(std::int32_t first, std::int32_t last);

  std::int64_t bytes_ = 0;
  std::int32_t first_step_ = kNone, last_step_ = kNone;
};

// Of all scopes, in their order. Throws Damage.
class ScopeChecks {
 public:
  void add(const ScopeMark& mark);

 private:
  std::uint64_t event_ = 0;
  std::int32_t step_ = kNone;
  std::map<std::pair<std::int32_t, ScopeKind>, std::int64_t> open_;
};

}  // namespace peakbench::trace
