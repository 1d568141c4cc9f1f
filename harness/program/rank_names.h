// Which rank's a file is, by its name. For the module's own use. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peakbench::program {

struct RankFile {
  std::int64_t rank = 0;
  std::string name;

  bool operator==(const RankFile&) const = default;
};

struct RankFiles {
  std::vector<RankFile> files;  // by rank
  bool is_sure = false;         // every name says `rank` and a number of its own
};

// The first of these that holds of all names, in this order: the number behind `rank` (not behind
// `local_rank`, unless there is no other) is a different one in each; the names differ in one
// number only, which is not a step's or a time's; else the order of the names, numbers as numbers.
RankFiles ranks_of(std::vector<std::string> names);

}  // namespace peakbench::program
