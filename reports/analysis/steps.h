// Where the steps of a trace that count begin, in order. For the room's own use.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::analysis {

class Steps {
 public:
  explicit Steps(const trace::Trace& trace);

  std::size_t count() const { return begins_.size(); }
  std::uint64_t begin(std::size_t index) const { return begins_[index]; }
  std::int32_t number(std::size_t index) const { return numbers_[index]; }
  std::optional<std::size_t> index_of(std::int32_t step) const;

  // The first step that begins after this event; count() where none does.
  std::size_t first_after(std::uint64_t event) const;

  // Whether it is alive when this step begins.
  bool is_alive(const trace::Lifetime& lifetime, std::size_t index) const {
    return lifetime.first < begins_[index] && lifetime.last >= begins_[index];
  }

 private:
  std::vector<std::uint64_t> begins_;  // a step's first event
  std::vector<std::int32_t> numbers_;
};

}  // namespace peakbench::analysis
