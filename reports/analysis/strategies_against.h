// Which of our strategies make a part of memory smaller, and what a user's script does in their
// place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/case.h"
#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::analysis {

struct Against {
  std::string cost;                     // the manifests' word for the part: "optimizer_state"
  std::vector<std::string> strategies;  // ids, those that need least of a program first
};

// Strategies against memory that is allocated in a phase under a category; may be empty. Each
// strategy's effect on it is in its manifest (`cost`), in words.
Against strategies_against(trace::Category category, trace::Phase phase);

// A peak by category, the largest first.
std::vector<std::pair<std::string, std::int64_t>> parts_by_size(const records::Memory& memory);

// Strategies to try against a case's peak, without those already in the stack. First those against
// parts of at least a twentieth of the peak, the largest part first. Then `more`: strategies
// without a declared purpose.
std::vector<std::string> strategies_to_try(const records::CaseResult& now,
                                           const std::vector<std::string>& more);

// The line of PyTorch, or of a package for it, that does in a script what a strategy does:
// "torch.optim.AdamW(parameters, fused=True)". Empty: no single line does.
std::string_view line_for_scripts(std::string_view strategy);

// What a user's program could change about what is allocated at an event: "28% is optimizer state,
// which torchao.optim.AdamW8bit(parameters) makes smaller (peakbench describe adamw-8bit)". Of the
// copies that an update makes, if they are an eighth, else of the largest category but parameters,
// if it is a quarter. Empty unless the trace shows that the line would help.
std::string remedy_for_program(const trace::Trace& trace,
                               const std::vector<trace::Lifetime>& lifetimes, std::uint64_t event);

}  // namespace peakbench::analysis
