// What nvidia-smi is asked for.
#pragma once

#include <string>
#include <vector>

namespace peakbench::emulator::smi {

enum class What { table, list, cards, processes };

struct Arguments {
  What what = What::table;
  std::vector<std::string> fields;  // of a query
  std::vector<std::string> only;    // cards, by index or UUID; empty: all
  bool heading = true, units = true;
};

// Throws std::invalid_argument with the sentence to print: what is asked for is not emulated.
Arguments parse(const std::vector<std::string>& words);

}  // namespace peakbench::emulator::smi
