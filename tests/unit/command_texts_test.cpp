// Help within 80 columns, the manual page, and what a shell is told may come next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "cli/completion.h"
#include "cli/help_format.h"

namespace peakbench::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

TEST(HelpFooters, AreParagraphsAndCommands) {
  const auto parts = footer_parts(
      "Examples:\n  peakbench run\nOne two\nthree.\nExit codes: 0;\n2.\n\nAnother paragraph.");
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.push_back((part.code ? "$ " : "") + part.text);
  EXPECT_THAT(texts, ElementsAre("Examples:", "$   peakbench run", "One two three.",
                                 "Exit codes: 0; 2.", "Another paragraph."));
}

TEST(HelpFooters, ALongCommandGoesOnInTheNextLine) {
  const auto parts = footer_parts(
      "  peakbench run --model vit-l-16 --strategy baseline --strategy 'a b' --out "
      "results/with/a/name");
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].text,
            "  peakbench run --model vit-l-16 --strategy baseline --strategy 'a b' \\\n"
            "      --out results/with/a/name");
}

TEST(Csv, HasAColumnANameAndQuotesWhatWouldEndACell) {
  const auto rows = nlohmann::ordered_json::parse(R"([
    {"id": "a,b", "memory": {"peak": 1, "at": null}, "list": ["x", 2], "on": true},
    {"id": "say \"so\"\nagain", "memory": null, "extra": [{"k": 1}]}])");
  EXPECT_EQ(csv_text(rows),
            "id,memory.peak,memory.at,list,on,memory,extra\n"
            "\"a,b\",1,,x 2,true,,\n"
            "\"say \"\"so\"\"\nagain\",,,,,,\"[{\"\"k\"\":1}]\"\n");
  EXPECT_EQ(csv_text(nlohmann::ordered_json::array()), "");
}

// peakbench run --model M --quiet; peakbench list WHAT; peakbench open RUN; peakbench history add.
class Completions : public ::testing::Test {
 protected:
  Completions() {
    auto* run = app_.add_subcommand("run", "Measure");
    run->add_option("suite", text_, "A suite");
    run->add_option("-m,--model", texts_, "Models")->type_name("NAME");
    run->add_option("--strategy", texts_, "Strategies");
    run->add_flag("-q,--quiet", flag_, "Say little");
    auto* list = app_.add_subcommand("list", "List");
    list->add_option("what", text_, "What")->check(CLI::IsMember({"models", "devices"}));
    auto* history = app_.add_subcommand("history", "Runs over time");
    history->add_subcommand("add", "Add a run");
    app_.add_subcommand("secret", "Hidden")->group("");
    app_.set_help_all_flag("--help-all", "All");
  }

  Words next(const Words& words) {
    return completions(app_, words,
                       {[](const std::string& option) {
                          if (option == "model") return Words{"vit-b-16", "vit-l-16", "qwen"};
                          if (option == "strategy") return Words{"lora", "lion", "baseline"};
                          return Words{};
                        },
                        [](const std::string& id) {
                          return id == "lora" ? Words{"rank", "alpha"} : Words{};
                        }});
  }

  CLI::App app_{"What it costs.", "peakbench"};
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
};

TEST_F(Completions, AreCommandsFirst) {
  EXPECT_THAT(next({""}), ElementsAre("history", "list", "run"));
  EXPECT_THAT(next({"l"}), ElementsAre("list"));
  EXPECT_THAT(next({"history", ""}), ElementsAre("add"));
  EXPECT_THAT(next({"nonsense", ""}), IsEmpty());
  EXPECT_THAT(next({}), IsEmpty());
}

TEST_F(Completions, AreOptionsOfTheCommandAndTheirValues) {
  EXPECT_THAT(next({"run", "--m"}), ElementsAre("--model"));
  EXPECT_THAT(next({"run", "--model", "vit"}), ElementsAre("vit-b-16", "vit-l-16"));
  EXPECT_THAT(next({"run", "-m", "q"}), ElementsAre("qwen"));
  EXPECT_THAT(next({"run", "--model=vit-l"}), ElementsAre("--model=vit-l-16"));
  EXPECT_THAT(next({"run", "--quiet", "--mo"}), ElementsAre("--model"));
  EXPECT_THAT(next({"list", ""}), ElementsAre("devices", "models"));
  EXPECT_THAT(next({"list", "models", ""}), IsEmpty());
}

TEST_F(Completions, GoOnInsideAStack) {
  EXPECT_THAT(next({"run", "--strategy", "baseline+l"}),
              ElementsAre("baseline+lion", "baseline+lora"));
  EXPECT_THAT(next({"run", "--strategy", "baseline+lora,r"}), ElementsAre("baseline+lora,rank="));
  EXPECT_THAT(next({"run", "--strategy", "lora,rank=16+li"}), ElementsAre("lora,rank=16+lion"));
}

TEST_F(Completions, LeaveFilesAndOtherProgramsToTheShell) {
  EXPECT_THAT(next({"run", "sui"}), IsEmpty());
  EXPECT_THAT(next({"run", "--", "--m"}), IsEmpty());
}

TEST_F(Completions, TheManualPageHasEveryCommandAndNoTextThatPassesForMarkup) {
  app_.get_subcommand("run")->footer(".hidden\n  'quoted' --flag \\ x");
  const auto page = man_page(app_, "1.2.3");
  EXPECT_THAT(page, HasSubstr("\"Peakbench 1.2.3\""));
  for (const auto* heading :
       {".SS peakbench run\n", ".SS peakbench list\n", ".SS peakbench history add\n"})
    EXPECT_THAT(page, HasSubstr(heading));
  EXPECT_THAT(page, HasSubstr("\n.B \\-m,\\-\\-model NAME ...\nModels\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&.hidden\n"));
  EXPECT_THAT(page, HasSubstr("  \\(aqquoted\\(aq \\-\\-flag \\e x"));
  EXPECT_EQ(page.find("secret"), std::string::npos);
}

TEST_F(Completions, HelpStaysWithinItsColumns) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  app_.get_subcommand("run")->footer(words);
  app_.get_subcommand("run")->get_option("--model")->description(words);
  app_.formatter(std::make_shared<HelpFormatter>());
  for (auto* command : app_.get_subcommands({})) command->formatter(app_.get_formatter());
  const auto help = app_.help("", CLI::AppFormatMode::All);
  EXPECT_THAT(help, HasSubstr("Usage: peakbench history add"));
  EXPECT_EQ(std::count(help.begin(), help.end(), 'w') >= 120, true);
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace peakbench::cli
