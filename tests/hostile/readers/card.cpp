#include "emulator/host/card.h"

#include "readers/readers.h"

namespace peakbench::hostile {

void read_card(const std::string& path) { emulator::read_card_file(path); }

}  // namespace peakbench::hostile
