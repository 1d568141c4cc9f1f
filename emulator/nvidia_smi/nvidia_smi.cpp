// nvidia-smi as emulated programs find it on their PATH: the list of cards, queries in CSV and a
// short table, from the card in the environment and what the program's processes have taken. What
// else the real one can is refused by name.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/card.h"
#include "core/shared_cards.h"
#include "nvidia_smi/query.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::smi;

namespace {

constexpr int kRefused = 2;
constexpr int kNoDriver = 9;

std::vector<CardNow> cards_now(const CardFacts& facts) {
  const char* folder = std::getenv(kSharedVariable);
  SharedCards* shared =
      folder && *folder ? map_shared_cards(std::string(folder) + "/" + kSharedCardsFile) : nullptr;
  std::vector<CardNow> cards;
  for (int index = 0; index < facts.count; ++index) {
    CardNow card{&facts, index, 0, {}};
    if (shared) card.used_bytes = used_of_card(*shared, index, card.users);
    cards.push_back(std::move(card));
  }
  return cards;
}

void print_list(const std::vector<CardNow>& cards) {
  for (const CardNow& card : cards)
    std::printf("GPU %d: %s (UUID: %s)\n", card.index, text_of(card, "name").c_str(),
                text_of(card, "uuid").c_str());
}

void print_row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ", ") + cell;
  std::puts(line.c_str());
}

void print_heading(const Arguments& asked, const std::vector<std::string>& units) {
  if (!asked.heading) return;
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < asked.fields.size(); ++i)
    cells.push_back(asked.fields[i] + (units[i].empty() ? "" : " [" + units[i] + "]"));
  print_row(cells);
}

void print_query(const Arguments& asked, const std::vector<CardNow>& cards) {
  std::vector<std::string> units;
  for (const std::string& field : asked.fields) units.push_back(unit_of(field));
  print_heading(asked, units);
  const auto row = [&](const auto& of, auto&& text) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < asked.fields.size(); ++i) {
      const bool unit = asked.units && !units[i].empty();
      cells.push_back(text(of, asked.fields[i]) + (unit ? " " + units[i] : ""));
    }
    print_row(cells);
  };
  for (const CardNow& card : cards) {
    if (asked.what == What::cards) row(card, text_of);
    for (const CardUser& user : card.users)
      if (asked.what == What::processes)
        row(user, [&](const CardUser& of, const std::string& field) {
          return text_of_process(card, of, field);
        });
  }
}

void print_table(const std::vector<CardNow>& cards) {
  std::printf("NVIDIA-SMI, emulated by Peakbench: cards that do not exist. Driver Version: %s\n\n",
              text_of(cards.at(0), "driver_version").c_str());
  std::puts("GPU  Name                                    Temp   Power            Memory-Usage");
  for (const CardNow& card : cards)
    std::printf("%3d  %-38s  %3sC   %sW / %sW   %sMiB / %sMiB\n", card.index,
                text_of(card, "name").c_str(), text_of(card, "temperature.gpu").c_str(),
                text_of(card, "power.draw").c_str(), text_of(card, "power.limit").c_str(),
                text_of(card, "memory.used").c_str(), text_of(card, "memory.total").c_str());
  std::puts("\nProcesses:");
  for (const CardNow& card : cards)
    for (const CardUser& user : card.users)
      std::printf("%3d  PID %d  %sMiB\n", card.index, user.pid,
                  text_of_process(card, user, "used_memory").c_str());
}

bool says_what_is_free(const Arguments& asked) {
  if (asked.what != What::cards) return asked.what != What::list;
  return std::ranges::any_of(asked.fields, [](const std::string& field) {
    return field.starts_with("memory.") && field != "memory.total";
  });
}

// The libraries of the emulated card are preloaded into this program as into any other.
void enter_in_ledger() {
  using Enter = void (*)(const char*);
  if (const auto enter =
          reinterpret_cast<Enter>(dlsym(RTLD_DEFAULT, "peakbench_emulator_says_free_memory")))
    enter("nvidia-smi");
}

void print(const Arguments& asked, const std::vector<CardNow>& cards) {
  switch (asked.what) {
    case What::list:
      return print_list(cards);
    case What::table:
      return print_table(cards);
    case What::cards:
    case What::processes:
      return print_query(asked, cards);
  }
}

}  // namespace

int main(int count, char** words) {
  const char* text = std::getenv(kCardVariable);
  if (!text || !*text) {
    std::puts("NVIDIA-SMI has failed: this process has no emulated card.");
    return kNoDriver;
  }
  try {
    const CardFacts facts = card_from_json(text);
    const Arguments asked = parse(std::vector<std::string>(words + 1, words + count));
    auto cards = cards_now(facts);
    choose(asked, cards);
    print(asked, cards);
    if (says_what_is_free(asked)) enter_in_ledger();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return kRefused;
  }
  return 0;
}
