// A check for options that take large whole numbers. CLI11's own conversion takes a row of digits
// that is too long for the largest number, and a negative one for a large unsigned one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace peakbench::cli {

// From `least` to the largest of 64 bits with a sign.
CLI::Validator whole_number(std::int64_t least);

}  // namespace peakbench::cli
