// What looks like a mistake in a program's memory, one function a kind. For the room's own use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/analysis/line_names.h"
#include "reports/analysis/steps.h"
#include "reports/analysis/why.h"
#include "trace/maxima.h"

namespace peakbench::analysis {

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
// The same with what comes before it; empty where no phases were recorded, as of a snapshot.
std::string when(const trace::Trace& trace, const char* before, trace::Phase phase,
                 std::int32_t step);
// "The peak is 8.104 GiB, in backward of step 2"
std::string level_text(const trace::Trace& trace, const trace::Peak& peak);

std::vector<Finding> find_growth(const Program& program);
std::vector<Finding> find_joined(const Program& program);
// `grown`: what find_growth has said already.
std::vector<Finding> find_kept(const Program& program, const std::vector<Finding>& grown);
std::vector<Finding> find_evaluation(const Program& program);
std::vector<Finding> find_larger_copies(const Program& program);
std::vector<Finding> find_frozen_copies(const Program& program);
std::vector<Finding> find_elsewhere(const Program& program);
std::vector<Finding> find_inputs(const Program& program);
std::vector<Finding> find_models(const Program& program);
std::vector<Finding> find_reserved(const Program& program);

}  // namespace peakbench::analysis
