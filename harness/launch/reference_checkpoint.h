// The equivalence check's reference checkpoints: a case that others are held against
// (PlannedCase::reference) leaves its losses and parameters in a file that these read, and that is
// deleted once none of them is left to run.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/case.h"
#include "plan/plan.h"

namespace peakbench::launch {

// Parameters of a model with its default options; 0: not known.
using ParameterCount = std::function<std::int64_t(const std::string& model_id)>;

// The indices of a plan's cases, grouped by the table that they stand in (result::table_of), in
// order of appearance; in a group, each reference and at once those held against it: so at most one
// reference's parameters lie on the disk. The cases of a group are timed in turn.
std::vector<std::vector<std::size_t>> execution_groups(const plan::Plan& plan);

class ReferenceCheckpoints {
 public:
  ReferenceCheckpoints(const plan::Plan& plan, std::string run_directory,
                       ParameterCount parameters);

  // The case that this one is compared with; nullopt: its own, or not in the run.
  std::optional<std::size_t> reference_of(std::size_t index) const;

  // For a memory worker about to run. `ended`: what is known of cases whose memory worker has
  // ended, by plan index; null: not yet.
  ReferenceCheckpoint open(std::size_t index,
                           const std::vector<const result::CaseResult*>& ended) const;

  // After each memory worker: deletes its reference's file if no case without a result needs it.
  void close(std::size_t index, const std::vector<const result::CaseResult*>& ended) const;

 private:
  bool needs_reference(std::size_t index) const;
  bool is_wanted(std::size_t reference, const std::vector<const result::CaseResult*>& ended) const;
  void find_file(std::size_t reference, const result::CaseResult* ended,
                 ReferenceCheckpoint& result) const;
  std::string file_of(std::size_t reference) const;
  std::string shortage(std::size_t reference) const;

  const plan::Plan& plan_;
  std::string run_directory_;
  ParameterCount parameters_;
  std::vector<std::ptrdiff_t>
      reference_;  // by plan index: what it is held against, -1: not in the run
};

}  // namespace peakbench::launch
