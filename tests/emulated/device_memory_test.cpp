// What nvidia-smi would show, and the verdict of reserved memory: estimates, and what they lack.
#include "emulator/host/device_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "core/ledger.h"
#include "emulator/host/emulation_text.h"
#include "program_fixture.h"

namespace peakbench::emulator {
namespace {

using testing::HasSubstr;

class DeviceMemoryTest : public ProgramFixture {
 protected:
  DeviceMemory memory() { return device_memory_of(answer()).value(); }
  std::string line() { return device_memory_line(memory()); }

  static void communicate(Ledger& ledger, int ranks) {
    ledger.devices[0].communicator_ranks = ranks;
  }

  static std::string text_of(const char* path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

TEST_F(DeviceMemoryTest, IsWhatCudaGaveAndAContext) {
  add_process(3 * kGiB);
  EXPECT_EQ(memory().bytes(), 3 * kGiB + 512 * kMiB);
  EXPECT_EQ(line(),
            "As nvidia-smi would show it: about 3.5 GiB, an estimate (3.000 GiB from CUDA, a CUDA "
            "context of 512 MiB).\n");
  EXPECT_EQ(to_json(memory()),
            nlohmann::json({{"estimate", true},
                            {"bytes", 3 * kGiB + 512 * kMiB},
                            {"exceeds_card", false},
                            {"given_bytes", 3 * kGiB},
                            {"context_bytes", 512 * kMiB},
                            {"contexts", 1},
                            {"context_measured", true},
                            {"nccl", nullptr},
                            {"lacks_nccl", false},
                            {"on_real_cards_percent", {kEstimateLowest, kEstimateHighest}}}));
}

TEST_F(DeviceMemoryTest, HasAContextOfEachProcessOnTheCard) {
  add_process(1 * kGiB);
  add_process(2 * kGiB);
  EXPECT_EQ(memory().bytes(), 4 * kGiB);
  EXPECT_THAT(line(), HasSubstr("3.000 GiB from CUDA, 2 CUDA contexts of 1.0 GiB together"));
}

TEST_F(DeviceMemoryTest, CountsAContextOnceThatWasSetAside) {
  program_.card.facts.context_bytes = 600 * kMiB;
  add_process(1 * kGiB);
  EXPECT_EQ(memory().given_bytes, 1 * kGiB);
  EXPECT_EQ(memory().bytes(), 1 * kGiB + 600 * kMiB);
}

TEST_F(DeviceMemoryTest, SaysWhatIsNotKnown) {
  program_.card.context_memory.clear();
  add_process(1 * kGiB);
  EXPECT_FALSE(memory().context_measured);
  EXPECT_THAT(line(), HasSubstr("767 MiB, the largest known: of this card none is"));
}

TEST_F(DeviceMemoryTest, OfSeveralRanksHasWhatNcclTookElsewhere) {
  for (int rank = 0; rank < 3; ++rank) communicate(add_process(1 * kGiB, rank, rank), 3);
  EXPECT_EQ(memory().bytes(), 1 * kGiB + 512 * kMiB + 1921 * kMiB);
  EXPECT_THAT(line(), HasSubstr("about 3.4 GiB, an estimate (1.000 GiB from CUDA, a CUDA context "
                                "of 512 MiB, 1.9 GiB for NCCL's buffers and what else lay there, "
                                "815 MiB to 3.3 GiB, in runs on 2 A100s)"));
  const auto json = to_json(memory());
  EXPECT_EQ(json.at("nccl"), nlohmann::json({{"bytes", 1921 * kMiB},
                                             {"bytes_range", {815 * kMiB, 3413 * kMiB}},
                                             {"measured_ranks", 2}}));
  EXPECT_FALSE(json.at("lacks_nccl"));
  EXPECT_EQ(json.at("on_real_cards_percent"),
            nlohmann::json({kEstimateLowestOfRanks, kEstimateHighestOfRanks}));
  for (const auto& ledger : owned_) communicate(*ledger, 128);
  EXPECT_EQ(memory().nccl.value().ranks, 4);
}

TEST_F(DeviceMemoryTest, OfOneRankSaysThatNcclIsMissing) {
  communicate(add_process(1 * kGiB, 0, 0), 1);
  add_process(1 * kGiB, 1);  // a process without one, on a card of its own
  EXPECT_EQ(memory().bytes(), 1 * kGiB + 512 * kMiB);
  EXPECT_TRUE(to_json(memory()).at("lacks_nccl"));
  EXPECT_THAT(line(), HasSubstr("a CUDA context of 512 MiB; NCCL's buffers are missing)"));
}

TEST_F(DeviceMemoryTest, SaysWhereTheCardHasLess) {
  communicate(add_process(79 * kGiB, 0, 0), 2);
  EXPECT_EQ(answer().fits, true);
  EXPECT_TRUE(to_json(memory()).at("exceeds_card"));
  EXPECT_THAT(line(), HasSubstr("in runs on 2 A100s): more than the card has.\n"));
}

TEST_F(DeviceMemoryTest, OfAProgramThatUsedNoCardIsNothing) {
  EXPECT_FALSE(device_memory_of(answer()));
  EXPECT_EQ(reserved_line(program_, answer()), "");
  EXPECT_TRUE(reserved_json(program_, answer()).is_null());
}

TEST_F(DeviceMemoryTest, ReservedHasAVerdictForOneRelease) {
  auto& ledger = add_process(1 * kGiB);
  EXPECT_EQ(reserved_json(program_, answer()).at("torch"), nullptr);
  program_.torch.emplace().version = "2.11.0";
  EXPECT_THAT(
      reserved_line(program_, answer()),
      HasSubstr("Reserved: exact for PyTorch 2.11.0 with these settings of its allocator;"));
  EXPECT_FALSE(reserved_json(program_, answer()).at("depends_on_context"));

  run_out(ledger, 30 * kGiB, 60 * kGiB);
  EXPECT_TRUE(reserved_json(program_, answer()).at("depends_on_context"));
  const auto said = answer();
  program_.verdict.kind = VerdictKind::lower_bound;
  EXPECT_EQ(reserved_json(program_, said).at("verdict"), "lower bound");
  const auto text = emulation_text(program_, said, {.view = View::kDetails});
  EXPECT_THAT(text, HasSubstr("Reserved: lower bound for PyTorch 2.11.0"));
  EXPECT_THAT(text, HasSubstr("and the memory that the CUDA context leaves it"));
}

// The range that is said of real cards is that of the documented runs, rounded outwards.
TEST_F(DeviceMemoryTest, TheRangeIsThatOfThePublishedRuns) {
  static const std::regex row(R"(\| 2\.11\.0 \| 51 \| 15 \| -([0-9.]+) \| \+([0-9.]+) \|\n)");
  std::smatch found;
  const auto text = text_of(PEAKBENCH_EMULATOR_PAGE);
  ASSERT_TRUE(std::regex_search(text, found, row));
  EXPECT_EQ(kEstimateLowest, -std::ceil(std::stod(found[1])));
  EXPECT_EQ(kEstimateHighest, std::ceil(std::stod(found[2])));
}

// docs/evidence/fidelity.md, by card, cards of a run and release: least, median and most MiB beside
// what is reserved, and how far ours and the median were from the published figure.
struct Beside {
  int least, median, most;
  double lowest, highest;
};

Beside beside(const std::string& page, int cards, const std::string& release) {
  const std::regex row(R"(\| a100-80gb \| )" + std::to_string(cards) + R"( \| )" + release +
                       R"( \| \d+ \| (\S+) \| (\S+) \| (\S+) \| \d+ \| (\S+) \| (\S+) \|)");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(page, found, row)) << cards << " cards, " << release;
  const auto number = [&](int group) {
    auto text = std::regex_replace(found[group].str(), std::regex(","), "");
    return std::stod(std::regex_replace(text, std::regex("−"), "-"));
  };
  return {static_cast<int>(number(1)), static_cast<int>(number(2)), static_cast<int>(number(3)),
          number(4), number(5)};
}

// Of the release that is nearest to the publisher's.
TEST_F(DeviceMemoryTest, WhatNcclTookIsThatOfThePublishedRuns) {
  const auto page = text_of(PEAKBENCH_FIDELITY_PAGE);
  const auto alone = beside(page, 1, "2.6.0").median;
  double lowest = kEstimateLowest, highest = kEstimateHighest;
  for (const NcclMemory& one : kNcclOfRanks) {
    const auto told = beside(page, static_cast<int>(one.ranks), "2.6.0");
    EXPECT_EQ(one.least, (told.least - alone) * kMiB);
    EXPECT_EQ(one.median, (told.median - alone) * kMiB);
    EXPECT_EQ(one.most, (told.most - alone) * kMiB);
    lowest = std::min(lowest, std::floor(told.lowest));
    highest = std::max(highest, std::ceil(told.highest));
  }
  const auto later = beside(page, 4, "2.11.0");
  EXPECT_EQ(kEstimateLowestOfRanks, std::min(lowest, std::floor(later.lowest)));
  EXPECT_EQ(kEstimateHighestOfRanks, std::max(highest, std::ceil(later.highest)));
}

}  // namespace
}  // namespace peakbench::emulator
