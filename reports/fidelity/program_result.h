// What `peakbench emulate --json` wrote, as a record's figure.
#pragma once

#include <string>

#include "reports/fidelity/record.h"

namespace peakbench::fidelity {

// The figure of the record's kind, of the process whose is largest. Throws ConfigError with the
// path: no such file, another card, a program that failed, a kind that the file does not have
// (active), counts of PyTorch's that are not known.
Emulated read_program_result(const std::string& path, const Record& record);

}  // namespace peakbench::fidelity
