// The judgement of step times: Student's quantiles against others' tables, what the method does to
// simulated times, and how it counts what is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "launch/rounds.h"
#include "reports/analysis/timing.h"

namespace peakbench::statistics {
namespace {

struct Quantile {
  double probability;
  int freedom;
  double t;
};

// From the table in NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
TEST(Student, AgreesWithPublishedTables) {
  for (const auto& [probability, freedom, t] : std::vector<Quantile>{{0.90, 1, 3.078},
                                                                     {0.95, 2, 2.920},
                                                                     {0.975, 3, 3.182},
                                                                     {0.99, 1, 31.821},
                                                                     {0.99, 2, 6.965},
                                                                     {0.99, 3, 4.541},
                                                                     {0.99, 4, 3.747},
                                                                     {0.99, 5, 3.365},
                                                                     {0.99, 7, 2.998},
                                                                     {0.99, 9, 2.821},
                                                                     {0.99, 19, 2.539},
                                                                     {0.99, 39, 2.426},
                                                                     {0.999, 10, 4.144},
                                                                     {0.99, 100, 2.364}})
    EXPECT_NEAR(student_t_quantile(probability, freedom), t, 0.0006)
        << probability << " " << freedom;
}

// scipy.stats.t.ppf of SciPy 1.17.1, ten decimals.
TEST(Student, AgreesWithScipy) {
  for (const auto& [probability, freedom, t] : std::vector<Quantile>{
           {0.975, 1, 12.7062047362},  {0.975, 2, 4.3026527297},   {0.975, 3, 3.1824463053},
           {0.975, 4, 2.7764451052},   {0.975, 5, 2.5705818356},   {0.975, 7, 2.3646242516},
           {0.975, 9, 2.2621571628},   {0.975, 10, 2.2281388520},  {0.975, 19, 2.0930240544},
           {0.975, 39, 2.0226909200},  {0.975, 100, 1.9839715185}, {0.975, 1000, 1.9623390808},
           {0.99, 1, 31.8205159538},   {0.99, 2, 6.9645567343},    {0.99, 3, 4.5407028586},
           {0.99, 4, 3.7469473880},    {0.99, 5, 3.3649299989},    {0.99, 7, 2.9979515669},
           {0.99, 9, 2.8214379250},    {0.99, 10, 2.7637694581},   {0.99, 19, 2.5394831906},
           {0.99, 39, 2.4258414097},   {0.99, 100, 2.3642173662},  {0.99, 1000, 2.3300826748},
           {0.999, 1, 318.3088389856}, {0.999, 2, 22.3271247701},  {0.999, 3, 10.2145318524},
           {0.999, 4, 7.1731822198},   {0.999, 5, 5.8934295314},   {0.999, 7, 4.7852896286},
           {0.999, 9, 4.2968056627},   {0.999, 10, 4.1437004940},  {0.999, 19, 3.5794001490},
           {0.999, 39, 3.3127880827},  {0.999, 100, 3.1737394937}, {0.999, 1000, 3.0984021639}})
    EXPECT_NEAR(student_t_quantile(probability, freedom) / t, 1, 1e-9)
        << probability << " " << freedom;
}

TEST(Student, IsSymmetricAndGoesBackAndForth) {
  EXPECT_DOUBLE_EQ(student_t_cdf(0, 7), 0.5);
  for (const int freedom : {1, 2, 3, 8, 31, 200})
    for (const double p : {0.001, 0.01, 0.3, 0.5, 0.9, 0.999})
      EXPECT_NEAR(student_t_cdf(student_t_quantile(p, freedom), freedom), p, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.01, 5), -student_t_quantile(0.99, 5), 1e-12);
}

// The same on every machine: std::normal_distribution is not.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}
  double uniform() {
    return (static_cast<double>(random_() >> 11) + 0.5) / static_cast<double>(1ULL << 53);
  }
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 random_;
};

constexpr int kTrials = 4000;  // the rate of 1% is then known to 0.16%
constexpr double kFalseAlarms = 0.01;
// No margin to hide behind: the rate of the test itself.
constexpr double kHairline = 1e-9;

template <typename LogRatio>
double alarms(std::size_t pairs, double margin, Direction direction, LogRatio log_ratio,
              std::size_t least = kLeastSamples) {
  int count = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> logs;
    for (std::size_t i = 0; i < pairs; ++i) logs.push_back(log_ratio(trial, i));
    if (judge_pairs(logs, margin, kFalseAlarms, least).direction == direction) ++count;
  }
  return static_cast<double>(count) / kTrials;
}

TEST(FalseAlarms, AreAsOftenAsSaidWithOrdinaryNoise) {
  for (const std::size_t pairs : {5U, 8U, 20U}) {
    Noise noise(pairs);
    const auto rate = alarms(pairs, kHairline, Direction::kWorse, [&](int, std::size_t) {
      return 0.03 * (noise.normal() - noise.normal());
    });
    EXPECT_GT(rate, 0.005) << pairs;  // a test that never alarms would pass the next line
    EXPECT_LT(rate, 0.015) << pairs;
  }
}

// As tables judge: a few rounds, no margin.
TEST(FalseAlarms, AreAsOftenAsSaidWithFewRounds) {
  for (const std::size_t rounds : {2U, 3U, 5U}) {
    Noise noise(10 + rounds);
    const auto rate = alarms(
        rounds, 0, Direction::kBetter,
        [&](int, std::size_t) { return 0.1 * (noise.normal() - noise.normal()); }, 2);
    EXPECT_GT(rate, 0.005) << rounds;
    EXPECT_LT(rate, 0.015) << rounds;
  }
}

// The same comparison made twice, with three rounds of 10% noise: that both times something is
// claimed, and the opposite, is to be expected twice in ten thousand.
TEST(FalseAlarms, TwoRunsDoNotContradictEachOther) {
  Noise noise(21);
  int contradictions = 0;
  const auto run = [&] {
    std::vector<double> logs;
    for (int round = 0; round < 3; ++round) logs.push_back(0.1 * (noise.normal() - noise.normal()));
    return judge_pairs(logs, 0, kFalseAlarms, 2).direction;
  };
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto first = run(), second = run();
    contradictions += (first == Direction::kWorse && second == Direction::kBetter) ||
                      (first == Direction::kBetter && second == Direction::kWorse);
  }
  EXPECT_LE(contradictions, 4);
}

TEST(FalseAlarms, AreNoMoreWhereProcessesAreDisturbed) {
  Noise noise(3);
  const auto time = [&] {
    const double disturbed = noise.uniform() < 0.1 ? 0.2 * noise.uniform() : 0;
    return 0.01 * noise.normal() + disturbed;
  };
  EXPECT_LT(alarms(10, kHairline, Direction::kWorse,
                   [&](int, std::size_t) {
                     const double base = time();
                     return time() - base;
                   }),
            0.015);
}

// The machine gets slower all the time: who goes first decides, and each does as often.
TEST(FalseAlarms, AreNoMoreOnAMachineThatDrifts) {
  Noise noise(4);
  EXPECT_LT(alarms(10, kHairline, Direction::kWorse,
                   [&](int, std::size_t pair) {
                     const auto round = static_cast<std::int64_t>(pair);
                     const double drift = launch::round_order(2, round).front() == 0 ? 0.01 : -0.01;
                     return 0.01 * (noise.normal() - noise.normal()) + drift;
                   }),
            0.015);
}

TEST(FalseAlarms, AreFewerWithAMargin) {
  Noise noise(5);
  EXPECT_LT(alarms(20, 0.02, Direction::kWorse,
                   [&](int, std::size_t) { return 0.01 * (noise.normal() - noise.normal()); }),
            0.004);
}

TEST(Power, FivePerCentAreFound) {
  Noise noise(6);
  const auto slower = [&](int, std::size_t) {
    return std::log(1.05) + 0.02 * (noise.normal() - noise.normal());
  };
  EXPECT_GT(alarms(20, 0.02, Direction::kWorse, slower), 0.99);
}

std::vector<double> spread_out(double mean, double width) {
  return {mean - width, mean - width / 2, mean, mean + width / 2, mean + width, mean};
}

TEST(Judge, TellsTheFourApart) {
  EXPECT_EQ(judge_pairs(spread_out(0.05, 0.01), 0.02, 0.01).direction, Direction::kWorse);
  EXPECT_EQ(judge_pairs(spread_out(-0.05, 0.01), 0.02, 0.01).direction, Direction::kBetter);
  EXPECT_EQ(judge_pairs(spread_out(0.002, 0.005), 0.02, 0.01).direction, Direction::kSame);
  EXPECT_EQ(judge_pairs(spread_out(0.01, 0.1), 0.02, 0.01).direction, Direction::kUnknown);
}

// Certainly slower, and certainly by less than anybody cares for.
TEST(Judge, WithinTheMarginIsTheSame) {
  const auto found = judge_pairs(spread_out(0.005, 0.001), 0.02, 0.01);
  EXPECT_GT(found.low, 1);
  EXPECT_EQ(found.direction, Direction::kSame);
}

// Closed form: six values, standard deviation 0.01, t = 3.365.
TEST(Judge, HasStudentsInterval) {
  const std::vector<double> logs{0.01, -0.01, 0.01, -0.01, 0.01, -0.01};
  const auto found = judge_pairs(logs, 0.5, 0.01);
  const double half = 3.3649299989 * std::sqrt(6 * 1e-4 / 5) / std::sqrt(6);
  EXPECT_NEAR(found.high, std::exp(half), 1e-9);
  EXPECT_NEAR(found.low, std::exp(-half), 1e-9);
  EXPECT_NEAR(found.ratio, 1, 1e-12);
}

TEST(Judge, SaysHowManyMoreAreNeeded) {
  EXPECT_EQ(judge_pairs({0.1, 0.1}, 0.02, 0.01).more, 3);
  EXPECT_EQ(judge_pairs({}, 0.02, 0.01).more, 5);
  EXPECT_EQ(judge_pairs({0.1}, 0, 0.01, 2).more, 1);
  EXPECT_EQ(judge_pairs({0.1, 0.1001}, 0, 0.01, 2).direction, Direction::kWorse);
  const auto found = judge_pairs(spread_out(0.015, 0.02), 0.02, 0.01);
  ASSERT_EQ(found.direction, Direction::kUnknown);
  ASSERT_TRUE(found.more);
  // With so many values of the same spread it is settled, with one fewer it is not.
  const double sd = std::sqrt((2 * 4e-4 + 2 * 1e-4) / 5);
  const auto half = [&](std::int64_t n) {
    return student_t_quantile(0.99, static_cast<int>(n - 1)) * sd / std::sqrt(n);
  };
  const auto needed = 6 + *found.more;
  EXPECT_LT(half(needed), 0.015);
  EXPECT_GE(half(needed - 1), 0.015);
}

TEST(Judge, EqualTimesAreTheSame) {
  const auto found = judge_pairs({0, 0, 0, 0, 0}, 0.02, 0.01);
  EXPECT_EQ(found.direction, Direction::kSame);
  EXPECT_DOUBLE_EQ(found.low, 1);
}

// Welch's example: freedom and interval worked out by hand below.
TEST(Judge, GroupsAreWelchs) {
  const std::vector<double> base{0.00, 0.01, -0.01, 0.00, 0.00, 0.00};
  const std::vector<double> now{0.10, 0.14, 0.06, 0.10, 0.10};
  const auto found = judge_groups(base, now, 0.02, 0.01);
  const double a = 4e-5 / 6, b = 8e-4 / 5;  // variances 2e-4/5 and 3.2e-3/4 over their counts
  const double freedom = (a + b) * (a + b) / (a * a / 5 + b * b / 4);
  EXPECT_EQ(static_cast<int>(freedom), 4);
  const double half = 3.7469473880 * std::sqrt(a + b);
  EXPECT_NEAR(std::log(found.low), 0.1 - half, 1e-9);
  EXPECT_NEAR(std::log(found.high), 0.1 + half, 1e-9);
  EXPECT_EQ(found.direction, Direction::kWorse);
  EXPECT_EQ(found.samples, 5U);
}

TEST(Median, IsAStepThatWasMeasured) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({3}), 3);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2);
  EXPECT_EQ(median_of({5, 1, 3}), 3);
}

}  // namespace
}  // namespace peakbench::statistics
