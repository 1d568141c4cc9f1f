#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/numbers.h"

namespace peakbench {
namespace {

TEST(Bytes, EveryUnitIsRead) {
  EXPECT_EQ(bytes_from_text("4096"), 4096);
  EXPECT_EQ(bytes_from_text("3B"), 3);
  EXPECT_EQ(bytes_from_text("3KiB"), 3 << 10);
  EXPECT_EQ(bytes_from_text("3 MiB"), 3 << 20);
  EXPECT_EQ(bytes_from_text("1.5GiB"), std::int64_t{3} << 29);
  EXPECT_EQ(bytes_from_text("3TiB"), std::int64_t{3} << 40);
  EXPECT_EQ(bytes_from_text("3kB"), 3'000);
  EXPECT_EQ(bytes_from_text("3MB"), 3'000'000);
  EXPECT_EQ(bytes_from_text("3GB"), 3'000'000'000);
  EXPECT_EQ(bytes_from_text("3TB"), 3'000'000'000'000);
}

TEST(Bytes, WhatIsNoSizeIsNone) {
  for (const char* text :
       {"", "GiB", "1gib", "1  GiB", "1 GiB ", "0", "-1", "0.4", "1e18B1", "nan", "inf"})
    EXPECT_EQ(bytes_from_text(text), std::nullopt) << text;
  EXPECT_EQ(bytes_from_text("1e18"), 1'000'000'000'000'000'000);
  EXPECT_EQ(bytes_from_text("1.1e18"), std::nullopt);
}

TEST(Bytes, PublishedUnitsAreReadInAnyCase) {
  EXPECT_EQ(bytes_of(2, "BYTES"), 2);
  EXPECT_EQ(bytes_of(2, "gib"), 2 * kGiB);
  EXPECT_EQ(bytes_of(2, "Gb"), 2e9);
  EXPECT_EQ(bytes_of(2, "mb"), 2e6);
  EXPECT_EQ(bytes_of(2, ""), std::nullopt);
  EXPECT_EQ(bytes_of(2, "Gbit"), std::nullopt);
}

TEST(Bytes, ASizeIsWrittenInAUnitThatShowsIt) {
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1024), "1.0 KiB");
  EXPECT_EQ(size_text((1 << 20) - 103), "1023.9 KiB");
  EXPECT_EQ(size_text(1 << 20), "1.0 MiB");
  EXPECT_EQ(size_text(107'374'182), "102.4 MiB");
  EXPECT_EQ(size_text(107'374'183), "0.100 GiB");
  EXPECT_EQ(gib_text(std::int64_t{3} << 29), "1.500 GiB");
  EXPECT_EQ(gib_text(std::int64_t{3} << 29, 1), "1.5 GiB");
}

TEST(Bytes, AMemorySizeWithoutItsUnitIsExplained) {
  EXPECT_EQ(why_no_memory_size("1048576"), "");
  EXPECT_EQ(why_no_memory_size("1KiB"), "");
  EXPECT_EQ(why_no_memory_size("1048575"),
            "that is 1048575 bytes; the unit is missing, as in 1048575GiB");
  EXPECT_TRUE(why_no_memory_size("much").starts_with("expected a size above 0 with B, KiB"));
}

}  // namespace
}  // namespace peakbench
