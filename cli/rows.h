// One case as a line of text.
#pragma once

#include <cstdint>
#include <string>

#include "result/case.h"

namespace peakbench::cli {

// "[ 3/12] ok  5.670 GiB  812.3 ms/step  1.23 samples/s  ID", a second line with the reason where
// it is not ok.
std::string case_row(std::size_t place, std::size_t count, const result::CaseResult& result);

// "[ 3/12]".
std::string counter(std::size_t place, std::size_t count);

// What fits in `width` columns, the middle left out ("vit-l-16/...b1").
std::string elided(const std::string& text, std::size_t width);

// "12 s", "3 min 05 s", "2 h 14 min".
std::string duration(std::int64_t seconds);

}  // namespace peakbench::cli
