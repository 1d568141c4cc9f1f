#include <gtest/gtest.h>

#include "in_emulation.h"

int main(int count, char** words) {
  peakbench::emulator::start_again_on("h200-141gb", words);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
