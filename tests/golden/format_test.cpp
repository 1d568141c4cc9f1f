#include "reports/render/format.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "base/numbers.h"
#include "reports/render/template.h"

namespace peakbench::reports {
namespace {

TEST(Format, BytesArePeoplesGiB) {
  EXPECT_EQ(gib(6087938768), "5.670");
  EXPECT_EQ(gib(0), "0");
  EXPECT_EQ(gib(4096), "<0.001");
  EXPECT_EQ(gib(1099511627776LL * 2), "2,048.000");
  EXPECT_EQ(signed_gib(-1183735712), "−1.102");
  EXPECT_EQ(signed_gib(1183735712), "+1.102");
  EXPECT_EQ(signed_gib(-4096), "−<0.001");
  EXPECT_EQ(grouped(6087938768), "6,087,938,768");
  EXPECT_EQ(grouped(-1234), "−1,234");
  EXPECT_EQ(grouped(123), "123");
}

TEST(Format, RatiosAndNumbers) {
  EXPECT_EQ(signed_percent(-0.1944), "−19.4");
  EXPECT_EQ(signed_percent(0.1944), "+19.4");
  EXPECT_EQ(signed_percent(-0.0001), "0.0");
  EXPECT_EQ(decimal(1234.5, 4), "1,234");
  EXPECT_EQ(decimal(0.012345, 3), "0.0123");
  EXPECT_EQ(decimal(-12.345, 3), "−12.3");
  EXPECT_EQ(plain_number(4.8), "4.8");
  EXPECT_EQ(plain_number(6), "6");
  EXPECT_EQ(plain_number(-0.0), "0");
  EXPECT_EQ(fraction(0.5), "0.5");
  EXPECT_EQ(fraction(1), "1");
  EXPECT_EQ(fraction(-0.00001), "0");
  EXPECT_EQ(scientific(0.00032), "3.2e-04");
}

TEST(Format, WhatIsNoFiniteNumber) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decimal(kNan, 7), "NaN");
  EXPECT_EQ(decimal(-kInf, 7), "−∞");
  EXPECT_EQ(scientific(kNan), "NaN");
  EXPECT_EQ(scientific(kInf), "∞");
  EXPECT_EQ(percent(kNan), "NaN");
  EXPECT_EQ(signed_percent(kNan), "NaN");
  EXPECT_EQ(signed_percent(kInf), "+∞");
  EXPECT_EQ(signed_percent(-kInf), "−∞");
  EXPECT_EQ(plain_number(kNan), "NaN");
  EXPECT_EQ(fraction(kNan), "0") << "a place in a drawing";
}

TEST(Format, TimesAndDates) {
  EXPECT_EQ(milliseconds(2431000000), "2,431");
  EXPECT_EQ(milliseconds(812345), "0.8123");
  EXPECT_EQ(duration(812000000), "812 ms");
  EXPECT_EQ(duration(12300000000), "12.3 s");
  EXPECT_EQ(duration(185000000000), "3 min 05 s");
  EXPECT_EQ(duration(3900000000000), "1 h 05 min");
  EXPECT_EQ(date_for_people("2026-11-03T14:05:09Z"), "2026-11-03 14:05 UTC");
  EXPECT_EQ(date_for_people("yesterday"), "yesterday");
}

TEST(Format, PublishedUnits) {
  EXPECT_EQ(bytes_of(6, "GB"), 6e9);
  EXPECT_EQ(bytes_of(1, "GiB"), 1073741824.0);
  EXPECT_EQ(bytes_of(1, "parsec"), std::nullopt);
  EXPECT_EQ(rate_of(2091, "tok/s")->rate, Rate::kTokensPerSecond);
  EXPECT_EQ(rate_of(43.6, "img/s")->rate, Rate::kSamplesPerSecond);
  EXPECT_DOUBLE_EQ(rate_of(157.42, "ms")->value, 0.15742);
  EXPECT_FALSE(rate_of(1, "GB"));
}

TEST(Expression, Calculates) {
  EXPECT_DOUBLE_EQ(evaluate("2 * 38 + 112"), 188);
  EXPECT_DOUBLE_EQ(evaluate("-(1.5 - 2)/4"), 0.125);
  EXPECT_DOUBLE_EQ(evaluate("100-30-20"), 50);
}

TEST(Expression, SaysWhatItCannotRead) {
  for (const char* wrong : {"", "1 +", "(1", "1 2", "x", "1/0", "1e400", "1,234"}) {
    EXPECT_THROW(evaluate(wrong), std::invalid_argument) << wrong;
  }
  EXPECT_THROW(evaluate(std::string(5000, '(')), std::invalid_argument);
}

}  // namespace
}  // namespace peakbench::reports
