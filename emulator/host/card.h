#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/card.h"
#include "emulator/host/context_memory.h"
#include "emulator/host/installation.h"

namespace peakbench::emulator {

// Cards that are no CUDA cards, told by their names.

// "is one of AMD's, which run PyTorch's ROCm build", for mi300x and its like; empty for a name that
// is nobody's. Case, dashes and spaces do not matter.
std::string other_maker(std::string_view name);

// Emulated cards as people name them: `h100-80gb`, `h100-80gb,memory=60GiB,count=8`, or the path of
// a JSON file.

struct Card {
  CardFacts facts;
  std::string title;  // NVIDIA H100 SXM5 80 GB
  std::string spec;   // as it was asked for
  ContextMemories context_memory;
  bool context_is_asked = false;  // by the option context=SIZE, which may be 0
};

struct CardListing {
  std::string id, title;
  std::uint64_t total_memory_bytes;
  std::string compute_capability;
  bool served;         // this LibTorch has code for it
  std::string reason;  // why not
  ContextMemories context_memory;
};

// Options: memory=SIZE (the card's memory instead of its own), count=N devices, context=SIZE (set
// aside for the CUDA context in the figures; 0: nowhere), driver=12.8, streams=late (work is done
// when the host waits for it; at-once unless given). Throws ConfigError: unknown card (the nearest
// named; one that is no CUDA card, with what it is), a size of zero or above 16 TiB, a card that
// this LibTorch has no code for, a file that is no card.
Card parse_card(const std::string& spec, const Installation& installation);

// The card that somebody who typed this probably meant ("RTX 4090": rtx-4090-24gb); empty: none.
std::string nearest_card(const std::string& name, const Installation& installation);

// The same card with more memory than any program takes.
void take_limit_away(Card& card);

// What one process's CUDA context takes of the card: what the user set aside for it, or nothing if
// that is 0; else the most that was measured on such a card; else the largest known of any card.
// Whatever says whether something fits goes by it.
ContextMemoryTaken context_taken(const Card& card);

// All cards of the installation, by name.
std::vector<CardListing> list_cards(const Installation& installation);

}  // namespace peakbench::emulator
