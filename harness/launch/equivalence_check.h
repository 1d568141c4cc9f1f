#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/case.h"
#include "planning/plan.h"
#include "records/case.h"

namespace peakbench::launch {

// Whether a case trains the parameters that its reference trains. No values are needed: it compares
// which parameters got no gradient in some step.

// Makes the promise of `one` broken where they differ; true: it did. Not where all bits were found
// to be the reference's, and not where the host read unknown values of an emulated card, by which
// it may have decided what runs.
bool compare_gradients(records::CaseResult& one, const records::CaseResult& reference);

// Reference checkpoints of the equivalence check. A case that others are compared with
// (PlannedCase::reference) writes its losses and parameters to a file that the others read. The
// file is deleted when all of them have run.

// Parameters of a model with its default options; 0: unknown.
using ParameterCount = std::function<std::int64_t(const std::string& model_id)>;

// Indices of a plan's cases, grouped by the table of their references (records::table_of), in order
// of appearance. In a group, each reference is followed by the cases compared with it, so that at
// most one reference's parameters are on the disk. The cases of a group are timed in turn.
std::vector<std::vector<std::size_t>> execution_groups(const planning::Plan& plan);

class ReferenceCheckpoints {
 public:
  ReferenceCheckpoints(const planning::Plan& plan, std::string run_directory,
                       ParameterCount parameters);

  // The case that this one is compared with; nullopt: its own, or not in the run.
  std::optional<std::size_t> reference_of(std::size_t index) const;

  // For a memory worker about to run. `ended`: what is known of cases whose memory worker has
  // ended, by plan index; null: not yet.
  ReferenceCheckpoint open(std::size_t index,
                           const std::vector<const records::CaseResult*>& ended) const;

  // After each memory worker: deletes its reference's file if no case without a result needs it.
  void close(std::size_t index, const std::vector<const records::CaseResult*>& ended) const;

 private:
  bool needs_reference(std::size_t index) const;
  bool is_wanted(std::size_t reference, const std::vector<const records::CaseResult*>& ended) const;
  void find_file(std::size_t reference, const records::CaseResult* ended,
                 ReferenceCheckpoint& result) const;
  std::string file_of(std::size_t reference) const;
  std::string shortage(std::size_t reference) const;

  const planning::Plan& plan_;
  std::string run_directory_;
  ParameterCount parameters_;
  std::vector<std::ptrdiff_t>
      reference_;  // by plan index: the case to compare with; -1: not in the run
};

}  // namespace peakbench::launch
