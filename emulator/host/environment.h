#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/card.h"
#include "emulator/host/installation.h"
#include "host/compiled_library.h"
#include "host/process.h"
#include "host/torch_in_use.h"

namespace peakbench::emulator {

// What a process needs in its environment to find an emulated card.

// Variables to set, which replace equal names: the preloaded stub libraries (before those already
// in LD_PRELOAD), the card, and the folder for ledgers. Every process of the program writes its
// ledger there, and shares the cards through it. With an empty folder there are no ledgers, and
// nothing is shared.
//
// Valid while this process lives: the stub libraries may be found by a link that it deletes. Throws
// ConfigError if the link is needed and cannot be made.
process::Environment emulation_environment(const Card& card, const Installation& installation,
                                           const std::filesystem::path& ledger_folder);

// Single emulated ranks of a world that does not exist. The program runs once for each.
struct World {
  std::int64_t ranks = 0;         // of the world; 0: the program is no such rank
  std::vector<std::int64_t> run;  // those that run, one after the other
};

// What each run of the program has besides: the variables that torchrun sets, on nodes with this
// number of cards. One run without any where there is no world. Throws ConfigError for a rank that
// the world has not got.
std::vector<process::Environment> environments_of_runs(const World& world, int cards_of_a_node);

// The library that computes values (emulator/values), for the PyTorch of a program.

// May compile it, from the sources in the installation: see host/compiled_library.h.
pytorch::LibraryInUse values_library_for(const std::optional<pytorch::TorchInUse>& torch,
                                         const Installation& installation,
                                         const std::function<bool()>& cancelled);

// What a process needs in its environment so that small tensors of the emulated card have values.

// How `peakbench emulate` treats values.
struct ValuesRequest {
  bool compute = true;
  std::string assume;  // "nonzero=all", "nonzero=none" or empty
  int guess = 0;       // selects the plausible values for unknown ones; 0: the usual ones
};

// May compile a library for the program's PyTorch: `cancelled` is asked meanwhile. Throws
// ConfigError for an assumption that there is not.
process::Environment values_environment(const ValuesRequest& request,
                                        const Installation& installation,
                                        const std::optional<pytorch::TorchInUse>& torch,
                                        const std::function<bool()>& cancelled);
// The same with a library that there is.
process::Environment values_environment(const ValuesRequest& request,
                                        const pytorch::LibraryInUse& library);

}  // namespace peakbench::emulator
