#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/host/answer.h"
#include "emulator/host/card_use.h"
#include "emulator/host/emulated_program.h"

namespace peakbench::emulator {

// What each process took of its cards, a row a device of a process.

// Of at most `width` columns. Of many processes, those that took the same share a row, and only the
// largest rows are shown. Empty without uses.
std::string process_table(const std::vector<CardUse>& uses, int width);

// Events of the processes: reads by the host, refusals, calls without a model. Identical ones of
// several processes are printed once.
std::string process_details(const std::vector<const Ledger*>& ledgers,
                            const std::vector<CardUse>& uses);

// What `peakbench emulate` prints when the program has ended: the summary line and the verdict; in
// detail, tables and everything else that is known.

// How much of it.
enum class View {
  kSummary,  // whether it fits and by how much (short_answer), and the verdict in one sentence
  kDetails,
  kAnswer,  // the answer alone
  kNothing
};

// Of the window.
struct Look {
  View view = View::kSummary;
  bool colours = false;
  std::function<int()> width = [] { return 100; };  // columns
  std::string card_note = {};                       // behind the card's name where it is short
};

// Safe for a terminal: what the program or its processes are called cannot move the cursor.
std::string emulation_text(const EmulatedProgram& program, const Answer& answer, const Look& look);

// Whether it fits and by how much: "Fits t4-16gb: reserves 0.115 GiB of 14.748 GiB, 14.0 GiB
// left beside a CUDA context of 0.6 GiB; exact."
std::string short_answer(const EmulatedProgram& program, const Answer& answer);

// Words within the window's width, which begin with "Label: ", in colour where the window has it.
std::string labelled(const std::string& label, const std::string& words, const Look& look);

}  // namespace peakbench::emulator
