// `--second-guess N`, the same in every command that runs programs on an emulated card.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace peakbench::cli {

inline void add_second_guess(CLI::App& command, std::int64_t& runs) {
  constexpr std::int64_t kMost = 20;
  command
      .add_option("--second-guess", runs,
                  "If the program read unknown values, run it N more times with other values and "
                  "compare the peaks (default 0)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->type_name("N");
}

}  // namespace peakbench::cli
