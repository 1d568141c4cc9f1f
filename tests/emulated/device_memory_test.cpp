// What nvidia-smi would show, and the verdict of reserved memory: estimates, and what they lack.
#include "host/device_memory.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/ledger.h"
#include "host/emulation_text.h"
#include "program_fixture.h"

namespace peakbench::emulator {
namespace {

using testing::HasSubstr;

class DeviceMemoryTest : public ProgramFixture {
 protected:
  DeviceMemory memory() { return device_memory_of(answer()).value(); }
  std::string line() { return device_memory_line(memory()); }
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
                            {"given_bytes", 3 * kGiB},
                            {"context_bytes", 512 * kMiB},
                            {"contexts", 1},
                            {"context_measured", true},
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
  EXPECT_THAT(line(), HasSubstr("555 MiB, the largest known: of this card none is"));
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
  const auto text = emulation_text(program_, said, {});
  EXPECT_THAT(text, HasSubstr("Reserved: lower bound for PyTorch 2.11.0"));
  EXPECT_THAT(text, HasSubstr("and the memory that the CUDA context leaves it"));
}

// The range that is said of real cards is that of the documented runs, rounded outwards.
TEST_F(DeviceMemoryTest, TheRangeIsThatOfThePublishedRuns) {
  std::ifstream file(PEAKBENCH_EMULATOR_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  static const std::regex row(R"(\| 2\.11\.0 \| 51 \| 15 \| -([0-9.]+) \| \+([0-9.]+) \|\n)");
  std::smatch found;
  const auto text = page.str();
  ASSERT_TRUE(std::regex_search(text, found, row));
  EXPECT_EQ(kEstimateLowest, -std::ceil(std::stod(found[1])));
  EXPECT_EQ(kEstimateHighest, std::ceil(std::stod(found[2])));
}

}  // namespace
}  // namespace peakbench::emulator
