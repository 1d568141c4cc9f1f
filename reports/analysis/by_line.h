// Bytes by line of a program, over the allocations that are added. For the room's own use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/analysis/findings.h"

namespace peakbench::analysis {

const trace::Event& event_of(const Program& program, const trace::Lifetime& lifetime);
// Empty where it has none.
const std::string& name_of(const Program& program, const trace::Lifetime& lifetime);
bool is_own(const Program& program, const trace::Lifetime& lifetime);  // of the trace's own space
bool is_at_peak(const Program& program, const trace::Lifetime& lifetime);

// What is too little to be told: a thousandth of the peak, or another share of it.
inline constexpr std::int64_t kLeastShare = 1000;
std::int64_t least(const Program& program, std::int64_t share = kLeastShare);

// " of the peak's 0.254 GiB"
std::string of_the_peak(const Program& program);

class ByLine {
 public:
  explicit ByLine(const Program& program);

  void add(const trace::Lifetime& lifetime, int sign = 1);
  std::int64_t total() const { return total_; }
  std::int64_t of(std::size_t line) const { return lines_[line].bytes; }
  std::int64_t at_peak(std::size_t line) const { return lines_[line].at_peak; }
  std::int64_t at_peak() const { return at_peak_; }

  // Lines that are known and hold at least so much, the largest first; three at most: a finding of
  // more is a table.
  std::vector<std::size_t> largest(std::int64_t least) const;

  // "train.py:29 (loss_of), called at train.py:53": of the line's largest allocation.
  std::string in_words(std::size_t line) const;

 private:
  struct Line {
    std::int64_t bytes = 0, at_peak = 0;
    std::int64_t most = 0;              // of one allocation that was added
    std::int32_t stack = trace::kNone;  // of that one
  };

  const Program& program_;
  std::vector<Line> lines_;
  std::int64_t total_ = 0, at_peak_ = 0;
};

}  // namespace peakbench::analysis
