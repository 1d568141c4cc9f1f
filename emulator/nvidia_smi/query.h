#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/card.h"
#include "core/shared_cards.h"

namespace peakbench::emulator::smi {

// What nvidia-smi is asked for.

enum class What { table, list, cards, processes };

struct Arguments {
  What what = What::table;
  std::vector<std::string> fields;  // of a query
  std::vector<std::string> only;    // cards, by index or UUID; empty: all
  bool heading = true, units = true;
};

// Throws std::invalid_argument with the sentence to print: what is asked for is not emulated.
Arguments parse(const std::vector<std::string>& words);

// The fields that nvidia-smi can be asked for, in the names and units of the real one.

struct CardNow {
  const CardFacts* facts;
  int index;
  std::uint64_t used_bytes;
  std::vector<CardUser> users;
};

// "MiB", or nothing.
std::string unit_of(const std::string& field);
std::string text_of(const CardNow& card, const std::string& field);
std::string text_of_process(const CardNow& card, const CardUser& user, const std::string& field);

// Leaves the cards that are asked for. Throws std::invalid_argument where there is no such card.
void choose(const Arguments& asked, std::vector<CardNow>& cards);

}  // namespace peakbench::emulator::smi
