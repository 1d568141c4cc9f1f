#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/card.h"
#include "emulator/host/context_memory.h"
#include "emulator/host/installation.h"

namespace peakbench::emulator {

// Other makers' cards, recognized by their names.

// For a card of another maker, such as mi300x: "is one of AMD's, which run PyTorch's ROCm build".
// Empty for all other names. Ignores case, dashes and spaces.
std::string other_maker(std::string_view name);

// Emulated cards as users type them: `h100-80gb`, `h100-80gb,memory=60GiB,count=8`, or the path of
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

// Reads a card with options:
//
// - memory=SIZE: instead of the card's own
// - count=N: devices
// - context=SIZE: set aside for the CUDA context, in all figures; 0: nothing
// - driver=12.8
// - streams=late: work is done when the host waits for it; default at-once
//
// Throws ConfigError:
//
// - an unknown card (names the nearest, or says why it is no CUDA card)
// - a size of zero or above 16 TiB
// - a card that this LibTorch has no code for
// - an invalid card file
Card parse_card(const std::string& spec, const Installation& installation);

// A card's JSON file: {"id", "title", "values": {NAME: {"value": ..., "source": "..."}}}. If
// measurements were published, also "context_memory" (context_memory.h). Throws ConfigError with
// the file and the key. `binary_arch` and `count` are left alone: they are not the card's.
Card read_card_file(const std::filesystem::path& path);

// The card that a user probably meant ("RTX 4090": rtx-4090-24gb); empty: none.
std::string nearest_card(const std::string& name, const Installation& installation);

// The same card with more memory than any program takes.
void take_limit_away(Card& card);

// Memory of one process's CUDA context. Every check whether something fits uses it. The first of:
//
// 1. the size that the user set aside (0: nothing);
// 2. the largest that was measured on such a card;
// 3. the largest that is known of any card.
ContextMemoryTaken context_taken(const Card& card);

// All cards of the installation, by name.
std::vector<CardListing> list_cards(const Installation& installation);

}  // namespace peakbench::emulator
