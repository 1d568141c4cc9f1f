// Manifests in shared libraries: right ones, wrong ones, damaged files, stamps and discovery.
#include "planning/manifest.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/errors.h"
#include "planning/option.h"
#include "planning/vocabulary.h"
#include "support/plugin_file.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using nlohmann::json;
using testing::elf_bytes;
using testing::message_of;
using testing::plugin_bytes;
using testing::ScratchFolder;
using testing::write_text;

json rank_option() {
  return {{"name", "rank"},  {"type", "integer"}, {"default", 8},      {"minimum", 1},
          {"maximum", 4096}, {"unit", "columns"}, {"summary", "Rank."}};
}

json strategy_manifest(const std::string& id = "lora") {
  return {{"kind", "strategy"},
          {"entries",
           {{{"id", id},
             {"title", "LoRA"},
             {"summary", "Adapters."},
             {"source_url", "https://example.org"},
             {"options", {rank_option()}},
             {"order", 10},
             {"slots", {"adapters"}},
             {"wrappers", {"freezing", "step_contexts"}},
             {"capabilities", {"needs_all_gradients"}},
             {"needs", {"linear_layers"}},
             {"requires", {"schedule"}},
             {"conflicts", {{{"id", "galore"}, {"reason", "both make low-rank updates"}}}},
             {"cost", {{"gradients", "None."}}},
             {"promise", "within_tolerance"},
             {"tolerance", 1e-5}}}}};
}

json model_manifest(const std::string& id = "tiny") {
  return {{"kind", "model"},
          {"entries",
           {{{"id", id},
             {"title", "Tiny"},
             {"summary", "A model."},
             {"source_url", ""},
             {"options", json::array()},
             {"family", "decoder"},
             {"facts", {"blocks"}},
             {"linears", {"mlp", "acme.gate"}},
             {"missing_linears", json::array({{{"parts", {"output"}}, {"reason", "It is tied"}}})},
             {"has_sequence", true},
             {"default_sequence_length", 128},
             {"parameters", 1000}}}}};
}

class Manifest : public ::testing::Test {
 protected:
  std::string error_of(const json& manifest) { return error_of_bytes(plugin_bytes(manifest)); }

  // Without the path in front.
  std::string error_of_bytes(const std::string& bytes) {
    write_text(path_, bytes);
    auto message = message_of<PluginError>([&] { read_plugin(path_); });
    EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
    return message.substr(std::min(message.size(), path_.size() + 2));
  }

  ScratchFolder folder_;
  std::string path_ = folder_ / "lora.so";
};

TEST_F(Manifest, OfAStrategyIsReadWhole) {
  write_text(path_, plugin_bytes(strategy_manifest()));
  const Plugin plugin = read_plugin(path_);
  EXPECT_EQ(plugin.path, path_);
  EXPECT_EQ(plugin.kind, Kind::kStrategy);
  EXPECT_TRUE(compare(plugin.stamp, own_stamp()).empty());
  ASSERT_EQ(plugin.entries.size(), 1u);
  const Entry& entry = plugin.entries[0];
  EXPECT_EQ(entry.id, "lora");
  EXPECT_EQ(entry.order, 10);
  EXPECT_EQ(entry.slots, std::vector<std::string>{"adapters"});
  EXPECT_EQ(entry.wrappers, (std::vector<std::string>{"freezing", "step_contexts"}));
  EXPECT_EQ(entry.capabilities, std::vector<std::string>{"needs_all_gradients"});
  EXPECT_EQ(entry.needs, std::vector<std::string>{"linear_layers"});
  EXPECT_EQ(entry.requires_slots, std::vector<std::string>{"schedule"});
  ASSERT_EQ(entry.conflicts.size(), 1u);
  EXPECT_EQ(entry.conflicts[0].id, "galore");
  EXPECT_EQ(entry.conflicts[0].reason, "both make low-rank updates");
  EXPECT_EQ(entry.cost.gradients, "None.");
  EXPECT_EQ(entry.cost.parameters, "");
  EXPECT_EQ(entry.promise, "within_tolerance");
  EXPECT_EQ(entry.tolerance, 1e-5);
  EXPECT_EQ(entry.relative_tolerance, std::nullopt);
  ASSERT_EQ(entry.options.size(), 1u);
  EXPECT_EQ(entry.options[0].default_value, 8);
  EXPECT_EQ(entry.options[0].maximum, 4096);
  EXPECT_EQ(entry.options[0].unit, "columns");
}

TEST_F(Manifest, OfAModelIsReadWhole) {
  write_text(path_, plugin_bytes(model_manifest()));
  const Plugin plugin = read_plugin(path_);
  EXPECT_EQ(plugin.kind, Kind::kModel);
  EXPECT_TRUE(plugin.entries[0].has_sequence);
  EXPECT_EQ(plugin.entries[0].default_sequence_length, 128);
  EXPECT_EQ(plugin.entries[0].parameters, 1000);
  EXPECT_EQ(plugin.entries[0].facts, std::vector<std::string>{"blocks"});
  EXPECT_EQ(plugin.entries[0].linears, (std::vector<std::string>{"mlp", "acme.gate"}));
  ASSERT_EQ(plugin.entries[0].missing_linears.size(), 1u);
  EXPECT_EQ(plugin.entries[0].missing_linears[0].parts, std::vector<std::string>{"output"});
  EXPECT_EQ(plugin.entries[0].missing_linears[0].reason, "It is tied");
}

TEST_F(Manifest, UnknownKeysAreErrorsWithTheNearest) {
  json manifest = strategy_manifest();
  manifest["entries"][0]["slot"] = "adapters";
  EXPECT_EQ(error_of(manifest),
            "broken manifest: /manifest/entries/0/slot: unknown key; did you mean \"slots\"?");
  manifest = strategy_manifest();
  manifest["entries"][0]["options"][0]["min"] = 1;
  EXPECT_EQ(
      error_of(manifest),
      "broken manifest: /manifest/entries/0/options/0/min: unknown key; did you mean \"minimum\"?");
  manifest = strategy_manifest();
  manifest["entries"][0]["facts"] = {"blocks"};  // a model's
  EXPECT_NE(error_of(manifest).find("/manifest/entries/0/facts: unknown key"), std::string::npos);
  manifest = strategy_manifest();
  manifest["entrys"] = 1;
  EXPECT_EQ(error_of(manifest),
            "broken manifest: /manifest/entrys: unknown key; did you mean \"entries\"?");
}

TEST_F(Manifest, WhatIsEmptyMayBeLeftOut) {
  json manifest = strategy_manifest();
  json& entry = manifest["entries"][0];
  for (const char* key : {"aliases", "slots", "wrappers", "capabilities", "needs", "requires",
                          "conflicts", "cost", "period", "tolerance"})
    entry.erase(key);
  for (json& option : entry["options"]) option.erase("unit");
  entry["promise"] = "different_problem";
  write_text(path_, plugin_bytes(manifest));
  const Entry read = read_plugin(path_).entries.at(0);
  EXPECT_TRUE(read.slots.empty() && read.needs.empty() && read.conflicts.empty());
  EXPECT_EQ(read.options.at(0).unit, "");
  EXPECT_EQ(read.tolerance, std::nullopt);
}

TEST_F(Manifest, MissingFieldsAreNamed) {
  for (const char* key : {"id", "title", "summary", "source_url", "order", "promise"}) {
    json manifest = strategy_manifest();
    manifest["entries"][0].erase(key);
    EXPECT_EQ(error_of(manifest),
              std::string("broken manifest: /manifest/entries/0/") + key + ": missing");
  }
  for (const char* key : {"family", "has_sequence", "parameters"}) {
    json manifest = model_manifest();
    manifest["entries"][0].erase(key);
    EXPECT_EQ(error_of(manifest),
              std::string("broken manifest: /manifest/entries/0/") + key + ": missing");
  }
  EXPECT_EQ(error_of(json{{"kind", "strategy"}}), "broken manifest: /manifest/entries: missing");
  EXPECT_EQ(error_of(json{{"kind", "strategy"}, {"entries", json::array()}}),
            "broken manifest: /manifest/entries: is empty");
}

// What people get wrong, and what they are told, word by word. Everything else in the entry is
// right.
struct Wrong {
  const char* pointer;  // in the entry
  json value;
  const char* message;
};

const std::vector<Wrong>& wrongs_of_a_strategy() {
  static const std::vector<Wrong> wrongs{
      {"/slotz", {"adapters"}, "/slotz: unknown key; did you mean \"slots\"?"},
      {"/id", "Lo RA", "/id: expected small letters, digits, '.', '_' and '-', got \"Lo RA\""},
      {"/id", "", "/id: expected small letters, digits, '.', '_' and '-', got \"\""},
      {"/title", "", "/title: is empty"},
      {"/order", "first", "/order: expected an integer of 64 bits, got the string \"first\""},
      {"/order", 5'000'000'000, "/order: expected an integer from -1000000 to 1000000"},
      {"/slots", {"adaptors"}, "/slots/0: unknown \"adaptors\"; did you mean \"adapters\"?"},
      {"/slots", {"adapters", "adapters"}, "/slots/1: \"adapters\" is there twice"},
      {"/slots",
       {""},
       "/slots/0: unknown \"\"; known: base_weights, adapters, update_rule, kernel_grouping, "
       "schedule, micro_batches, loss_head, step_runner"},
      {"/wrappers",
       {"gradient_transform"},
       "/wrappers/0: unknown \"gradient_transform\"; did you mean \"gradient_transforms\"?"},
      {"/wrappers", {"freezing", "freezing"}, "/wrappers/1: \"freezing\" is there twice"},
      {"/capabilities",
       {"needs_gradients"},
       "/capabilities/0: unknown \"needs_gradients\"; did you mean \"needs_all_gradients\"?"},
      {"/capabilities",
       {"needs_all_gradients", "needs_all_gradients"},
       "/capabilities/1: \"needs_all_gradients\" is there twice"},
      {"/capabilities",
       {"updates_in_backward", "needs_all_gradients"},
       "/capabilities: updates_in_backward, but a strategy that needs all gradients at once "
       "(needs_all_gradients, or the wrapper gradient_transforms) cannot"},
      {"/needs", {"linears"}, "/needs/0: unknown \"linears\"; did you mean \"linear_layers\"?"},
      {"/needs",
       {"convolutions"},
       "/needs/0: unknown \"convolutions\"; known: attention_part, blocks, "
       "changes_batch, decides_on_host, embedding, linear_layers, mlp_part, output_head, "
       "packed_attention, "
       "tied_embeddings; a fact of your own has a dot in its name, like \"acme.packed\""},
      {"/needs", {"blocks", "blocks"}, "/needs/1: \"blocks\" is there twice"},
      {"/conflicts",
       {{{"id", "sam"}, {"reason", "a"}}, {{"id", "sam"}, {"reason", "b"}}},
       "/conflicts/1/id: \"sam\" is there twice"},
      {"/conflicts",
       {{{"id", "lora"}, {"reason", "a"}}},
       "/conflicts/0/id: \"lora\" is this strategy itself"},
      {"/conflicts",
       {{{"id", ""}, {"reason", "a"}}},
       "/conflicts/0/id: expected small letters, digits, '.', '_' and '-', got \"\""},
      {"/requires",
       {"scheduler"},
       "/requires/0: unknown \"scheduler\"; did you mean \"schedule\"?"},
      {"/promise", "bit-identical",
       "/promise: unknown \"bit-identical\"; did you mean \"bit_identical\"?"},
      {"/promise", "bit_identical", "/tolerance: only the promise within_tolerance has one"},
      {"/tolerance", nullptr,
       "/tolerance: the promise within_tolerance needs a number above 0, or an object with "
       "absolute, relative or both"},
      {"/tolerance", 0, "/tolerance: expected a number above 0, got 0"},
      {"/tolerance", -1e-3, "/tolerance: expected a number above 0, got -0.001"},
      {"/tolerance", "inf", "/tolerance: expected a finite number, got the string \"inf\""},
      {"/period", 0, "/period: expected an integer from 1 to 1000000"},
      {"/period", "rank", "/period: expected an integer of 64 bits, got the string \"rank\""},
      {"/period",
       {{"option", "interval"}},
       "/period/option: \"interval\" is none of its integer options"},
      {"/period",
       {{"option", "rank"}, {"plus", -1}},
       "/period/plus: expected an integer from 0 to 1000000"},
      {"/period",
       {{"option", "rank"}, {"times", 2}},
       "/period/times: unknown key; known: option, plus"},
      {"/tolerance", true, "/tolerance: expected a finite number, got true"},
      {"/tolerance", json::object(), "/tolerance: has neither absolute nor relative"},
      {"/tolerance",
       {{"relativ", 1e-3}},
       "/tolerance/relativ: unknown key; did you mean \"relative\"?"},
      {"/tolerance",
       {{"absolute", 1e-3}, {"relative", 0}},
       "/tolerance/relative: expected a number above 0, got 0"},
      {"/options/0/name", "Rank",
       "/options/0/name: expected small letters, digits and _, got \"Rank\""},
      {"/options/0/summary", "", "/options/0/summary: is empty"},
      {"/options/0/type", "int", "/options/0/type: unknown \"int\"; did you mean \"integer\"?"},
      {"/options/0/default", 0,
       "/options/0/default: expected an integer from 1 to 4096 (columns), got 0"},
      {"/options/0/default", "8",
       "/options/0/default: expected an integer from 1 to 4096 (columns), got the string \"8\""},
      {"/options/0/minimum", 5000, "/options/0/minimum: 5000 is above the maximum, 4096"},
      {"/options/0/minimum", 0.5, "/options/0/minimum: expected an integer, got 0.5"},
      {"/options/0/maximum", "inf",
       "/options/0/maximum: expected a finite number, got the string \"inf\""},
      {"/options/0/choices", json::array(), "/options/0/choices: only a choice has them"},
      {"/options/0/type", "string", "/options/0/minimum: only an integer or a number has one"}};
  return wrongs;
}

TEST_F(Manifest, WrongValuesSayWhatWasExpected) {
  for (const auto& wrong : wrongs_of_a_strategy()) {
    json manifest = strategy_manifest();
    manifest["entries"][0][json::json_pointer(wrong.pointer)] = wrong.value;
    EXPECT_EQ(error_of(manifest),
              std::string("broken manifest: /manifest/entries/0") + wrong.message);
  }
}

TEST_F(Manifest, WrongValuesOfAModel) {
  const std::vector<Wrong> wrongs{
      {"/has_sequence", false, "/default_sequence_length: expected 0, as has_sequence is false"},
      {"/default_sequence_length", 0,
       "/default_sequence_length: expected an integer of 1 or more, as has_sequence is true"},
      {"/facts", {"block"}, "/facts/0: unknown \"block\"; did you mean \"blocks\"?"},
      {"/facts", {"blocks", "blocks"}, "/facts/1: \"blocks\" is there twice"},
      {"/parameters", -1, "/parameters: expected an integer of 0 or more"},
      {"/aliases",
       {"two words"},
       "/aliases/0: expected a name without spaces, ',', '+', '=' and quotes"},
      {"/aliases", {"-"}, "/aliases/0: expected a name without spaces, ',', '+', '=' and quotes"},
      {"/aliases", {"a", "a"}, "/aliases/1: \"a\" is there twice"},
      {"/slots",
       {"adapters"},
       "/slots: unknown key; known: id, title, summary, source_url, aliases, options, family, "
       "facts, "
       "linears, missing_linears, has_sequence, default_sequence_length, parameters, loss"},
      {"/loss", "per_batch",
       "/loss: unknown \"per_batch\"; known: per_sample, per_token, whole_batch"},
      {"/linears", {"mpl"}, "/linears/0: unknown \"mpl\"; did you mean \"mlp\"?"},
      {"/missing_linears", json::array({{{"parts", {"mlp"}}, {"reason", "."}}}),
       "/missing_linears/0/parts: \"mlp\" is in linears, too"},
      {"/missing_linears", json::array({{{"parts", {"output"}}}}),
       "/missing_linears/0/reason: missing"}};
  for (const auto& wrong : wrongs) {
    json manifest = model_manifest();
    manifest["entries"][0][json::json_pointer(wrong.pointer)] = wrong.value;
    EXPECT_EQ(error_of(manifest),
              std::string("broken manifest: /manifest/entries/0") + wrong.message);
  }
  json manifest = model_manifest();
  manifest["entries"][0]["has_sequence"] = false;
  manifest["entries"][0]["default_sequence_length"] = -3;
  EXPECT_EQ(error_of(manifest),
            "broken manifest: /manifest/entries/0/default_sequence_length: expected 0, as "
            "has_sequence is false");
}

TEST_F(Manifest, WrongChoices) {
  const auto error_with = [&](const json& choices, const json& value) {
    json manifest = strategy_manifest();
    manifest["entries"][0]["options"][0] = {{"name", "dtype"},
                                            {"type", "choice"},
                                            {"choices", choices},
                                            {"default", value},
                                            {"summary", "Type."}};
    return error_of(manifest);
  };
  const std::string option = "broken manifest: /manifest/entries/0/options/0";
  EXPECT_EQ(error_with({"fp32", "bf16", "fp32"}, "fp32"),
            option + "/choices/2: \"fp32\" is there twice");
  EXPECT_EQ(error_with({"fp32", ""}, "fp32"), option + "/choices/1: is empty");
  EXPECT_EQ(error_with(json::array(), "fp32"), option + "/choices: is empty");
  EXPECT_EQ(error_with({"fp32", "bf16"}, "fp16"),
            option + "/default: expected one of fp32, bf16, got the string \"fp16\"");
}

TEST_F(Manifest, ChoicesThatNeedFacts) {
  const auto with = [&](const json& needs, const std::string& type = "choice") {
    json manifest = strategy_manifest();
    auto& option = manifest["entries"][0]["options"][0];
    option = {{"name", "parts"}, {"type", type}, {"default", "none"}, {"summary", "Parts."}};
    if (type == "choice") option["choices"] = {"none", "attention"};
    option["needs"] = needs;
    return manifest;
  };
  const std::string place = "broken manifest: /manifest/entries/0/options/0/needs";
  EXPECT_EQ(error_of(with({{"mlp", {"blocks"}}})),
            place + "/mlp: unknown key; known: none, attention");
  EXPECT_EQ(error_of(with({{"attention", {"atention_part"}}})),
            place + "/attention/0: unknown \"atention_part\"; did you mean \"attention_part\"?");
  const std::vector<std::string> facts{"acme.packed", "blocks"};
  write_text(path_, plugin_bytes(with({{"attention", facts}})));
  const auto plugin = read_plugin(path_);
  EXPECT_EQ(plugin.entries.at(0).options.at(0).needs.at("attention"), facts);
  EXPECT_EQ(error_of(with(json::object(), "string")), place + ": only a choice has them");
}

TEST_F(Manifest, AToleranceIsAbsoluteOrRelativeOrBoth) {
  const auto tolerances_of = [&](const json& tolerance) {
    json manifest = strategy_manifest();
    manifest["entries"][0]["tolerance"] = tolerance;
    write_text(path_, plugin_bytes(manifest));
    const Entry entry = read_plugin(path_).entries.at(0);
    return std::pair(entry.tolerance, entry.relative_tolerance);
  };
  using Both = std::pair<std::optional<double>, std::optional<double>>;
  EXPECT_EQ(tolerances_of(2e-3), Both(2e-3, std::nullopt));
  EXPECT_EQ(tolerances_of({{"absolute", 2e-3}}), Both(2e-3, std::nullopt));
  EXPECT_EQ(tolerances_of({{"relative", 1e-2}}), Both(std::nullopt, 1e-2));
  EXPECT_EQ(tolerances_of({{"absolute", 1}, {"relative", 2}}), Both(1, 2));
}

TEST_F(Manifest, APeriodIsANumberOrAnOptions) {
  const auto period_with = [&](const json& period) {
    json manifest = strategy_manifest();
    manifest["entries"][0]["period"] = period;
    write_text(path_, plugin_bytes(manifest));
    return period_of(read_plugin(path_).entries.at(0), {{"rank", 16}});
  };
  EXPECT_EQ(period_with(json()), 1);
  EXPECT_EQ(period_with(30), 30);
  EXPECT_EQ(period_with({{"option", "rank"}}), 16);
  EXPECT_EQ(period_with({{"option", "rank"}, {"plus", 1}}), 17);
}

TEST_F(Manifest, ALossIsOfEachSampleUnlessItSaysMore) {
  json manifest = model_manifest();
  write_text(path_, plugin_bytes(manifest));
  EXPECT_EQ(read_plugin(path_).entries.at(0).loss, "per_sample");
  manifest["entries"][0]["loss"] = "whole_batch";
  write_text(path_, plugin_bytes(manifest));
  EXPECT_EQ(read_plugin(path_).entries.at(0).loss, "whole_batch");
}

TEST_F(Manifest, AFactOfOnesOwnHasADot) {
  json manifest = strategy_manifest();
  manifest["entries"][0]["needs"] = {"blocks", "acme.packed"};
  write_text(path_, plugin_bytes(manifest));
  EXPECT_EQ(read_plugin(path_).entries[0].needs,
            (std::vector<std::string>{"blocks", "acme.packed"}));
  for (const char* name : {".packed", "acme.", "acme packed.x", "Acme.packed"}) {
    manifest["entries"][0]["needs"] = {name};
    EXPECT_NE(error_of(manifest).find("/needs/0: unknown"), std::string::npos) << name;
  }
}

TEST_F(Manifest, EveryMistakeIsNamedAtOnce) {
  json manifest = strategy_manifest();
  auto& entry = manifest["entries"][0];
  entry["slotz"] = entry["wraps"] = 1;
  entry["title"] = "";
  entry["needs"] = {"linears"};
  entry["options"][0]["minimum"] = 9999;
  entry["options"][0]["units"] = "x";
  manifest["entries"].push_back(strategy_manifest()["entries"][0]);
  EXPECT_EQ(error_of(manifest),
            "broken manifest: /manifest/entries/0/slotz: unknown key; did you mean \"slots\"?; "
            "/manifest/entries/0/wraps: unknown key; did you mean \"wrappers\"?; "
            "/manifest/entries/0/title: is empty; "
            "/manifest/entries/0/options/0/units: unknown key; did you mean \"unit\"?; "
            "/manifest/entries/0/options/0/minimum: 9999 is above the maximum, 4096; "
            "/manifest/entries/0/needs/0: unknown \"linears\"; did you mean \"linear_layers\"?; "
            "/manifest/entries/1/id: \"lora\" is there twice");
}

TEST_F(Manifest, TextsAndProblemsAreBounded) {
  json manifest = strategy_manifest();
  manifest["entries"][0]["title"] = std::string(5000, 'x');
  EXPECT_EQ(error_of(manifest), "broken manifest: a text has 5000 bytes, 4096 at most: " +
                                    std::string(40, 'x') + "... (4960 bytes left out)");
  manifest = strategy_manifest();
  for (int i = 0; i < 10'000; ++i) manifest["entries"][0]["unknown_" + std::to_string(i)] = 1;
  const auto error = error_of(manifest);
  EXPECT_LT(error.size(), 10'000u);
  EXPECT_TRUE(error.ends_with("; and 9980 more")) << error.substr(error.size() - 100);
  manifest = strategy_manifest();
  manifest["entries"][0]["title"] = std::string(2 << 20, 'x');
  EXPECT_NE(error_of(manifest).find("claims 2"), std::string::npos);
}

TEST_F(Manifest, OfAnUnknownKind) {
  json manifest = strategy_manifest();
  manifest["kind"] = "stratgy";
  EXPECT_EQ(error_of(manifest),
            "broken manifest: /manifest/kind: unknown \"stratgy\"; did you mean \"strategy\"?");
}

// The parser would keep the last of two equal keys and make infinity an exception of its own.
TEST_F(Manifest, TextThatJsonReadersDisagreeOn) {
  const auto error_with = [&](const std::string& old, const std::string& text) {
    auto content = json{{"stamp", testing::stamp_json()}, {"manifest", strategy_manifest()}}.dump();
    content.replace(content.find(old), old.size(), text);
    return error_of_bytes(elf_bytes(kSection, content));
  };
  EXPECT_EQ(error_with("\"order\":10", "\"order\":10,\"order\":20"),
            "broken manifest: the key \"order\" is there twice in one object");
  EXPECT_EQ(
      error_with("4096", "1e999"),
      "broken manifest: line 1, column 238, /manifest/entries/0/options/0/maximum: expected a "
      "number that fits 64 bits, got 1e999");
  const std::string deep(200'000, '[');
  EXPECT_EQ(error_with("4096", deep + std::string(deep.size(), ']')),
            "broken manifest: more than 100 levels of lists and objects, at line 1, column 328");
}

TEST(Vocabulary, TheDocumentListsEveryWord) {
  std::ifstream file(PEAKBENCH_SOURCE_DIR "/docs/how-to/plugins.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const auto& words :
       {slots(), wrappers(), capabilities(), facts(), parts(), promises(), losses()}) {
    for (const auto& word : words)
      EXPECT_NE(text.find("`" + word + "`"), std::string::npos) << word;
  }
}

TEST(Vocabulary, GradientTransformsNeedAllGradients) {
  Entry entry;
  EXPECT_FALSE(needs_all_gradients(entry));
  EXPECT_FALSE(updates_in_backward(entry));
  entry.wrappers = {"freezing", "gradient_transforms"};
  EXPECT_TRUE(needs_all_gradients(entry));
  entry.wrappers.clear();
  entry.capabilities = {"updates_in_backward"};
  EXPECT_TRUE(updates_in_backward(entry));
  EXPECT_FALSE(needs_all_gradients(entry));
  entry.capabilities = {"needs_all_gradients"};
  EXPECT_TRUE(needs_all_gradients(entry));
}

TEST_F(Manifest, NamesAreThereOnce) {
  json manifest = strategy_manifest();
  manifest["entries"].push_back(manifest["entries"][0]);
  EXPECT_EQ(error_of(manifest), "broken manifest: /manifest/entries/1/id: \"lora\" is there twice");
  manifest = strategy_manifest();
  manifest["entries"][0]["options"].push_back(rank_option());
  EXPECT_EQ(error_of(manifest),
            "broken manifest: /manifest/entries/0/options/1/name: \"rank\" is there twice");
}

TEST_F(Manifest, FilesThatAreNoPluginSaySo) {
  EXPECT_EQ(error_of_bytes(""), "not a shared library (no ELF header)");
  EXPECT_EQ(error_of_bytes("#!/bin/sh\necho hello\n"), "not a shared library (no ELF header)");
  EXPECT_EQ(
      error_of_bytes(elf_bytes(".text", "code")),
      "not a Peakbench plugin: it has no section .peakbench; build it with peakbench_add_plugin");
  EXPECT_EQ(error_of_bytes(elf_bytes(kSection, "{\"stamp\": ")),
            "broken manifest: cut short: the JSON ends unfinished after 10 bytes");
  EXPECT_EQ(error_of_bytes(elf_bytes(kSection, "[]")),
            "broken manifest: top level: expected an object, got a list");
  std::string other = plugin_bytes(strategy_manifest());
  other[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(error_of_bytes(other), "built for another processor; this Peakbench needs x86-64");
  other = plugin_bytes(strategy_manifest());
  other[16] = ET_EXEC;
  EXPECT_EQ(error_of_bytes(other), "an ELF file, but not a shared library");
  const auto gone = message_of<PluginError>([&] { read_plugin(folder_ / "gone.so"); });
  EXPECT_EQ(gone, folder_ / "gone.so" + ": No such file or directory");
  ASSERT_EQ(mkfifo((folder_ / "pipe.so").c_str(), 0600), 0);
  EXPECT_EQ(message_of<PluginError>([&] { read_plugin(folder_ / "pipe.so"); }),
            folder_ / "pipe.so" + ": not a regular file");
}

// Under the address sanitizer this also holds that no byte outside the file's is touched.
TEST_F(Manifest, AFileCutShortAnywhereIsAPluginError) {
  const std::string whole = plugin_bytes(strategy_manifest());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text(path_, whole.substr(0, size));
    EXPECT_THROW(read_plugin(path_), PluginError) << size;
  }
}

TEST_F(Manifest, HeadersThatLieAreErrorsOrHarmless) {
  const std::string whole = plugin_bytes(strategy_manifest());
  const std::size_t headers = whole.size() - 3 * sizeof(Elf64_Shdr);
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= sizeof(Elf64_Ehdr) && at < headers) continue;
    for (const char byte : {'\0', '\1', '\x7f', '\x80', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = byte;
      write_text(path_, bytes);
      ++tried;
      try {
        read_plugin(path_);
      } catch (const PluginError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(tried, 1000u);
  EXPECT_GT(refused, 100u);
}

TEST_F(Manifest, SizesBeyondTheFileAreNamed) {
  std::string bytes = plugin_bytes(strategy_manifest());
  Elf64_Shdr section;
  const std::size_t at = bytes.size() - sizeof section;
  std::memcpy(&section, bytes.data() + at, sizeof section);
  section.sh_offset = ~0ull - 10;
  std::memcpy(bytes.data() + at, &section, sizeof section);
  EXPECT_EQ(error_of_bytes(bytes), "damaged: .peakbench would end after the file's end (" +
                                       std::to_string(bytes.size()) +
                                       " bytes); build or copy it again");
  section.sh_size = ~0ull;
  std::memcpy(bytes.data() + at, &section, sizeof section);
  EXPECT_EQ(error_of_bytes(bytes), "damaged: .peakbench claims 18446744073709551615 bytes");
}

TEST(Stamp, AllMismatchesAreNamedWithBothValues) {
  const Stamp own{1, "2.11.0+cu130", "abc", "13.0", "libstdc++ cxx11"};
  EXPECT_TRUE(compare(own, own).empty());
  const Stamp other{2, "2.10.0", "def", "12.8", "libc++"};
  EXPECT_EQ(compare(other, own),
            (std::vector<std::string>{
                "sdk_revision: plugin has 2, this Peakbench needs 1",
                "libtorch_version: plugin has 2.10.0, this Peakbench needs 2.11.0+cu130",
                "libtorch_git_version: plugin has def, this Peakbench needs abc",
                "libtorch_cuda: plugin has 12.8, this Peakbench needs 13.0",
                "cxx_abi: plugin has libc++, this Peakbench needs libstdc++ cxx11"}));
}

TEST(Stamp, OwnIsWhatCMakeFound) {
  const Stamp own = own_stamp();
  EXPECT_EQ(own.sdk_revision, kSdkRevision);
  const std::string release = own.libtorch_version.substr(0, own.libtorch_version.find('+'));
  std::ifstream releases(PEAKBENCH_SOURCE_DIR "/cmake/libtorch_releases.txt");
  std::string line, version, cuda, revision;
  while (version != release && std::getline(releases, line))
    std::istringstream(line) >> version >> cuda >> revision;
  EXPECT_EQ(own.libtorch_git_version, revision) << release << " is not in the list";
  EXPECT_EQ(own.libtorch_cuda, cuda);
  EXPECT_EQ(own.cxx_abi, "libstdc++ cxx11");
}

TEST_F(Manifest, OfAnotherSdkIsNotJudgedByOurRules) {
  Stamp newer = own_stamp();
  newer.sdk_revision = 9;
  json manifest = strategy_manifest();
  manifest["entries"][0]["a_field_of_tomorrow"] = 1;
  EXPECT_EQ(error_of_bytes(plugin_bytes(manifest, newer)),
            "built for another Peakbench: sdk_revision: plugin has 9, this Peakbench needs 6; "
            "rebuild it");
}

TEST(Discover, FindsPluginsInNameOrderBelowTheFolder) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "more");
  write_text(folder / "b.so", plugin_bytes(strategy_manifest("lora")));
  write_text(folder / "a.so", plugin_bytes(model_manifest("tiny")));
  write_text(folder / "more/c.so",
             plugin_bytes(strategy_manifest("tiny")));  // another kind: no clash
  write_text(folder / "notes.txt", "hello");
  const Found found = discover({folder.path(), folder / "more"}, own_stamp());
  ASSERT_EQ(found.plugins.size(), 3u);
  EXPECT_EQ(found.plugins[0].path, folder / "a.so");
  EXPECT_EQ(found.plugins[2].path, folder / "more/c.so");
  EXPECT_TRUE(found.problems.empty());
}

TEST(Discover, KeepsOneSentenceForEachPluginThatCannotBeUsed) {
  const ScratchFolder folder;
  Stamp other = own_stamp();
  other.libtorch_version = "2.10.0";
  other.libtorch_cuda = "12.8";
  write_text(folder / "a.so", plugin_bytes(strategy_manifest("lora")));
  write_text(folder / "b.so", plugin_bytes(strategy_manifest("lora")));
  write_text(folder / "c.so", plugin_bytes(strategy_manifest("other"), other));
  write_text(folder / "d.so", "text");
  const Found found = discover({folder.path()}, own_stamp());
  ASSERT_EQ(found.plugins.size(), 1u);
  ASSERT_EQ(found.problems.size(), 3u);
  EXPECT_EQ(found.problems[0], folder / "b.so" + ": offers \"lora\", which " + (folder / "a.so") +
                                   " offers already; remove one of them");
  EXPECT_EQ(
      found.problems[1],
      folder / "c.so" +
          ": built for another Peakbench or LibTorch: libtorch_version: plugin has 2.10.0, this "
          "Peakbench needs " +
          own_stamp().libtorch_version + "; libtorch_cuda: plugin has 12.8, this Peakbench needs " +
          own_stamp().libtorch_cuda + "; rebuild it");
  EXPECT_EQ(found.problems[2], folder / "d.so" + ": not a shared library (no ELF header)");
}

TEST(Discover, AFolderThatIsMissingOrEmptyIsAnError) {
  const ScratchFolder folder;
  EXPECT_EQ(message_of<ConfigError>([&] { discover({folder / "no"}, own_stamp()); }),
            folder / "no" +
                ": no such plugin folder (named by --plugins); build the plugins, or name another "
                "folder there");
  EXPECT_EQ(message_of<ConfigError>([&] {
              discover({{folder / "no", "PEAKBENCH_PLUGINS"}}, own_stamp());
            }),
            folder / "no" +
                ": no such plugin folder (named by PEAKBENCH_PLUGINS); build the plugins, or name "
                "another folder there");
  write_text(folder / "readme.txt", "x");
  EXPECT_EQ(message_of<ConfigError>([&] { discover({folder.path()}, own_stamp()); }),
            folder.path() +
                ": the folder holds no plugin (*.so; named by --plugins); build the plugins, or "
                "name another folder there");
}

struct Said {
  std::string text;  // on standard output
  int exit_code;
};

Said check_manifest(const std::string& arguments) {
  Said said;
  FILE* pipe = popen((PEAKBENCH_CHECK_MANIFEST " " + arguments).c_str(), "r");
  for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe))
    said.text += static_cast<char>(byte);
  said.exit_code = WEXITSTATUS(pclose(pipe));
  return said;
}

TEST(CheckManifest, HelpIsNoManifest) {
  for (const char* option : {"--help", "-h"}) {
    const auto said = check_manifest(option);
    EXPECT_EQ(said.exit_code, 0) << option;
    EXPECT_EQ(said.text.rfind("usage: peakbench-check-manifest PLUGIN.json\n", 0), 0U) << said.text;
  }
  EXPECT_EQ(check_manifest("2>&1").exit_code, 2) << "without an argument";
  const auto missing = check_manifest("/no/such/plugin.json 2>&1");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.text, "/no/such/plugin.json: cannot be read: No such file or directory\n");
}

TEST(Option, TakesTextsAndValuesOfItsTypeOnly) {
  Option option{.name = "rank",
                .summary = "",
                .unit = "",
                .default_value = {},
                .minimum = 1,
                .maximum = 64,
                .choices = {}};
  EXPECT_EQ(accept_text(option, "16"), json(16));
  for (const char* text : {"0", "65", "1.5", "x", "", "16 ", "0x10", "99999999999999999999"}) {
    EXPECT_EQ(accept_text(option, text), std::nullopt) << text;
  }
  EXPECT_EQ(accept(option, json("16")), std::nullopt);
  option.type = OptionType::kNumber;
  EXPECT_EQ(accept_text(option, "1.5"), json(1.5));
  EXPECT_TRUE(accept(option, json(2))->is_number_float());
  for (const char* text : {"nan", "inf", "0.5", "1,5"})
    EXPECT_EQ(accept_text(option, text), std::nullopt) << text;
  option.type = OptionType::kBoolean;
  EXPECT_EQ(accept_text(option, "true"), json(true));
  EXPECT_EQ(accept_text(option, "off"), json(false));
  EXPECT_EQ(accept_text(option, "1"), std::nullopt);
  option.type = OptionType::kChoice;
  option.choices = {"fp32", "bf16"};
  EXPECT_EQ(accept_text(option, "bf16"), json("bf16"));
  EXPECT_EQ(accept_text(option, "fp16"), std::nullopt);
  EXPECT_EQ(expected(option), "one of fp32, bf16");
  option.type = OptionType::kPath;
  EXPECT_EQ(accept_text(option, "/a b"), json("/a b"));
}

TEST(Option, TakesPartsOfAModel) {
  Option option{.name = "targets",
                .summary = "",
                .unit = "",
                .type = OptionType::kParts,
                .default_value = "auto",
                .minimum = {},
                .maximum = {},
                .choices = {}};
  for (const char* text : {"auto", "mlp", "q_proj:output", "mlp:acme.gate"})
    EXPECT_EQ(accept_text(option, text), json(text)) << text;
  for (const char* text : {"", "mpl", "mlp:", ":mlp", "mlp:mlp", "auto:mlp", "mlp q_proj", "mlp=4"})
    EXPECT_EQ(accept_text(option, text), std::nullopt) << text;
  EXPECT_EQ(accept(option, json(3)), std::nullopt);
  const std::string names =
      "auto, or some of q_proj, k_proj, v_proj, qkv_proj, output_proj, mlp, output, ";
  EXPECT_EQ(expected(option), names + "joined by ':'");
  EXPECT_TRUE(chosen_parts(option, "auto")->empty());

  option.minimum = 1;
  option.maximum = 64;
  EXPECT_EQ(expected(option),
            names + "joined by ':', each as it is or with =N, an integer from 1 to 64");
  const auto parts = chosen_parts(option, "mlp=16:q_proj").value();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "mlp");
  EXPECT_EQ(parts[0].number, 16);
  EXPECT_EQ(parts[1].number, std::nullopt);
  for (const char* text : {"mlp=0", "mlp=65", "mlp=", "mlp=4=4", "mlp=x", "auto=4", "mlp:mlp=4"})
    EXPECT_EQ(accept_text(option, text), std::nullopt) << text;
}

}  // namespace
}  // namespace peakbench::planning
