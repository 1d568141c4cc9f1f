// Which rank and step a file is of, by its name. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::programs {

struct RankFile {
  std::int64_t rank = 0;
  std::string name;
  std::optional<std::int64_t> step = {};  // a number after `step`, `iter`, `epoch`, `batch`, ...

  bool operator==(const RankFile&) const = default;
};

struct RankFiles {
  std::vector<RankFile> files;         // by rank, the last step of each
  std::vector<RankFile> earlier = {};  // earlier steps of these ranks, in order
  bool is_sure = false;                // every name says `rank` and its number
};

// Ranks of files, by the first of these rules that fits all names:
//
// 1. The number after `rank`, or after `local_rank`, if those are different. A name without `rank`
//    has the only number that counts no steps.
// 2. The only number in which the names differ, apart from those that count steps.
// 3. The order of the names, with numbers compared as numbers.
//
// Files of one rank are its steps. Throws std::invalid_argument if two of them are of one step.
RankFiles ranks_of(std::vector<std::string> names);

}  // namespace peakbench::programs
