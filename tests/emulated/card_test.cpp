// Cards as people name them, and what is said of those that cannot be.
#include "emulator/host/card.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "emulator/host/answer.h"
#include "emulator/host/environment.h"

namespace peakbench::emulator {
namespace {

const Installation& installation() {
  static const Installation found = find_installation();
  return found;
}

Card parse(const std::string& spec) { return parse_card(spec, installation()); }

std::string error_of(const std::string& spec) {
  try {
    parse(spec);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& spec, const std::string& part) {
  const std::string error = error_of(spec);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(Card, KnowsItsFacts) {
  const Card card = parse("h100-80gb");
  EXPECT_EQ(card.facts.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(card.facts.major, 9);
  EXPECT_EQ(card.facts.minor, 0);
  EXPECT_EQ(card.facts.binary_arch, 90);
  EXPECT_EQ(card.facts.multiprocessor_count, 132);
  EXPECT_EQ(card.facts.total_memory_bytes, 85017755648u);
  EXPECT_EQ(card.facts.count, 1);
}

TEST(Card, TakesOptions) {
  const Card card = parse("h100-80gb,memory=60GiB,count=8,context=500MiB");
  EXPECT_EQ(card.facts.total_memory_bytes, 60ull << 30);
  EXPECT_EQ(card.facts.count, 8);
  EXPECT_EQ(card.facts.context_bytes, 500ull << 20);
}

TEST(Card, EveryProfileIsCompleteAndServedButVolta) {
  const std::vector<std::string> expected{
      "a10-24gb",          "a100-40gb",         "a100-80gb",        "a10g-24gb",
      "b200-180gb",        "b300-288gb",        "gb200-186gb",      "gh200-96gb",
      "h100-80gb",         "h100-96gb",         "h20-96gb",         "h200-141gb",
      "l4-24gb",           "l40s-48gb",         "rtx-3090-24gb",    "rtx-3090-ti-24gb",
      "rtx-4080-16gb",     "rtx-4090-24gb",     "rtx-5070-ti-16gb", "rtx-5080-16gb",
      "rtx-5090-32gb",     "rtx-6000-ada-48gb", "rtx-a6000-48gb",   "rtx-pro-5000-48gb",
      "rtx-pro-5000-72gb", "rtx-pro-6000-96gb", "t4-16gb",          "titan-rtx-24gb",
      "v100-16gb",         "v100-32gb"};
  std::vector<std::string> found;
  for (const CardListing& card : list_cards(installation())) {
    found.push_back(card.id);
    EXPECT_EQ(card.served, !card.id.starts_with("v100")) << card.id << ": " << card.reason;
  }
  EXPECT_EQ(found, expected);
}

nlohmann::json card_document(const std::string& id) {
  std::ifstream file(installation().folder / "cards" / (id + ".json"));
  return nlohmann::json::parse(file);
}

TEST(Card, EveryValueHasASource) {
  for (const CardListing& card : list_cards(installation())) {
    for (const auto& [key, value] : card_document(card.id).at("values").items())
      EXPECT_GE(value.at("source").get<std::string>().size(), 20u) << card.id << ": " << key;
    for (const auto& one : card.context_memory)
      EXPECT_TRUE(one.source.starts_with("github.com/") ||
                  one.source.starts_with("docs/evidence/real_card.md"))
          << card.id;
  }
}

TEST(Card, OfOneWhoseContextIsUnknownTheLargestIsTaken) {
  std::uint64_t largest = 0;
  for (const CardListing& card : list_cards(installation()))
    for (const auto& one : card.context_memory) largest = std::max(largest, one.bytes);
  EXPECT_EQ(kLargestContext, largest);
}

// A rate is the vendor's, without sparsity: tensor cores are no slower than the others, and the
// memory's is what clock and width make of it, but for how the vendor rounds.
TEST(Card, RatesAreInOrder) {
  std::size_t known = 0;
  for (const CardListing& card : list_cards(installation())) {
    if (!card.served) continue;
    const CardFacts facts = parse(card.id).facts;
    if (facts.memory_bytes_per_second == 0) {
      EXPECT_EQ(facts.fp32_flops_per_second, 0u) << card.id << ": no bound without both";
      continue;
    }
    ++known;
    const double made = 2e3 * facts.memory_clock_khz * facts.memory_bus_bits / 8;
    EXPECT_NEAR(static_cast<double>(facts.memory_bytes_per_second) / made, 1, 0.05) << card.id;
    const auto known_or = [](std::uint64_t rate, std::uint64_t otherwise) {
      return rate > 0 ? rate : otherwise;
    };
    const auto fp16 = facts.fp16_flops_per_second;
    EXPECT_GE(known_or(facts.tf32_flops_per_second, facts.fp32_flops_per_second),
              facts.fp32_flops_per_second)
        << card.id;
    EXPECT_EQ(known_or(facts.bf16_flops_per_second, fp16), fp16) << card.id;
    EXPECT_GE(known_or(facts.fp8_flops_per_second, 2 * fp16), 2 * fp16 * 999 / 1000) << card.id;
    EXPECT_GT(facts.fp16_flops_per_second, facts.fp32_flops_per_second) << card.id;
  }
  EXPECT_GE(known, 15u);
}

// SIZE gigabytes of either kind, less what the driver keeps.
TEST(Card, EveryNameSaysItsMemory) {
  for (const CardListing& card : list_cards(installation())) {
    ASSERT_TRUE(card.id.ends_with("gb")) << card.id;
    const auto size = std::stoull(card.id.substr(card.id.rfind('-') + 1));
    EXPECT_EQ(card_document(card.id).at("id"), card.id);
    EXPECT_NE(card.title.find(std::to_string(size) + " GB"), std::string::npos) << card.title;
    EXPECT_GT(card.total_memory_bytes, size * 970'000'000) << card.id;
    EXPECT_LT(card.total_memory_bytes, size << 30) << card.id;
  }
}

// What CUDA derives from the compute capability, from its own table.
TEST(Card, LimitsAreThoseOfTheComputeCapability) {
  struct Limits {
    int threads, blocks;
    std::uint64_t optin;
  };
  const std::map<std::string, Limits> limits{
      {"7.0", {2048, 32, 98304}},   {"7.5", {1024, 16, 65536}},   {"8.0", {2048, 32, 166912}},
      {"8.6", {1536, 16, 101376}},  {"8.9", {1536, 24, 101376}},  {"9.0", {2048, 32, 232448}},
      {"10.0", {2048, 32, 232448}}, {"10.3", {2048, 32, 232448}}, {"12.0", {1536, 24, 101376}}};
  for (const CardListing& card : list_cards(installation())) {
    const auto values = card_document(card.id).at("values");
    const auto value = [&](const char* key) { return values.at(key).at("value"); };
    const auto& expected = limits.at(card.compute_capability);
    EXPECT_EQ(value("max_threads_per_multiprocessor"), expected.threads) << card.id;
    EXPECT_EQ(value("max_blocks_per_multiprocessor"), expected.blocks) << card.id;
    EXPECT_EQ(value("shared_memory_per_block_optin_bytes"), expected.optin) << card.id;
  }
}

TEST(Card, RunsTheNearestCodeOfItsMajor) {
  EXPECT_EQ(parse("l4-24gb").facts.binary_arch, 86);  // 8.9 runs code for 8.6, not for 8.0
  EXPECT_EQ(parse("t4-16gb").facts.binary_arch, 75);
  EXPECT_EQ(parse("rtx-5090-32gb").facts.binary_arch, 120);
  EXPECT_EQ(parse("b300-288gb").facts.binary_arch, 100);  // 10.3
  EXPECT_EQ(parse("titan-rtx-24gb").facts.binary_arch, 75);
}

TEST(Card, RefusesWhatThisLibTorchHasNoCodeFor) {
  expect_error("v100-16gb", "compute capability 7.0");
  expect_error("v100-16gb", "sm_75, sm_80");
}

TEST(Card, NamesTheNearestOfAnUnknownOne) {
  expect_error("h100-80g", "did you mean \"h100-80gb\"?");
  expect_error("h100-80gb,memmory=1GiB", "did you mean \"memory\"?");
  expect_error("", "no card is named");
  expect_error("RTX 4090", "did you mean \"rtx-4090-24gb\"?");
  expect_error("rtx5070ti", "did you mean \"rtx-5070-ti-16gb\"?");
  expect_error("A6000", "did you mean \"rtx-a6000-48gb\"?");
  expect_error("h100", "did you mean \"h100-80gb\"?");
  expect_error("nothing-like-it", "known: a10-24gb, a100-40gb");
}

TEST(Card, SaysWhatIsNoCudaCard) {
  for (const char* name : {"mi300x", "MI250", "mi355x", "rx7900xtx", "RX 7900 XTX", "rx-9070-xt",
                           "instinct-mi210", "gfx942", "mi300x,memory=1GiB"}) {
    expect_error(name, "is one of AMD's, which run PyTorch's ROCm build; only NVIDIA's cards are");
  }
  for (const char* name : {"max1550", "b580", "arc-a770"}) expect_error(name, "one of Intel's");
  expect_error("gaudi3", "Intel's Gaudi");
  for (const char* name : {"tpu-v5e", "v6e", "TPU"}) expect_error(name, "one of Google's TPUs");
}

// B300 is no B580, an RX 5090 is meant as RTX 5090, and a path is a path.
TEST(Card, TakesNoCudaCardForAnothersOne) {
  for (const char* name : {"b300", "rx5090", "rx4090", "m1300", "max-q"}) {
    const auto error = error_of(name);
    EXPECT_NE(error.find("unknown card"), std::string::npos) << error;
  }
  expect_error("./mi300x.json", "cannot be read");
  for (const CardListing& card : list_cards(installation()))
    EXPECT_EQ(other_maker(card.id), "") << card.id;
}

TEST(Card, RefusesMemoryOfNothingOrBeyondReason) {
  expect_error("h100-80gb,memory=0", "memory=0: expected");
  expect_error("h100-80gb,memory=lots", "memory=lots: expected");
  expect_error("h100-80gb,memory=17TiB", "16TiB");
  EXPECT_EQ(parse("h100-80gb,memory=16TiB").facts.total_memory_bytes, 16ull << 40);
  expect_error("t4-16gb,context=20GiB", "leaves nothing");
}

TEST(Card, TakesADriverThatIsForAnEarlierCuda) {
  EXPECT_EQ(parse("h100-80gb").facts.driver_cuda_version, 0);
  EXPECT_EQ(parse("h100-80gb,driver=12.8").facts.driver_cuda_version, 12080);
  for (const char* version : {"", "12", "new", "12.8.1"})
    expect_error(std::string("h100-80gb,driver=") + version, "expected the CUDA version");
}

TEST(Card, StreamsMayBeLate) {
  EXPECT_EQ(streams_of(parse("h100-80gb").facts), Streams::at_once);
  EXPECT_EQ(streams_of(parse("h100-80gb,streams=at-once").facts), Streams::at_once);
  EXPECT_EQ(streams_of(parse("h100-80gb,streams=soon").facts), Streams::soon);
  EXPECT_EQ(streams_of(parse("h100-80gb,streams=late").facts), Streams::late);
  for (const char* how : {"", "slow", "Late"})
    expect_error(std::string("h100-80gb,streams=") + how, "expected soon");
}

TEST(Card, RefusesCountsThatAreNone) {
  for (const char* count : {"0", "-1", "65", "two", ""}) {
    expect_error(std::string("h100-80gb,count=") + count, "from 1 to 64");
  }
}

class CardFile : public testing::Test {
 protected:
  // Of this test alone: others run beside it.
  std::string path_ = testing::TempDir() + "card-of-" +
                      testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() +
                      "-" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";

  ~CardFile() override { std::remove(path_.c_str()); }

  void write(const std::string& from, const std::string& to) {
    std::ifstream file(installation().folder / "cards/h100-80gb.json");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    std::ofstream(path_) << text;
  }
};

TEST_F(CardFile, IsReadFromItsPath) {
  write("\"id\": \"h100-80gb\"", "\"id\": \"mine\"");
  EXPECT_EQ(parse(path_).facts.id, "mine");
  EXPECT_EQ(parse(path_ + ",memory=1GiB").facts.total_memory_bytes, 1u << 30);
}

TEST_F(CardFile, SaysWhatIsWrongAndWhere) {
  write("\"warp_size\"", "\"warpsize\"");
  expect_error(path_, "warp_size: missing");
  write("{\"value\": 132,", "{\"value\": -1,");
  expect_error(path_, "multiprocessor_count: expected a whole number");
  write("\"fp32_flops_per_second\": {\"value\": 66", "\"fp32_flops_per_second\": {\"value\": -66");
  expect_error(path_, "fp32_flops_per_second: expected a whole number from 1000000000 to");
  write("\"ecc\": {\"value\": true,", "\"extra\": {}, \"ecc\": {\"value\": true,");
  expect_error(path_, "unknown value \"extra\"");
  expect_error("/nowhere/card.json", "cannot be read");
  write("\"title\"", "\"context_memroy\": [], \"title\"");
  expect_error(path_, "/context_memroy: unknown key; did you mean \"context_memory\"?");
}

class OwnContext : public CardFile {
 protected:
  void write_context(const std::string& list) {
    std::ifstream file(installation().folder / "cards/t4-16gb.json");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::ofstream(path_) << "{\"context_memory\": " << list << "," << text.substr(1);
  }
};

TEST_F(OwnContext, IsReadAndSaid) {
  write_context(R"([{"bytes": 104857600, "what": "bare", "torch": "2.11", "source": "a page"},
                    {"bytes": 209715200, "what": "after a step", "source": "another"}])");
  const Card card = parse(path_);
  EXPECT_EQ(long_text(card.context_memory),
            "100 MiB were measured on such a card (bare; PyTorch 2.11; a page); "
            "200 MiB were measured on such a card (after a step; another)");
  EXPECT_EQ(to_json(card.context_memory)[0],
            nlohmann::json::parse(
                R"({"bytes": 104857600, "what": "bare", "torch": "2.11", "source": "a page"})"));
  EXPECT_EQ(card.facts.context_bytes, 0u) << "it is shown, never added";
}

TEST_F(OwnContext, IsUnknownWhereThereIsNone) {
  const Card card = parse("t4-16gb");
  EXPECT_EQ(long_text(card.context_memory), "how much it takes of this card is unknown");
  EXPECT_EQ(to_json(card.context_memory), nlohmann::json::array());
}

TEST_F(OwnContext, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"{}", "/context_memory: expected a list, got an object"},
      {"[7]", "/context_memory/0: expected an object, got 7"},
      {R"([{"what": "a", "source": "b"}])", "/context_memory/0/bytes: missing"},
      {R"([{"bytes": 1, "what": "a"}])", "/context_memory/0/source: missing"},
      {R"([{"bytes": 1, "source": "b"}])", "/context_memory/0/what: missing"},
      {R"([{"bytes": 1, "what": "", "source": "b"}])", "/what: expected a text of 1 to 255 bytes"},
      {R"([{"bytes": 0, "what": "a", "source": "b"}])", "/context_memory/0/bytes: expected"},
      {R"([{"bytes": 17179869185, "what": "a", "source": "b"}])", "/bytes: expected"},
      {R"([{"bytes": "1", "what": "a", "source": "b"}])", "/context_memory/0/bytes: expected"},
      {R"([{"bytes": 1, "what": "a", "sorce": "b"}])", "did you mean \"source\"?"},
      {R"([{"bytes": 1, "what": "a", "source": "b", "torch": 2}])", "/torch: expected a string"}};
  for (const auto& [list, part] : wrong) {
    write_context(list);
    expect_error(path_, part);
    expect_error(path_, path_);
  }
}

// A name of 200,000 bytes left no room for the program's own environment.
TEST_F(CardFile, TextsHaveALimit) {
  const std::string longest(255, 'x'), longer(256, 'x');
  for (const char* place : {"\"id\": \"", "\"title\": \"", "\"name\": {\"value\": \""}) {
    const std::string key = place;
    write(key, key + longer);
    expect_error(path_, "of at most 255 bytes");
  }
  write("\"id\": \"h100-80gb\"", "\"id\": \"" + longest + "\"");
  EXPECT_EQ(parse(path_).facts.id, longest);
}

TEST_F(CardFile, NumbersAreWholeAndInTheirRange) {
  for (const char* bad : {"1e999", "nan", "\"inf\"", "1.5", "0", "-0", "4294967297", "true",
                          "18446744073709551616"}) {
    write("{\"value\": 132,", std::string("{\"value\": ") + bad + ",");
    expect_error(path_, std::string(bad) == "1e999" ? "/values/multiprocessor_count/value: expected"
                        : std::string(bad) == "nan"
                            ? "not JSON"
                            : "multiprocessor_count: expected a whole number from 1");
  }
  for (const char* bad : {"9", "9.", ".0", "99999999999.0", "9.0.0", "-9.0", "9,0"}) {
    write("\"9.0\"", std::string("\"") + bad + "\"");
    expect_error(path_, "compute_capability: expected MAJOR.MINOR");
  }
  expect_error("h100-80gb,driver=99999999999.1", "expected the CUDA version");
  expect_error("h100-80gb,driver=3000000.1", "expected the CUDA version");
}

// PyTorch divides by quotients and products of these: a thread a multiprocessor ended the process.
TEST_F(CardFile, NumbersAreThoseOfACard) {
  struct Bad {
    const char *key, *value, *words;
  };
  const std::vector<Bad> all{
      {"max_threads_per_multiprocessor", "1", "from 1024 to 8192, got 1"},
      {"max_threads_per_multiprocessor", "1023", "from 1024 to 8192"},
      {"max_threads_per_multiprocessor", "2147483647", "from 1024 to 8192"},
      {"multiprocessor_count", "2147483647", "from 1 to 4096"},
      {"max_blocks_per_multiprocessor", "2147483647", "from 1 to 1024"},
      {"registers_per_multiprocessor", "1", "from 32768"},
      {"warp_size", "1", "warp_size: expected 32, as every card has, got 1"},
      {"warp_size", "64", "expected 32, as every card has"},
      {"shared_memory_per_block_bytes", "1", "from 49152"},
      {"shared_memory_per_block_bytes", "4294967296", "from 49152 to 2147483647"},
      {"shared_memory_per_block_optin_bytes", "49151", "from 49152"},
      {"shared_memory_per_block_optin_bytes", "300000",
       "shared_memory_per_multiprocessor_bytes: expected at least 300000 "
       "(shared_memory_per_block_optin_bytes)"},
      {"l2_cache_bytes", "4294967296", "from 1 to 2147483647"},
      {"memory_bus_bits", "7", "from 8"}};
  std::ifstream file(installation().folder / "cards/h100-80gb.json");
  const auto good = nlohmann::json::parse(file);
  for (const auto& [key, value, words] : all) {
    auto card = good;
    card["values"][key]["value"] = nlohmann::json::parse(value);
    std::ofstream(path_) << card;
    expect_error(path_, key);
    expect_error(path_, words);
  }
}

TEST_F(CardFile, IsARegularFileOfAFewLevels) {
  std::remove(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_error(path_, "expected a regular file");
  std::remove(path_.c_str());
  std::ofstream(path_) << "{\"id\": " << std::string(200'000, '[');
  expect_error(path_, "more than 100 levels");
}

TEST(Environment, PreloadsTheSharedStateFirst) {
  const auto environment =
      emulation_environment(parse("h100-80gb,count=2"), installation(), "/ledgers");
  ASSERT_EQ(environment[0].first, "LD_PRELOAD");
  const std::string& list = environment[0].second;
  EXPECT_EQ(list.find((installation().folder / "libpeakbench_emulator.so").string()), 0u);
  for (const char* soname : {"libcudart.so.13", "libcuda.so.1", "libcublas.so.13", "libcudnn.so.9",
                             "libnccl.so.2", "libnvrtc.so.13", "libnvidia-ml.so.1"}) {
    EXPECT_NE(list.find(std::string("/") + soname), std::string::npos) << soname;
  }
  EXPECT_EQ(card_from_json(environment[1].second).count, 2);
}

// A worker of `peakbench run` below `peakbench emulate` must not share the outer program's cards.
TEST(Environment, WithoutAFolderNothingIsShared) {
  for (const std::string folder : {"", "/ledgers"}) {
    const auto environment = emulation_environment(parse("h100-80gb"), installation(), folder);
    const auto shared = std::find_if(environment.begin(), environment.end(),
                                     [](const auto& one) { return one.first == kSharedVariable; });
    ASSERT_NE(shared, environment.end());
    EXPECT_EQ(shared->second, folder);
  }
}

// What the dynamic loader would take for a separator or a variable.
TEST(Environment, PreloadsThroughALinkWhereThePathNeedsOne) {
  namespace fs = std::filesystem;
  const fs::path scratch = testing::TempDir() + "peakbench a b:c$LIB";
  fs::create_directory_symlink(installation().folder, scratch);
  const auto list =
      emulation_environment(parse("h100-80gb"), installation_in(scratch), "")[0].second;
  fs::remove(scratch);
  EXPECT_EQ(list.find_first_of(" $"), std::string::npos);
  const auto first = list.substr(0, list.find(':'));
  EXPECT_EQ(fs::path(first).filename(), "libpeakbench_emulator.so");
  const auto link = fs::path(first).parent_path();
  EXPECT_EQ(fs::read_symlink(link), scratch);
  EXPECT_EQ(fs::status(link.parent_path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(std::count(list.begin(), list.end(), ':') + 1,
            static_cast<std::ptrdiff_t>(installation().libraries.size()));
}

// A card file with these entries of `convolution_workspaces`.
std::string file_with(const std::string& list) {
  std::ifstream ours(installation().folder / "cards/t4-16gb.json");
  auto document = nlohmann::json::parse(ours);
  document["convolution_workspaces"] = nlohmann::json::parse(list);
  const auto path = std::filesystem::temp_directory_path() / "peakbench-card-test.json";
  std::ofstream(path) << document;
  return path.string();
}

constexpr const char* kConvolution =
    R"({"input": [1, 3, 8, 8], "weight": [4, 3, 2, 2], "stride": [2, 2], "padding": [0, 0],
        "dilation": [1, 1], "dtype": "float16", "layout": "channels first")";

std::string entry(const std::string& rest) { return kConvolution + rest + "}"; }
std::string release(const std::string& convolutions, const std::string& cudnn = "9.19.0") {
  return R"({"cudnn": ")" + cudnn + R"(", "source": "a test", "convolutions": [)" + convolutions +
         "]}";
}

TEST(Card, HasWorkspacesOfConvolutions) {
  const auto path = file_with("[" + release(entry(R"(, "forward": 0, "backward_weight": 70)")) +
                              "," + release("", "9.20.1") + "]");
  EXPECT_EQ(parse(path).facts.measured_in, path);
  EXPECT_EQ(parse("t4-16gb").facts.measured_in, "");
}

TEST(Card, KnowsWhichOtherCardsWereMeasured) {
  EXPECT_NE(parse("h200-141gb").facts.measured_in, "");
  EXPECT_EQ(parse("h200-141gb").facts.measured_elsewhere, std::vector<std::string>{});
  EXPECT_EQ(parse("h100-80gb").facts.measured_elsewhere,
            std::vector{parse("h200-141gb").facts.measured_in});
  EXPECT_EQ(parse("a100-40gb").facts.measured_elsewhere, std::vector<std::string>{});
}

TEST(Card, SaysWhatIsWrongWithWorkspaces) {
  const auto expect = [](const std::string& list, const std::string& part) {
    expect_error(file_with(list), "convolution_workspaces" + part);
  };
  expect("[" + release(entry(R"(, "forward": 1)") + "," + entry(R"(, "forward": 2)")) + "]",
         "[0].convolutions[1]: forward: 2, and 1 in an earlier entry of the same convolution");
  expect("[" + release(entry(R"(, "forward": -1)")) + "]",
         "[0].convolutions[0]: forward: expected a whole number of at least 0, got -1");
  expect("[" + release(entry(R"(, "forward": 18446744073709551615)")) + "]",
         "[0].convolutions[0]: forward: expected a whole number");
  expect("[" + release("", "9.19") + "]", "[0]: cudnn: expected a release like 9.19.0");
  expect("[" + release("") + "," + release("") + "]", "[1]: cudnn: 9.19.0 is there already");
  expect("[" + release(entry(R"(, "bytes": 1)")) + "]", "[0].convolutions[0]: unknown member");
  expect(R"([{"cudnn": "9.19.0"}])", "[0]: source: missing");
  expect("{}", ": expected a list");
}

}  // namespace
}  // namespace peakbench::emulator
