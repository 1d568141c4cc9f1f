// Which of our strategies make a part of memory smaller, and what a user's script does in their
// place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::analysis {

struct Against {
  std::string cost;                     // the manifests' word for the part: "optimizer_state"
  std::vector<std::string> strategies;  // ids, those that need least of a program first
};

// Of what is allocated in a phase under a category; no strategies where none is meant for it. What
// each makes of the part is in its manifest (`cost`), in words.
Against strategies_against(trace::Category category, trace::Phase phase);

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
