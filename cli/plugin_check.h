// What `peakbench check` asks of a plugin, and what its runs answer. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/check_findings.h"
#include "planning/manifest.h"
#include "records/run.h"

namespace peakbench::cli {

// Choices of each option that are not its default: the other words, the other truth, the least
// number; "my-sgd,nesterov=true". One option is changed at a time.
std::vector<std::string> option_variants(const planning::Entry& entry);

// One entry of the plugin that is checked.
struct Checked {
  planning::Kind kind = planning::Kind::kStrategy;
  const planning::Entry* entry = nullptr;
};

// What was run, each a run of its own.
struct CheckRuns {
  records::Run card;     // alone and with every other strategy, on an emulated card
  records::Run options;  // every choice of every option there; no cases: there are no options
  records::Run again;    // alone, as before
  records::Run longer;   // alone, with twice the steps
  records::Run cpu;      // all of it on the CPU, where the promise is held
};

std::vector<Finding> findings_of(const Checked& checked, const CheckRuns& runs);

// Of the one run of a plugin's own test: every case runs and breaks no promise, or is refused; on a
// card it may run out of memory, too. The baseline must end ok.
Finding finding_of_test(const std::string& id, const records::Run& run, bool is_on_cpu);

}  // namespace peakbench::cli
