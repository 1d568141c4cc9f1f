// The case of a run that a person named.
#pragma once

#include <functional>
#include <string>

#include "records/run.h"

namespace peakbench::cli {

struct NamedCase {
  std::string run;   // the folder or file as typed, for messages
  std::string name;  // an id, a slug or a stack of strategies; empty: the only one that serves
  std::function<bool(const records::CaseResult&)> serves;
  std::string no_case;  // the error if no case is usable: "no case of this run has a trace"
};

// Whether it is the case's id, its slug or its stack.
bool is_called(const records::CaseSpec& spec, const std::string& name);

// A case chosen by name is returned even if it is not usable. Throws ConfigError if the name is
// unknown or ambiguous.
const records::CaseResult& named_case(const records::Run& run, const NamedCase& named);

}  // namespace peakbench::cli
