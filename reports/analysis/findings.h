#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/analysis/line_names.h"
#include "reports/analysis/why.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"

namespace peakbench::analysis {

// Where the steps of a trace that count begin, in order. For this module alone.

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

// Probable mistakes in a program's use of memory, one function a kind. For this module alone.

struct Program {
  const trace::Trace& trace;
  const std::vector<trace::Lifetime>& lifetimes;
  const trace::Peak& peak;
  const trace::OwnLines& lines;
  const LineNames& names;
  const Steps& steps;
  std::uint64_t first_call = 0;  // the first event of a step that is not its data
  std::optional<std::int64_t> reserved_bytes = {};  // at the most
};

std::string in_words(std::int64_t bytes);        // "12.0 MiB"
const char* in_words(trace::Category category);  // as it follows "5.200 GiB is": "activations"
// As it follows "The peak is 8.104 GiB,": "in backward of step 2".
std::string when(trace::Phase phase, std::int32_t step);
// The same after a text; empty if no phases were recorded, as in a snapshot.
std::string when(const trace::Trace& trace, const char* before, trace::Phase phase,
                 std::int32_t step);
// "The peak is 8.104 GiB, in backward of step 2"
std::string level_text(const trace::Trace& trace, const trace::Peak& peak);

std::vector<Finding> find_growth(const Program& program);
std::vector<Finding> find_joined(const Program& program);
// `grown`: findings of find_growth, which are not repeated.
std::vector<Finding> find_kept(const Program& program, const std::vector<Finding>& grown);
std::vector<Finding> find_evaluation(const Program& program);
std::vector<Finding> find_larger_copies(const Program& program);
std::vector<Finding> find_frozen_copies(const Program& program);
std::vector<Finding> find_elsewhere(const Program& program);
std::vector<Finding> find_inputs(const Program& program);
std::vector<Finding> find_models(const Program& program);
std::vector<Finding> find_reserved(const Program& program);
std::vector<Finding> find_gathered(const Program& program);
std::vector<Finding> find_outputs(const Program& program);
// `found`: findings so far; one of them may be why the step is unusual.
std::vector<Finding> find_unusual_step(const Program& program, const std::vector<Finding>& found);
std::vector<Finding> find_loaded(const Program& program);
std::vector<Finding> find_checkpointing(const Program& program);
std::vector<Finding> find_attention(const Program& program);
std::vector<Finding> find_pools(const Program& program);

// Bytes by line of a program, over the allocations that are added. For this module alone.

const trace::Event& event_of(const Program& program, const trace::Lifetime& lifetime);
// Empty where it has none.
const std::string& name_of(const Program& program, const trace::Lifetime& lifetime);
bool is_own(const Program& program, const trace::Lifetime& lifetime);  // of the trace's own space
bool is_at_peak(const Program& program, const trace::Lifetime& lifetime);

// The smallest finding that is reported: a thousandth of the peak, or another share of it.
inline constexpr std::int64_t kLeastShare = 1000, kLeastShareOfCopies = 20;
std::int64_t least(const Program& program, std::int64_t share = kLeastShare);

// " of the peak's 0.254 GiB"
std::string of_the_peak(const Program& program);

class ByLine {
 public:
  explicit ByLine(const Program& program);

  void add(const trace::Lifetime& lifetime);
  std::int64_t total() const { return total_; }
  std::int64_t of(std::size_t line) const { return lines_[line].bytes; }

  // Lines that are known and hold at least so much, the largest first; three at most: a finding of
  // more is a table.
  std::vector<std::size_t> largest(std::int64_t least) const;

  // "train.py:29 (loss_of), called at train.py:53": of the line's largest allocation.
  std::string in_words(std::size_t line) const;

 private:
  struct Line {
    std::int64_t bytes = 0;
    std::int64_t most = 0;              // of one allocation that was added
    std::int32_t stack = trace::kNone;  // of that one
  };

  const Program& program_;
  std::vector<Line> lines_;
  std::int64_t total_ = 0;
};

struct Saying {
  const char* what;  // as it follows "35.0 MiB of the peak's 0.259 GiB is"
  const char* advice;
};

// One for all lines, which names the largest; none where it is less than that share of the peak.
std::vector<Finding> of_all_lines(const Program& program, FindingKind kind, const ByLine& found,
                                  std::int64_t least_share, Saying words);

// Sizes of what a state_dict() holds.
std::set<std::int64_t> sizes_of_state(const Program& program);

}  // namespace peakbench::analysis
